"""gone.py - clients that go away: before, while and after they are served. By FIN, by reset, or by closing one way."""
import socket
import threading

from checks import by_target, expect_own, still_serves
from kit import case, expect, expect_in
from wire import get, ok, ok_chunks, post, post_chunks, reply


def go(client, how):
    if how == "reset":
        client.reset()
    elif how == "close":
        client.close()
    else:
        client.half_close()


@case
def a_client_that_goes_before_its_request_client(c):
    backend, proxy = c.start()
    for how in ("close", "reset", "half"):
        for part in (b"", b"G", get("/part")[:-1], b"\r\n", post("/body", b"hello")[:-10]):
            client = c.client()
            client.send(part)
            client.settle()
            go(client, how)
            if how == "half":
                expect("what comes", client.rest(), b"")
    still_serves(c, proxy)
    c.end()
    expect("requests", backend.targets(), ["/control"])


@case
def a_client_that_goes_while_it_waits_client(c):
    """Its lease is cancelled: its request is never sent."""
    gate = threading.Event()
    backend, proxy = c.start(by_target({
        "/hold": lambda link, request: (gate.wait(10), link.send(ok()))[1]
    }), "--max-links", 1, "--connect-timeout", 5)
    holder = c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    for how in ("close", "reset", "half"):
        for message, target in ((get(f"/get-{how}"), f"/get-{how}"), (post(f"/post-{how}", b"hello"), f"/post-{how}")):
            client = c.client()
            client.send(message)
            client.settle()
            go(client, how)
            line = proxy.expect_logged(target, status=499, outcome="client_gone", backend="-")
            expect_in("tries", line.tries, ("0", "1"))
    gate.set()
    expect("who held the link", holder.answer().status, 200)
    still_serves(c, proxy)
    c.end()
    expect("requests", backend.targets(), ["/hold", "/control"])


@case
def a_client_that_goes_in_its_body_client(c):
    backend, proxy = c.start()
    for how in ("close", "reset", "half"):
        for message in (post(f"/length-{how}", b"x" * 1000)[:-1], post_chunks(f"/chunks-{how}", [b"x" * 1000])[:-1],
                        post_chunks(f"/chunks2-{how}", [b"x" * 1000])[:-5]):
            target = message.split(b" ")[1].decode()
            heads = sum(len(link.heads) for link in backend.links)
            client = c.client()
            client.send(message)
            backend.wait_heads(heads + 1)
            go(client, how)
            number = next(link.number for link in backend.links if any(one.target == target for one in link.heads))
            backend.wait_link_end(number)
            proxy.expect_logged(target, status=499, outcome="client_gone", backend=backend.name)
    still_serves(c, proxy)
    c.end()
    expect("whole requests", backend.targets(), ["/control"])


@case
def a_client_that_goes_before_its_answer_client(c):
    """The link is closed: its answer would come to the next."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target != "/control":
                gate.wait(10) if request.target.startswith("/slow") else None
                link.wait_end()
                return
            link.send(ok())

    backend, proxy = c.start(script)
    for how in ("close", "reset", "half"):
        for i, message in enumerate((get(f"/{how}"), post(f"/post-{how}", b"hello"))):
            target, n = message.split(b" ")[1].decode(), len(backend.requests)
            client = c.client()
            client.send(message)
            backend.wait_requests(n + 1)
            go(client, how)
            number = next(link.number for link in backend.links if backend.requests[n] in link.requests)
            backend.wait_link_end(number)
            proxy.expect_logged(target, status=499, outcome="client_gone", tries=1)
            if how == "half":
                client.rest()
    gate.set()
    still_serves(c, proxy)


@case
def a_client_that_goes_in_its_answer_client(c):
    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok())
                continue
            link.send(
                ok(b"x" * 1000)[:-1] if "length" in request.target else ok_chunks([b"x"])[:-1] if "chunks" in
                request.target else reply("200 OK") + b"x")
            link.wait_end()
            return

    backend, proxy = c.start(script)
    for how in ("close", "reset", "half"):
        for kind in ("length", "chunks", "until-close"):
            n, client = len(backend.requests), c.client()
            client.send(get(f"/{kind}-{how}"))
            expect("the answer begins", client.line(0), b"HTTP/1.1 200 OK")
            go(client, how)
            backend.wait_link_end(next(link.number for link in backend.links if backend.requests[n] in link.requests))
            line = proxy.expect_logged(f"/{kind}-{how}", outcome="client_gone")
            expect_in("status", line.status, ("200", "499"))
    still_serves(c, proxy)


@case
def a_client_that_goes_after_its_answer_client(c):
    """That is the end of it, and no fault."""
    backend, proxy = c.start(by_target({}))
    for how in ("close", "reset", "half"):
        client = c.client()
        expect_own(client, f"/{how}")
        go(client, how)
        if how == "half":
            client.expect_end()
        proxy.expect_logged(f"/{how}", status=200, outcome="ok")
    client = c.client()
    client.send(get("/1") + get("/2"))
    expect("answers", [client.answer().body for _ in range(2)], [b"/1", b"/2"])
    client.half_close()
    client.expect_end()
    expect("lines in the log", len(proxy.wait_log(5)), 5)
    c.end()
    expect("links that carried requests", len([link for link in backend.links if link.requests]), 1)


@case
def VC5_a_client_that_goes_while_the_link_opens_client(c):
    """The backend's door is full: connections to it hang. Clients come and go; when it opens, the next is served."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    place = listener.getsockname()
    stuffed = []
    for _ in range(3):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(place)
        stuffed.append(sock)
    proxy = c.proxy("--connect-timeout", 20, to="%s:%d" % place)
    for i in range(10):
        client = c.client()
        client.send(get(f"/{i}") if i % 2 else post(f"/{i}", b"hello"))
        client.settle()
        go(client, ("close", "reset", "half")[i % 3])
        proxy.expect_logged(f"/{i}", status=499, outcome="client_gone", backend="-")
    client = c.client()
    client.send(get("/last"))
    client.settle()
    for sock in stuffed:
        sock.close()
    c.backend(by_target({}), listener=listener)
    expect("the next", client.answer().body, b"/last")
    c.end()
    expect("requests", c.backends[0].targets(), ["/last"])
