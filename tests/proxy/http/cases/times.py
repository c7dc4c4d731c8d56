"""times.py - what takes too long: heads, bodies, answers, idle connections, a place in line. Times are short here."""
import os
import subprocess
import threading
import time

from checks import still_serves
from kit import case, expect, expect_in, expect_range
from wire import Ended, get, ok, ok_chunks, post, post_chunks, reply

SLACK = 4  # seconds that a busy machine may add


def quick(link):
    for request in link.each_request():
        link.answer_to(request, request.target.encode())


class Took:
    """How long the block took: at least so long, and not much longer."""
    def __init__(self, least):
        self.least = least

    def __enter__(self):
        self.began = time.monotonic()

    def __exit__(self, kind, value, trace):
        if kind is None:
            expect_range("seconds", time.monotonic() - self.began, self.least * 0.9, self.least + SLACK)


# ---- heads ----


@case
def header_timeout_with_nothing_sent_client(c):
    c.start(quick, "--header-timeout", 0.3)
    with Took(0.3):
        c.client().expect_end("eof", b"")


@case
def header_timeout_in_a_head_client(c):
    _, proxy = c.start(quick, "--header-timeout", 0.3)
    for part in (b"G", get("/")[:-1], b"\r\n", b"GET / HTTP/1.1\r\nHost: test\r\n"):
        client = c.client()
        with Took(0.3):
            client.send(part)
            client.refused(408)
        client.close()
    lines = proxy.wait_log(4)
    expect("the log", {(line.status, line.outcome in ("refused", "client_slow")) for line in lines}, {("408", True)})


@case
def header_timeout_is_absolute_client(c):
    """A byte now and then does not stretch it."""
    c.start(quick, "--header-timeout", 0.5)
    client, n = c.client(), 0
    client.sock.settimeout(0.05)
    with Took(0.5):
        client.sock.sendall(b"GET / HTTP/1.1\r\nHost: test\r\nA: ")
        while True:
            client.sock.sendall(b"v")
            n += 1
            try:
                client.got += client.sock.recv(1000)
                break
            except TimeoutError:
                continue
    expect("bytes sent one by one", n > 3, True)
    client.sock.settimeout(10)
    client.refused(408)


@case
def header_timeout_of_a_later_request_client(c):
    """From its first byte; what came before does not count, and a head in time is served."""
    _, proxy = c.start(quick, "--header-timeout", 0.4, "--keepalive-timeout", 30)
    client = c.client()
    for i in range(3):
        expect("status", client.ask(get(f"/{i}")[:20], get(f"/{i}")[20:]).status, 200)
    with Took(0.4):
        client.send(get("/late")[:-1])
        client.refused(408)


@case
def keepalive_timeout_client(c):
    c.start(quick, "--keepalive-timeout", 0.3)
    client = c.client()
    for _ in range(2):
        expect("status", client.ask(get("/")).status, 200)
    with Took(0.3):
        client.expect_end("eof", b"")


# ---- bodies ----


@case
def body_timeout_of_a_request_client(c):
    backend, proxy = c.start(quick, "--body-timeout", 0.3, "--answer-timeout", 20)
    for message in (post("/length", b"hello")[:-1], post_chunks("/chunks", [b"hello"])[:-1],
                    post_chunks("/data", [b"hello"])[:-9], post("/none", b"hello")[:-5]):
        target = message.split(b" ")[1].decode()
        client = c.client()
        with Took(0.3):
            client.send(message)
            client.refused(408)
        proxy.expect_logged(target, status=408, outcome="client_slow")
        client.close()
    still_serves(c, proxy)
    c.end()
    expect("whole requests", backend.targets(), ["/control"])


@case
def body_timeout_starts_anew_with_each_byte_client(c):
    """A body that comes slowly, but comes, takes as long as it takes; and the answer's time begins when it is whole."""
    _, proxy = c.start(quick, "--body-timeout", 0.6, "--answer-timeout", 0.6)
    message, client = post("/slow", b"1234567"), c.client()
    client.send(message[:-7])
    for byte in message[-7:]:
        due = time.monotonic() + 0.2  # the pace
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        client.send(b"%c" % byte)
    expect("status", client.answer().status, 200)


@case
def body_timeout_of_an_answer_backend(c):
    """The backend stops in the middle: the client is reset, not told that this was all."""
    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok())
                continue
            link.send(
                ok(b"hello")[:-1] if "length" in request.target else ok_chunks([b"hello"])[:-1] if "chunks" in
                request.target else reply("200 OK") + b"hel")
            link.wait_end()
            return

    _, proxy = c.start(script, "--body-timeout", 0.3)
    for target in ("/length", "/chunks", "/close"):
        client = c.client()
        with Took(0.3):
            client.send(get(target))
            try:
                raise AssertionError(f"a whole answer: {client.answer()}")
            except Ended as ended:
                expect("how it ends", ended.how, "reset")
        expect_in("outcome", proxy.expect_logged(target, status=200).outcome, ("cut", "answer_timeout"))
        client.close()
    still_serves(c, proxy)


@case
def body_timeout_of_who_does_not_read_client(c):
    size = 50000000

    def script(link):
        for request in link.each_request():
            link.send(ok(b"x" * size) if request.target == "/large" else ok())

    backend, proxy = c.start(script, "--body-timeout", 0.5)
    client = c.client()
    client.send(get("/large"))
    with Took(0.5):
        proxy.expect_logged("/large", status=200, outcome="client_slow")
    client.rest()
    expect("how it ends", client.end, "reset")
    still_serves(c, proxy)


@case
def body_timeout_of_who_does_not_take_the_request_backend(c):
    """The backend reads no more of a long request: the client is answered, or reset, and does not hang."""
    gate = threading.Event()

    def script(link):
        link.line(0)
        gate.wait(15)
        link.wait_end()

    _, proxy = c.start(script, "--body-timeout", 0.5, "--answer-timeout", 0.5)
    client, body = c.client(), b"x" * 20000000

    def feed():
        try:
            client.sock.sendall(body)
        except OSError:
            pass

    feeding = threading.Thread(target=feed, daemon=True)
    with Took(0.5):
        client.send(get("/large", f"Content-Length: {len(body)}", method="POST"))
        feeding.start()
        expect_in("outcome", proxy.logged("/large").outcome, ("answer_timeout", "backend_closed", "client_slow"))
    feeding.join(15)
    gate.set()


# ---- answers ----


@case
def answer_timeout_backend(c):
    """504, and the request is not tried again."""
    backend, proxy = c.start(
        lambda link: [link.wait_end() for request in link.each_request() if request.target != "/x"], "--answer-timeout",
        0.3)
    for target, message in (("/get", get("/get")), ("/post", post("/post",
                                                                  b"hello")), ("/head", get("/head", method="HEAD"))):
        client = c.client()
        with Took(0.3):
            expect("status", client.ask(message).status, 504)
        proxy.expect_logged(target, status=504, outcome="answer_timeout", tries=1, backend=backend.name)
    c.end()
    expect("requests", backend.targets(), ["/get", "/post", "/head"])


@case
def answer_timeout_in_the_head_backend(c):
    """A head that drips does not stretch it."""
    stop = threading.Event()

    def script(link):
        for _ in link.each_request():
            link.send(b"HTTP/1.1 200 OK\r\nA: ")
            while not stop.wait(0.05):
                link.send(b"v")

    _, proxy = c.start(script, "--answer-timeout", 0.4)
    client = c.client()
    with Took(0.4):
        expect("status", client.ask(get("/drip")).status, 504)
    proxy.expect_logged("/drip", status=504, outcome="answer_timeout")
    stop.set()


@case
def answer_timeout_begins_anew_with_an_interim_answer_backend(c):
    go_on = threading.Event()

    def script(link):
        for _ in link.each_request():
            for _ in range(4):
                link.send(reply("102 Processing"))
                go_on.wait(0.3)  # the pace
            link.send(ok(b"late"))

    _, proxy = c.start(script, "--answer-timeout", 0.6)
    client = c.client()
    client.send(get("/"))
    expect("statuses", [client.answer().status for _ in range(5)], [102] * 4 + [200])


@case
def connect_timeout_backend(c):
    """Whoever waits for a link waits twice the connect-timeout, and is told 504."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(20)
            link.send(ok(request.target.encode()))

    backend, proxy = c.start(script, "--max-links", 1, "--connect-timeout", 0.2)
    holder = c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    for target, message in (("/get", get("/get")), ("/post", post("/post", b"hello"))):
        client = c.client()
        with Took(0.4):
            expect("status", client.ask(message).status, 504)
        line = proxy.expect_logged(target, status=504, outcome="wait_timeout", backend="-")
        expect_range("waited, in the log", float(line.waited), 0.35, 0.4 + SLACK)
    gate.set()
    expect("who held the link", holder.answer().status, 200)
    expect("the next", client.ask(get("/next")).body, b"/next")


# ---- tunnels ----


@case
def idle_timeout_of_a_tunnel_client(c):
    def script(link):
        for _ in link.each_request():
            link.send(reply("101 Switching Protocols", "Upgrade: x", "Connection: upgrade"))
            link.wait_end()
            return

    backend, proxy = c.start(script, "--idle-timeout", 0.4, "--body-timeout", 0.1, "--keepalive-timeout", 0.1,
                             "--answer-timeout", 0.3)
    client = c.client()
    client.send(get("/up", "Connection: upgrade", "Upgrade: x"))
    expect("status", client.answer().status, 101)
    with Took(0.4):
        client.rest()
    expect_in("outcome", proxy.expect_logged("/up", status=101).outcome, ("upgraded", ))


@case
def times_of_nothing_are_refused_client(c):
    """A time of 0 would end everything at once, or nothing ever: it is a wrong option."""
    program = os.path.join(c.programs, "lbproxy")
    fine = [program, "--listen", "127.0.0.1:0", "--backend", "127.0.0.1:9"]
    for option in ("header", "body", "answer", "keepalive"):
        for value in ("0", "-1", "nan", "x", "0.0001"):
            done = subprocess.run([*fine, f"--{option}-timeout", value], capture_output=True, timeout=10, check=False)
            expect(f"--{option}-timeout {value}", (done.returncode, done.stderr.count(b"\n")), (2, 1))
    for option, value in (("max-header", "1023"), ("max-header", "65537"), ("max-header", "x"), ("max-waiting", "0"),
                          ("mode", "http2"), ("access-log", "/nowhere/at/all")):
        done = subprocess.run([*fine, f"--{option}", value], capture_output=True, timeout=10, check=False)
        expect(f"--{option} {value}", (done.returncode in (1, 2), done.stderr.count(b"\n")), (True, 1))


@case
def VE9_line_ends_in_options_client(c):
    """What would write a line of its own into a request is no address."""
    program = os.path.join(c.programs, "lbproxy")
    for place in ("127.0.0.1:80\r\nX: y", "127.0.0.1\r\n:80", "127.0.0.1:80\n", "[::1]\r\n:80", "\n127.0.0.1:80"):
        for words in (["--listen", "127.0.0.1:0", "--backend", place], ["--listen", place, "--backend", "127.0.0.1:9"]):
            done = subprocess.run([program, *words], capture_output=True, timeout=10, check=False)
            expect(f"exit status of {words}", done.returncode, 2)
