"""review.py - what a strict reading of lbproxy's HTTP mode has found, so that it stays mended.

Some of it shows only when a kernel's buffer is full to the byte. That of a unix socket takes nothing more then, where
TCP would take a part; so one side is a unix socket here, whose reader does not read. And some shows only when several
things are there at once: lbproxy is stopped until they are."""
import os
import re
import socket
import threading

from checks import as_seen, still_serves
from kernel import patiently, unread
from kit import Client, case, echo, expect, expect_range
from wire import get, ok, ok_chunks, post, post_chunks, reply

with open("/proc/sys/net/core/wmem_default", encoding="ascii") as default:
    FULL = int(default.read()) - 3000  # bytes after which a unix socket takes no more


class UnixListener(socket.socket):
    """Where a Backend may listen as well."""
    def __init__(self, path):
        super().__init__(socket.AF_UNIX)
        self.bind(path)
        self.listen(64)

    def getsockname(self):
        return "unix", 0


def unix_backend(c, script):
    path = os.path.join(c.folder, "backend")
    backend = c.backend(script, listener=UnixListener(path))
    backend.name = "unix:" + path
    return backend


def unix_proxy(c, backend, *options):
    """A proxy, and a client of it, by a unix socket."""
    path = os.path.join(c.folder, "listen")
    proxy = c.proxy("--listen", "unix:" + path, *options, to=backend)
    c.clients.append(Client(path))
    return proxy, c.clients[-1]


def read_head(link):
    """A request's head, and no byte behind it. False: the link has ended before, as a spare one does."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = link.sock.recv(1)
        if byte == b"":
            return False
        head += byte
    return True


def send_in_thirds(peer, proxy, message):
    """A first byte or two, what fills a small buffer, and the rest: each as a whole, so that it is read at once."""
    for piece in (message[:100], message[100:4000], message[4000:]):
        with proxy.stopped():
            peer.sock.sendall(piece)
            peer.wait_sent()
        if piece[-1:] != message[-1:]:
            peer.settle()


def large(start, n=65300, body=20000):
    """A message whose head is n bytes: with its body it fills more than a buffer."""
    head = start + b"Content-Length: %d\r\nX-Pad: " % body
    return head + b"a" * (n - len(head) - 4) + b"\r\n\r\n" + b"y" * body


def page_line(proxy, name):
    page = proxy.ask_status("/").body.decode()
    return next(line for line in page.split("\n") if line.startswith(name + " "))


# ---- heads ----


@case
def a_101_behind_too_many_interim_answers_backend(c):
    def script(link):
        for request in link.each_request():
            if request.target == "/up":
                link.send(
                    reply("103 Early Hints") * 16 + reply("101 Switching Protocols", "Connection: upgrade",
                                                          "Upgrade: websocket"))
                link.wait_end()
                return
            link.send(ok())

    _, proxy = c.start(script)
    client = c.client()
    client.send(get("/up", "Connection: upgrade", "Upgrade: websocket"))
    expect("statuses", [client.answer().status for _ in range(17)], [103] * 16 + [502])
    proxy.expect_logged("/up", status=502, outcome="backend_broken")
    still_serves(c, proxy)


@case
def a_large_head_grows_with_its_body_behind_client(c):
    """Both together fill the buffer, and what is added to the head has room all the same."""
    _, proxy = c.start(echo)
    client = c.client()
    send_in_thirds(client, proxy, large(b"POST /big HTTP/1.1\r\nHost: test\r\n"))
    expect("the body", as_seen(client.answer()).body, b"y" * 20000)
    proxy.expect_logged("/big", status=200, outcome="ok")


@case
def a_large_head_grows_while_the_client_takes_nothing_backend(c):
    """The answer stays whole in lbproxy until the client reads the one before."""
    n = FULL + 6000  # it comes in other pieces
    answer, gate = large(b"HTTP/1.1 200 OK\r\n", 65400), threading.Event()

    def script(link):
        link.request()
        link.send(ok(b"x" * n))
        link.request()
        send_in_thirds(link, proxy, answer)
        gate.set()
        link.wait_end()

    proxy, client = unix_proxy(c, c.backend(script))
    client.send(get("/1") + get("/2"))
    expect("the answer is sent", gate.wait(10), True)
    expect("bytes of bodies", [len(client.answer().body) for _ in range(2)], [n, 20000])
    proxy.expect_logged("/2", status=200, outcome="ok")
    client.close()


@case
def a_head_is_refused_without_a_body_client(c):
    _, proxy = c.start()
    for bad, status in (("Expect: x", 417), ("Host: b", 400), ("Content-Length: 1\r\nContent-Length: 1", 400)):
        client = c.client()
        client.send(get("/", bad, method="HEAD"))
        expect("status", client.answer("HEAD").status, status)
        client.expect_end()
    expect("bytes in the log", {line.bytes for line in proxy.wait_log(3)}, {"0"})


@case
def fields_named_in_connection_leave_the_trailer_client(c):
    c.start()
    for named, left in (("X-Foo", []), ("close", [("X-Foo", "trailer")]), ("keep-alive", [("X-Foo", "trailer")])):
        seen = as_seen(c.ask(post_chunks("/", [b"abc"], "Connection: " + named, trailers=["X-Foo: trailer"])))
        expect(f"body, trailer with {named} named", (seen.body, seen.trailers), (b"abc", left))


@case
def fields_named_in_connection_leave_the_trailer_backend(c):
    c.start(lambda link: [
        link.send(ok_chunks([b"abc"], "Connection: " + request.target[1:], trailers=["X-Foo: trailer"]))
        for request in link.each_request()
    ])
    for named, left in (("x-foo", []), ("keep-alive", [("X-Foo", "trailer")])):
        answer = c.ask(get("/" + named))
        expect(f"body, trailer with {named} named", (answer.body, answer.trailers), (b"abc", left))


@case
def a_login_behind_other_offers_ends_the_link_backend(c):
    for offer in ('Basic realm="x", Negotiate', 'Digest realm="x", nonce="y", NTLM'):
        backend = c.backend(lambda link, offer=offer: [
            link.send(ok(b"no", "WWW-Authenticate: " + offer, status="401 Unauthorized"))
            for _ in link.each_request()
        ])
        client = c.client(c.proxy(to=backend))
        expect("statuses", [client.ask(get(f"/{i}")).status for i in range(3)], [401] * 3)
        expect("requests on each link", [len(link.requests) for link in backend.links if link.requests], [1] * 3)


# ---- links ----


@case
def what_a_lost_link_has_said_is_told_to_nobody_backend(c):
    """A link is full, so nothing of the next request goes out; it says a part of an answer, and is lost. The answer of
    the second try comes alone."""
    second = threading.Event()

    def script(link):
        if link.number > 0:
            for request in link.each_request():
                link.answer_to(request, request.target.encode())
            return
        if not read_head(link):
            return
        patiently(lambda: unread(link.sock) == FULL, "the body is in the kernel")
        link.send(ok())
        second.wait(10)
        expect("bytes of the second request that went out", unread(link.sock) - FULL, 0)
        link.send(reply("200 OK", "Set-Cookie: of-another")[:-4])
        link.settle()

    backend = unix_backend(c, script)
    proxy = c.proxy("--policy", "pick_first", to=backend)
    client = c.client()
    expect("the first", client.ask(post("/1", b"x" * FULL)).status, 200)
    client.send(post("/2", b"zz"))
    patiently(lambda: " held 1 " in page_line(proxy, "backend"), "the second has the link")
    second.set()
    answer = client.answer()
    expect("the answer", (answer.body, answer.all("Set-Cookie")), (b"/2", []))
    proxy.expect_logged("/2", status=200, tries=2, outcome="ok")


@case
def a_link_that_takes_nothing_has_its_time_backend(c):
    """The next who gets it is not left without an end."""
    waits = threading.Event()

    def script(link):
        if not read_head(link):
            return
        patiently(lambda: unread(link.sock) == FULL, "the body is in the kernel")
        waits.wait(10)
        link.send(ok())
        over.wait(20)

    over = threading.Event()
    backend = unix_backend(c, script)
    proxy = c.proxy("--body-timeout", 1, "--answer-timeout", 1, "--max-links", 1, "--connect-timeout", 20, to=backend)
    first, second = c.client(), c.client()
    first.send(post("/1", b"x" * FULL))
    backend.wait(lambda: len(backend.links) > 0, "a link")
    second.send(post("/2", b"zz"))
    patiently(lambda: " waiting 1" in page_line(proxy, "links"), "the second is in line")
    waits.set()
    try:
        expect("the first", first.answer().status, 200)
        expect("the second", second.answer().status, 504)
    finally:
        over.set()
    proxy.expect_logged("/2", status=504, reused=1)


# ---- early answers, and clients that send on ----


def early(n, action, last=0):
    """A script: an answer of n bytes when a request's head has come; the action may send the last ones."""
    def script(link):
        while b"\r\n\r\n" not in link.got:
            if not link.fill():
                return
        link.sock.sendall(reply("413 Content Too Large", b"Content-Length: %d" % n) + b"e" * (n - last))
        action(link)

    return script


@case
def an_early_answer_is_read_though_its_link_takes_no_more_backend(c):
    """The backend has answered and closed; what is written to it then fails, and its answer is still to be read."""
    closed, last = threading.Event(), 12000
    n = FULL + 45000 + last

    def close(link):
        patiently(lambda: unread(client.sock) > FULL - 10000, "no more goes to the client")
        link.wait_sent()
        link.sock.sendall(b"e" * last)
        link.wait_sent()
        link.close()
        closed.set()

    proxy, client = unix_proxy(c, c.backend(early(n, close, last)))
    client.send(get("/up", "Content-Length: 100000000", method="POST") + b"u" * 1000)
    expect("the backend has closed", closed.wait(10), True)
    for _ in range(4):
        client.send(b"u" * 1000)
        client.settle()
    answer = client.answer("POST")
    expect("status, bytes", (answer.status, len(answer.body)), (413, n))
    proxy.expect_logged("/up", status=413, bytes=n, outcome="ok")
    client.close()


@case
def a_client_that_sends_all_before_it_reads_client(c):
    """The answer is whole before the request is, and the client takes it only when it has sent the rest."""
    answered, n = threading.Event(), FULL + 45000

    def wait(link):
        link.settle()
        answered.set()
        link.wait_end()

    proxy, client = unix_proxy(c, c.backend(early(n, wait)), "--body-timeout", 2)
    client.send(get("/up", "Content-Length: 901000", method="POST") + b"u" * 1000)
    expect("the answer is read", answered.wait(10), True)
    client.send(b"u" * 900000)
    answer = client.answer("POST")
    expect("status, bytes", (answer.status, len(answer.body)), (413, n))
    proxy.expect_logged("/up", status=413, bytes=n, outcome="ok")


@case
def bytes_behind_a_last_request_do_not_cost_its_answer_client(c):
    """Closing with them unread would reset the connection."""
    def script(link):
        for _ in link.each_request():
            gate.wait(10)
            link.send(ok_chunks([b"z" * 1000]))
            link.wait_sent()
            sent.set()

    backend, proxy = c.start(script)
    for i in range(6):  # which is seen first is a matter of chance
        gate, sent = threading.Event(), threading.Event()
        client = c.client()
        client.send(get("/1", version="1.0"))
        backend.wait_requests(i + 1)
        with proxy.stopped():
            client.sock.sendall(b"\r\n")
            gate.set()
            expect("the answer is sent", sent.wait(10), True)
            client.wait_sent()
        expect("the body", len(client.answer().body), 1000)
        expect("how it ends", client.end, "eof")


# ---- what is told of it ----


@case
def nothing_told_is_499_in_the_log_client(c):
    """An answer is there, but no byte of it could go out before the client went away."""
    composed = threading.Event()

    def script(link):
        for _ in link.each_request():
            link.send(ok(b"x" * FULL if len(link.requests) == 1 else b"x" * 1000))
            link.settle()
            if len(link.requests) == 2:
                composed.set()

    proxy, client = unix_proxy(c, c.backend(script))
    client.send(get("/1") + get("/2"))
    expect("the second answer is read", composed.wait(10), True)
    client.close()
    proxy.expect_logged("/1", status=200, bytes=FULL)
    proxy.expect_logged("/2", status=499, outcome="client_gone")


@case
def no_link_is_neither_new_nor_reused_in_the_log_backend(c):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and does not listen
        proxy = c.proxy(to="127.0.0.1:%d" % sock.getsockname()[1])
        expect("status", c.ask(get("/")).status, 503)
        proxy.expect_logged("/", status=503, backend="-", reused="-", outcome="unavailable")


@case
def an_upgrade_is_counted_once_backend(c):
    head = reply("101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket")

    def script(link):
        link.request()
        link.send(head + b"z" * 1000)
        link.wait_end()

    _, proxy = c.start(script)
    client = c.client()
    client.send(get("/", "Connection: upgrade", "Upgrade: websocket"))
    expect("status", client.answer().status, 101)
    expect("bytes behind it", client.exactly(1000, 0), b"z" * 1000)
    client.close()
    proxy.expect_logged("/", status=101, outcome="upgraded")
    expect("answers", " 1xx 1 " in page_line(proxy, "answers"), True)
    from_it = int(re.search(r" bytes_from (\d+)", page_line(proxy, "backend"))[1])
    expect_range("bytes from it", from_it, len(head) + 1000, len(head) + 1000 + 200)
