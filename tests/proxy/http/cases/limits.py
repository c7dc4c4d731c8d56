"""limits.py - what has a bound, on both sides of it: heads, targets, fields, trailers, links, those in line."""
import threading

from checks import as_seen, refuse_each, still_serves
from kit import Ended, case, expect
from wire import get, ok, ok_chunks, post, post_chunks


def padded(n, start=b"GET / HTTP/1.1\r\nHost: test\r\n"):
    """A head of exactly n bytes, in fields of some 4000."""
    lines, left = [], n - len(start) - 2
    while left > 0:
        size = left if left <= 4100 else 4000
        lines.append(b"A: " + b"v" * (size - 5) + b"\r\n")
        left -= size
    return start + b"".join(lines) + b"\r\n"


def numbered(n, start, last=b""):
    """A head with n fields besides those in its start."""
    return start + b"".join(b"N%d: v\r\n" % i for i in range(n)) + last + b"\r\n"


# ---- heads ----


@case
def heads_up_to_the_limit_client(c):
    _, proxy = c.start()
    for n in (65535, 65536):
        expect("target", as_seen(c.ask(padded(n))).target, "/")
    _, proxy = c.start(lambda link: [link.send(ok()) for _ in link.each_request()], "--max-header", 1024)
    for i in (1, 500, 1000, 1022, 1023):
        client = c.client(proxy)
        client.send(padded(1024)[:i], padded(1024)[i:])
        expect("status", client.answer().status, 200)
    client = c.client(proxy)
    expect("a head and its body",
           client.ask(padded(1024, b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n") + b"x" * 5000).status,
           200)
    expect("the next", client.ask(padded(1024)).status, 200)


@case
def heads_over_the_limit_client(c):
    refuse_each(c, [padded(65537), padded(70000)], 431)
    refuse_each(c, [padded(1025), padded(1500)], 431, "--max-header", 1024)


@case
def heads_up_to_the_limit_backend(c):
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"

    def script(link):
        for request in link.each_request():
            link.send(padded(int(request.target[1:]), start) + b"ok")

    _, proxy = c.start(script)
    for n in (1024, 65000, 65536):
        answer = c.ask(get(f"/{n}"))
        expect("status, body", (answer.status, answer.body), (200, b"ok"))
        expect("bytes of values", sum(len(value) for name, value in answer.fields if name == "A") > n - 300, True)


@case
def heads_over_the_limit_backend(c):
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"

    def script(link):
        for request in link.each_request():
            link.send(padded(int(request.target[1:]), start) + b"ok" if request.target != "/control" else ok())

    _, proxy = c.start(script)
    for n in (65537, 66000, 140000, 10000000):
        expect("status", c.ask(get(f"/{n}")).status, 502)
        proxy.expect_logged(f"/{n}", status=502, outcome="backend_broken")
    still_serves(c, proxy)


@case
def targets_up_to_8192_client(c):
    _, proxy = c.start()
    target = "/" + "t" * 8191
    expect("target", as_seen(c.ask(get(target))).target, target)
    client = c.client()
    message = get(target)
    for i in (1, 5, 4096, 8195, 8196, 8197):
        client.send(message[:i], message[i:])
        expect("target", as_seen(client.answer()).target, target)
    proxy.wait_log(7)


@case
def targets_over_8192_client(c):
    long = "/" + "t" * 8192
    refuse_each(c, [get(long), get("/" + "t" * 20000), get("/?" + "t" * 8191), get("/" + "t" * 60000)], 414)
    refuse_each(c, [get("/" + "t" * 200000)], (414, 431))


@case
def fields_up_to_256_client(c):
    _, proxy = c.start()
    seen = as_seen(c.ask(numbered(255, b"GET / HTTP/1.1\r\nHost: test\r\n")))
    expect("fields", len(seen.plain), 255)


@case
def more_fields_than_256_client(c):
    refuse_each(c, [numbered(n, b"GET / HTTP/1.1\r\nHost: test\r\n") for n in (256, 257, 1000, 5000)], 431)


@case
def fields_up_to_256_backend(c):
    def script(link):
        for request in link.each_request():
            link.send(numbered(int(request.target[1:]), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n") + b"ok")

    _, proxy = c.start(script)
    answer = c.ask(get("/255"))
    expect("status, fields", (answer.status, len([name for name, _ in answer.fields if name.startswith("N")])),
           (200, 255))


@case
def more_fields_than_256_backend(c):
    def script(link):
        for request in link.each_request():
            link.send(
                numbered(int(request.target[1:]), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n") +
                b"ok" if request.target != "/control" else ok())

    _, proxy = c.start(script)
    for n in (256, 257, 5000):
        expect("status", c.ask(get(f"/{n}")).status, 502)
        proxy.expect_logged(f"/{n}", outcome="backend_broken")
    still_serves(c, proxy)


def trailing(n):
    """Trailer lines of n bytes in all."""
    return [b"T: " + b"v" * 995] * (n // 1000) + ([b"T: " + b"v" * (n % 1000 - 5)] if n % 1000 else [])


@case
def trailers_up_to_8192_client(c):
    _, proxy = c.start()
    for n in (1000, 8000, 8190, 8192):
        seen = as_seen(c.ask(post_chunks("/", [b"x"], trailers=trailing(n))))
        expect("bytes of trailers", sum(len(name) + len(value) + 4 for name, value in seen.trailers), n)


@case
def trailers_over_8192_client(c):
    refuse_each(c, [post_chunks("/", [b"x"], trailers=trailing(n)) for n in (8193, 9000, 60000)], (400, 431),
                partly=True)
    refuse_each(c, [post_chunks("/", [b"x"], trailers=[b"T: v"] * 3000)], (400, 431), partly=True)


@case
def trailers_over_8192_backend(c):
    sizes = {"/8192": "good", "/8193": "bad", "/100000": "bad"}

    def script(link):
        for request in link.each_request():
            link.send(
                ok_chunks([b"x"], trailers=trailing(int(request.target[1:]))) if request.target in sizes else ok())

    _, proxy = c.start(script)
    for target, kind in sizes.items():
        client = c.client()
        client.send(get(target))
        try:
            expect("status", (client.answer().status, kind), (200 if kind == "good" else 502, kind))
        except Ended as ended:
            expect("how it ends", (ended.how, kind), ("reset", "bad"))
    still_serves(c, proxy)


# ---- links and lines ----


def holding(gate):
    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(20)
            link.send(ok(request.target.encode()))

    return script


@case
def no_more_links_than_allowed_client(c):
    gate = threading.Event()
    backend, proxy = c.start(holding(gate), "--max-links", 3)
    clients = [c.client() for _ in range(10)]
    for client in clients:
        client.send(get("/hold"))
        client.settle()
    backend.wait_requests(3)
    gate.set()
    expect("answers", {client.answer().body for client in clients}, {b"/hold"})
    c.end()
    expect("links", len(backend.links), 3)


@case
def a_full_line_is_503_client(c):
    gate = threading.Event()
    backend, proxy = c.start(holding(gate), "--max-links", 1, "--max-waiting", 1)
    holder, waiter = c.client(), c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    waiter.send(get("/wait"))
    waiter.settle()
    for target in ("/1", "/2"):
        client = c.client()
        answer = client.ask(get(target))
        expect("status", answer.status, 503)
        expect("lines of its body", (answer.body.count(b"\n"), answer.body.endswith(b"\n")), (1, True))
        proxy.expect_logged(target, status=503, outcome="full", backend="-")
    gate.set()
    expect("answers", [holder.answer().body, waiter.answer().body], [b"/hold", b"/wait"])
    line = proxy.logged("/wait")
    expect("waited, in the log", 0 < float(line.waited) <= float(line.total), True)
    expect("a client that was told 503 stays", client.ask(get("/3")).body, b"/3")


@case
def bodies_pass_whatever_their_size_client(c):
    _, proxy = c.start(lambda link: [link.send(ok(request.body)) for request in link.each_request()])
    client = c.client()
    for n in (1, 3999, 4000, 4001, 65535, 65536, 65537, 1 << 20):
        body = bytes(i * 7 % 251 for i in range(n))
        for message in (post("/", body), post_chunks("/", [body[i:i + 5000] for i in range(0, n, 5000)])):
            feed = threading.Thread(target=lambda message=message: client.send(message), daemon=True)
            feed.start()
            expect("the body comes back", client.answer().body == body, True)
            feed.join(10)
