"""pages.py - the status pages: for people, for Prometheus, for who asks whether it is well."""
import re
import threading

from cases.operations import quick
from kernel import patiently
from kit import Client, case, expect, expect_in
from wire import get, ok

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? '
                    r'(NaN|[+-]Inf|[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


def parse_metrics(page):
    """Prometheus text, strictly: {(name, labels): value}, {name: type}."""
    samples, types, helps, family = {}, {}, set(), None
    if not page.endswith("\n"):
        raise AssertionError("the last line has no end")
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            expect(f"help of {family} twice", family in helps, False)
            helps.add(family)
        elif line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            expect("TYPE follows HELP of the same", (name, name in types), (family, False))
            expect_in("type", kind, TYPES)
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            if match is None:
                raise AssertionError(f"no sample: {line!r}")
            name, labels, value = match.groups()
            base = re.sub("_(bucket|sum|count)$", "", name) if types.get(family) == "histogram" else name
            expect(f"the family of {line!r}", base, family)
            found = LABEL.findall(labels or "")
            expect(f"labels of {line!r}", ",".join(f'{key}="{text}"' for key, text in found), (labels or
                                                                                               "").rstrip(","))
            key = name, frozenset(found)
            expect(f"{key} twice", (key in samples, len(dict(found)) == len(found)), (False, True))
            samples[key] = float(value)
    return samples, types


def check_histograms(samples, types):
    """Buckets grow, the last is the count, and there is a sum."""
    found = 0
    for name in (name for name, kind in types.items() if kind == "histogram"):
        series = {}
        for (sample, labels), value in samples.items():
            if sample == name + "_bucket":
                bound = dict(labels)["le"]
                rest = frozenset(label for label in labels if label[0] != "le")
                series.setdefault(rest, []).append((float(bound.replace("+Inf", "inf")), value))
        for rest, buckets in series.items():
            buckets.sort()
            values = [value for _, value in buckets]
            expect("buckets grow", values, sorted(values))
            expect("the last bucket", buckets[-1], (float("inf"), samples[(name + "_count", rest)]))
            expect("a sum", samples[(name + "_sum", rest)] >= 0, True)
            found += 1
    return found


def metrics_of(proxy):
    answer = proxy.ask_status("/metrics")
    expect("status", answer.status, 200)
    expect("Content-Type", (answer.one("Content-Type") or "").replace(" ", "").split(";")[:2],
           ["text/plain", "version=0.0.4"])
    return parse_metrics(answer.body.decode())


def total(samples, **labels):
    """The sum of all samples by the end of the name (suffix) that have these labels."""
    suffix = labels.pop("suffix")
    return sum(value for (name, found), value in samples.items()
               if name.endswith(suffix) and set(labels.items()) <= found)


@case
def metrics_count_requests_by_class_backend(c):
    def script(link):
        for request in link.each_request():
            link.send(ok(status=request.target[1:] + " X"))

    backend, down = c.backend(script), c.backend(script)
    down.stop_listening()
    proxy = c.proxy("--policy", "pick_first", to=[backend, down])
    before, _ = metrics_of(proxy)
    client, wanted = c.client(), {"2xx": 5, "3xx": 4, "4xx": 3, "5xx": 2}
    for kind, n in wanted.items():
        for _ in range(n):
            client.ask(get("/" + kind[0] + "01"))
    c.ask(get("/", "A : b"))
    after, types = metrics_of(proxy)
    for kind, n in wanted.items():
        expect(f"answers of class {kind}",
               [total(one, suffix="_total", backend=backend.name, **{"class": kind}) for one in (before, after)],
               [0, n])
    for name in (backend.name, down.name):
        expect(f"series of {name}", any(("backend", name) in labels for _, labels in after), True)
    expect("histograms, of each backend", check_histograms(after, types) >= 4, True)
    counts = [
        value for (name, labels), value in after.items()
        if name.endswith("_count") and ("backend", backend.name) in labels
    ]
    expect("what histograms have counted", set(counts), {14.0})
    for name, kind in types.items():
        expect(f"{name}: a counter ends in _total", name.endswith("_total"), kind == "counter")
    for key, value in before.items():
        if key[0].endswith("_total") and after.get(key, 0) < value:
            raise AssertionError(f"a counter has fallen: {key}")


@case
def metrics_tell_links_by_state_and_reason_backend(c):
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(10)
            link.send(ok())
            if request.target == "/close":
                return

    backend, proxy = c.start(script)
    holder, client = c.client(), c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    client.ask(get("/"))
    samples, _ = metrics_of(proxy)
    states = {
        dict(labels)["state"]: value
        for (name, labels), value in samples.items()
        if "state" in dict(labels) and dict(labels).get("backend") == backend.name and value > 0
    }
    expect("links by state", sum(states.values()) >= 2, True)
    before = total(samples, suffix="_total", backend=backend.name)
    client.ask(get("/close"))
    gate.set()
    holder.answer()

    def ended():
        samples, _ = metrics_of(proxy)
        return any(value > 0 for (name, labels), value in samples.items()
                   if "reason" in dict(labels) and ("backend", backend.name) in labels)

    patiently(ended, "an end by reason")
    expect("counters grow", total(metrics_of(proxy)[0], suffix="_total", backend=backend.name) > before, True)


@case
def healthz_backend(c):
    backend = c.backend(quick)
    proxy = c.proxy(to=backend)
    c.ask(get("/"))
    answer = proxy.ask_status("/healthz")
    expect("with a backend", (answer.status, answer.body.strip()), (200, b"ok"))
    backend.stop_listening()
    for link in backend.links:
        link.sock.shutdown(2)
    patiently(lambda: c.ask(get("/"), proxy=proxy).status == 503, "the backend is found to be down")
    patiently(lambda: proxy.ask_status("/healthz").status == 503, "healthz says so")
    up = c.backend(quick)
    proxy = c.proxy(to=[backend, up])
    for _ in range(4):
        expect("status", c.ask(get("/"), proxy=proxy).status, 200)
    expect("one of two is enough", proxy.ask_status("/healthz").status, 200)


@case
def status_pages_client(c):
    _, proxy = c.start(quick)
    c.ask(get("/"))
    answer = proxy.ask_status("/")
    expect("the page", (answer.status, (answer.one("Content-Type") or "").split(";")[0]), (200, "text/plain"))
    expect("its first line",
           answer.body.startswith(b"lbproxy ") and b" mode http " in answer.body.split(b"\n")[0], True)
    expect("lines that begin so",
           {word
            for word in (b"clients", b"links", b"backend") if b"\n" + word + b" " in answer.body},
           {b"clients", b"links", b"backend"})
    head = proxy.ask_status("/", "HEAD")
    expect("HEAD", (head.status, head.body), (200, b""))
    expect("what is not there", proxy.ask_status("/nothing").status, 404)
    expect("another method", proxy.ask_status("/", "DELETE").status, 405)
    for garbage in (b"\x00\x01\r\n\r\n", b"GET\r\n\r\n", b"A" * 100000):
        client = Client(proxy.status_address)
        client.send(garbage)
        client.close()
    expect("still there", proxy.ask_status("/healthz").status, 200)
