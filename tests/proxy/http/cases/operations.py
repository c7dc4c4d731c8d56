"""operations.py - what those who run it see: the access log, the status pages, the end."""
import datetime
import os
import signal
import threading
import time

from kernel import patiently
from kit import Client, case, expect, expect_in, expect_range
from wire import get, ok, ok_chunks, post, reply


def quick(link):
    for request in link.each_request():
        link.answer_to(request, request.target.encode())


# ---- the access log ----


@case
def access_log_lines_client(c):
    """A line a request, with what it was; the example of the rules, field by field."""
    backend, proxy = c.start(quick)
    began, client = datetime.datetime.now(datetime.timezone.utc), c.client()
    client.ask(get("/a?b=1"))
    client.ask(post("/post", b"hello"))
    client.ask(get("/head", method="HEAD"))
    client.ask(get("http://test/absolute"))
    lines = proxy.wait_log(4)
    expect("method, target, status, bytes", [(line.method, line.target, line.status, line.bytes) for line in lines],
           [("GET", "/a?b=1", "200", "6"), ("POST", "/post", "200", "5"), ("HEAD", "/head", "200", "0"),
            ("GET", lines[3].target, "200", "9")])
    expect_in("the target of an absolute-form", lines[3].target, ("/absolute", "http://test/absolute"))
    expect("client, backend, tries, outcome", {(line.client, line.backend, line.tries, line.outcome)
                                               for line in lines}, {("127.0.0.1", backend.name, "1", "ok")})
    expect("reused", [line.reused for line in lines], ["0", "1", "1", "1"])
    for line in lines:
        at = datetime.datetime.strptime(line.time, "%Y-%m-%dT%H:%M:%S.%f%z")
        expect_range("seconds since the start", (at - began).total_seconds(), -0.1, 10)
        expect("waited and total", 0 <= float(line.waited) <= float(line.total) < 10, True)


@case
def access_log_bytes_are_the_body_s_backend(c):
    """Of what the client was told: without heads, chunk sizes or trailers."""
    answers = {
        "/length": ok(b"x" * 12345),
        "/chunks": ok_chunks([b"x" * 5000, b"y" * 7345], trailers=["A: b"]),
        "/none": reply("204 No Content"),
        "/interim": reply("103 Early Hints") + ok(b"x" * 12345)
    }

    def script(link):
        for request in link.each_request():
            link.send(answers[request.target])

    _, proxy = c.start(script)
    for target in answers:
        for version in ("1.1", "1.0"):
            client = c.client()
            client.send(get(target, version=version))
            while client.answer().status == 103:
                pass
    for line in proxy.wait_log(2 * len(answers)):
        expect(f"bytes of {line.target}", line.bytes, "0" if line.target == "/none" else "12345")


@case
def access_log_of_what_was_refused_client(c):
    _, proxy = c.start(quick)
    for message in (b"\x00\r\n\r\n", get("/bad", "A : b"), get("/" + "t" * 9000),
                    post("/p", b"x", "Transfer-Encoding: chunked"), get("/", version="2.0")):
        c.ask(message)
    lines = proxy.wait_log(5)
    expect("statuses", [line.status for line in lines], ["400", "400", "414", "400", "505"])
    expect("outcome, backend, reused, tries", {(line.outcome, line.backend, line.reused, line.tries)
                                               for line in lines}, {("refused", "-", "-", "0")})
    for line in lines:
        expect("bytes are of our own body", int(line.bytes) > 3, True)


@case
def access_log_is_opened_anew_client(c):
    """On SIGUSR1, so that it can be moved away; no line is lost or twice."""
    _, proxy = c.start(quick)
    client, moved = c.client(), proxy.log_path + ".1"
    client.ask(get("/1"))
    proxy.wait_log(1)
    os.rename(proxy.log_path, moved)
    client.ask(get("/2"))
    proxy.signal(signal.SIGUSR1)
    patiently(lambda: os.path.exists(proxy.log_path), "the log is opened anew")
    client.ask(get("/3"))
    patiently(lambda: "/3" in open(proxy.log_path, encoding="ascii").read(), "a line in the new file")
    expect("the new file", [line.target for line in proxy.log()][-1], "/3")
    with open(moved, encoding="ascii") as old, open(proxy.log_path, encoding="ascii") as new:
        targets = [line.split()[3] for line in (old.read() + new.read()).splitlines()]
    expect("lines in all", targets, ["/1", "/2", "/3"])


@case
def access_log_to_the_standard_output_client(c):
    _, proxy = c.start(quick, "--access-log", "-")
    c.ask(get("/out"))

    def said():
        return [line for line in proxy.said if line and " GET /out 200 " in line]

    patiently(said, "a line at the standard output")
    expect("lines", len(said()), 1)


# ---- the end ----


@case
def drain_closes_idle_clients_client(c):
    _, proxy = c.start(quick)
    idle, silent, partial = c.client(), c.client(), c.client()
    expect("status", idle.ask(get("/")).status, 200)
    partial.send(b"GET / HT")
    partial.settle()
    proxy.signal(signal.SIGTERM)
    idle.expect_end("eof", b"")
    silent.expect_end("eof", b"")
    try:
        partial.send(b"TP/1.1\r\nHost: test\r\n\r\n")
        answer = partial.answer()
        expect("a request that had begun", (answer.status in (200, 503), "close" in answer.options()), (True, True))
    except Exception as ended:
        expect("or it is closed", type(ended).__name__, "Ended")
    proxy.expect_exit()


@case
def drain_serves_what_is_under_way_client(c):
    """Requests under way are served, and told that they are the last; nobody new comes in."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(10)
            link.send(ok(request.body or b"served"))

    backend, proxy = c.start(script, "--drain-timeout", 20)
    waiting, uploading, pipelined = c.client(), c.client(), c.client()
    waiting.send(get("/hold"))
    uploading.send(post("/hold", b"hello")[:-1])
    pipelined.send(get("/hold") + get("/behind"))
    backend.wait_heads(3)
    proxy.signal(signal.SIGTERM)
    patiently(lambda: is_refused(proxy), "nobody new comes in")
    expect("healthz while it drains", health(proxy) in (503, None), True)
    uploading.send(b"o")
    gate.set()
    for client, body in ((waiting, b"served"), (uploading, b"hello"), (pipelined, b"served")):
        answer = client.answer()
        expect("the last answer", (answer.status, answer.body, "close" in answer.options()), (200, body, True))
        client.expect_end()
    proxy.expect_exit()
    expect("outcomes", {line.outcome for line in proxy.log() if line.target == "/hold"}, {"ok"})


def health(proxy):
    try:
        return proxy.ask_status("/healthz").status
    except OSError:
        return None


def is_refused(proxy):
    try:
        client = Client(proxy.address)
    except OSError:
        return True
    client.close()
    return False


@case
def drain_ends_by_its_timeout_client(c):
    backend, proxy = c.start(lambda link: [link.wait_end() for _ in link.each_request()], "--drain-timeout", 0.4)
    client = c.client()
    client.send(get("/hold"))
    backend.wait_requests(1)
    began = time.monotonic()
    proxy.signal(signal.SIGTERM)
    seen = client.rest()
    expect_range("seconds until it ends", time.monotonic() - began, 0.35, 5)
    expect("what the client gets", seen == b"" or seen.startswith(b"HTTP/1.1 503 "), True)
    proxy.expect_exit()
    expect_in("outcome", proxy.logged("/hold").outcome, ("stopped", "stopping"))


@case
def drain_with_an_answer_under_way_backend(c):
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            message = ok_chunks([b"hello", b"world"])
            link.send(message[:-20])
            gate.wait(10)
            link.send(message[-20:])

    _, proxy = c.start(script)
    client = c.client()
    client.send(get("/"))
    expect("the answer begins", client.line(0), b"HTTP/1.1 200 OK")
    client.at = 0
    proxy.signal(signal.SIGTERM)
    patiently(lambda: is_refused(proxy), "nobody new comes in")
    gate.set()
    expect("the answer", client.answer().body, b"helloworld")
    client.expect_end()
    proxy.expect_exit()


@case
def drain_does_not_cut_the_line_client(c):
    """Who waits for a link is served, or told that lbproxy stops."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(10)
            link.send(ok())

    backend, proxy = c.start(script, "--max-links", 1)
    holder, waiter = c.client(), c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    waiter.send(get("/wait"))
    waiter.settle()
    proxy.signal(signal.SIGTERM)
    patiently(lambda: is_refused(proxy), "nobody new comes in")
    gate.set()
    expect("who was served", holder.answer().status, 200)
    answer = waiter.answer()
    expect_in("who waited", answer.status, (200, 503))
    expect("close is said", "close" in answer.options(), True)
    proxy.expect_exit()
    expect_in("outcome", proxy.logged("/wait").outcome, ("ok", "stopping"))


@case
def several_threads_and_backends_client(c):
    """The same rules whichever thread or backend serves: an id in the request comes back in its answer."""
    def script(link):
        for request in link.each_request():
            link.answer_to(request, request.one("X-Id").encode())

    backends = [c.backend(script) for _ in range(3)]
    c.proxy("--threads", 2, to=backends)

    def run(k, wrong):
        client = c.client()
        for i in range(100):
            if client.ask(get("/", f"X-Id: {k}.{i}")).body != f"{k}.{i}".encode():
                wrong.append((k, i))
            if i % 25 == 24:
                client = c.client()

    wrong = []
    threads = [threading.Thread(target=run, args=(k, wrong)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    expect("wrong answers", wrong, [])
    expect("requests", sum(len(backend.requests) for backend in backends), 800)
    expect("backends that served", len([backend for backend in backends if backend.requests]), 3)
    expect_range("links", sum(len(backend.links) for backend in backends), 3, 60)
