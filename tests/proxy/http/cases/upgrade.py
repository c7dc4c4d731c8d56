"""upgrade.py - requests that become tunnels, and those that may not."""
import threading

from checks import as_seen, expect_nothing_else, still_serves
from kit import case, expect
from wire import get, head, ok, post, post_chunks, reply, split_requests

SMUGGLED = get("/smuggled")


def switching(link):
    """Answers an upgrade with a 101 and echoes what comes behind, in upper case; other requests as echo() does."""
    for request in link.each_request():
        if request.all("Upgrade"):
            link.send(
                reply("101 Switching Protocols", "Upgrade: " + request.one("Upgrade"), "Connection: Upgrade", "A: b") +
                b"greeting ")
            while True:
                more = bytes(link.got[link.at:])
                link.at = len(link.got)
                link.send(more.upper())
                if not link.fill():
                    break
            link.send(b" bye")
            return
        link.send(ok(request.target.encode()))


def upgrade(target="/up", *fields, **options):
    return get(target, "Connection: Upgrade", "Upgrade: websocket", *fields, **options)


@case
def upgrade_to_a_tunnel_client(c):
    """Bytes go both ways, those behind the request and behind the 101 too; ends are passed on each way."""
    backend, proxy = c.start(switching)
    for early in (b"", b"early "):
        for parts in ([upgrade() + early], [upgrade(), early], [upgrade()[:-2], upgrade()[-2:] + early]):
            client = c.client()
            client.send(*[part for part in parts if part])
            answer = client.answer()
            expect("status and fields", (answer.status, answer.one("Upgrade"), answer.options(), answer.one("A")),
                   (101, "websocket", ["upgrade"], "b"))
            client.send(b"GET / HTTP/1.1\r\n\r\n\x00\xff")
            client.half_close()
            client.expect_end("eof", b"greeting " + early.upper() + b"GET / HTTP/1.1\r\n\r\n\x00\xff" + b" bye")
            client.close()
    still_serves(c, proxy)
    c.end()
    for link in backend.links:
        expect("requests on a link that was a tunnel",
               len(link.requests) if link.requests and link.requests[0].target == "/up" else 1, 1)
    seen = next(one for one in backend.requests if one.target == "/up")
    expect("Connection and Upgrade", ([one.lower() for one in seen.all("Connection")], seen.all("Upgrade")),
           (["upgrade"], ["websocket"]))


@case
def upgrade_cut_anywhere_client(c):
    _, proxy = c.start(switching)
    message = upgrade() + b"behind"
    for i in range(1, len(message)):
        client = c.client()
        client.send(message[:i], message[i:])
        expect("status", client.answer().status, 101)
        client.half_close()
        client.expect_end("eof", b"greeting BEHIND bye")
        client.close()


@case
def upgrade_cut_anywhere_backend(c):
    message = reply("101 Switching Protocols", "Upgrade: websocket", "Connection: upgrade") + b"behind"

    def script(link):
        for request in link.each_request():
            i = int(request.target[1:])
            link.send(message[:i], message[i:])
            link.half_close()
            link.rest()
            return

    c.start(script)
    for i in range(1, len(message)):
        client = c.client()
        client.send(upgrade(f"/{i}"))
        expect("status", client.answer().status, 101)
        client.expect_end("eof", b"behind")
        client.close()


@case
def upgrade_behind_other_requests_client(c):
    _, proxy = c.start(switching)
    client = c.client()
    client.send(get("/1") + post("/2", b"x") + upgrade() + b"behind")
    expect("answers", [client.answer().body for _ in range(2)], [b"/1", b"/2"])
    expect("status", client.answer().status, 101)
    client.half_close()
    client.expect_end("eof", b"greeting BEHIND bye")
    line = proxy.expect_logged("/up", status=101, outcome="upgraded")
    expect("bytes", line.bytes.isdecimal() or line.bytes == "-", True)


@case
def upgrade_that_the_backend_declines_backend(c):
    """Without a 101 what is behind the request is the next request, as ever."""
    backend, proxy = c.start()
    client = c.client()
    client.send(upgrade("/1") + get("/2") + upgrade("/3"))
    seen = [as_seen(client.answer()) for _ in range(3)]
    expect("targets", [one.target for one in seen], ["/1", "/2", "/3"])
    expect("Upgrade", [one.values.get("upgrade") for one in seen], [["websocket"], None, ["websocket"]])
    client.send(upgrade("/4") + b"\x00\x01\x02\r\n\r\n")
    expect("target", as_seen(client.answer()).target, "/4")
    client.refused(400)
    c.end()
    expect("targets", backend.targets(), ["/1", "/2", "/3", "/4"])
    expect_nothing_else(backend)


@case
def upgrades_that_are_not_passed_on_client(c):
    """Dropped, so that a 101 to them is a fault: HTTP/2 in the clear above all."""
    _, proxy = c.start()
    messages = [
        get("/", "Upgrade: websocket"),
        get("/", "Connection: close", "Upgrade: websocket"),
        get("/", "Connection: upgrade", "Upgrade: websocket", version="1.0"),
        post("/", b"x", "Connection: upgrade", "Upgrade: websocket"),
        post_chunks("/", [b"x"], "Connection: upgrade", "Upgrade: websocket"),
        get("/", "Connection: upgrade"),
        get("/", "Connection: upgrade", "Upgrade: websocket", "Upgrade: websocket"),
        get("/", "Connection: upgrade", "Upgrade: a", "upgrade: b")
    ]
    h2c = [
        get("/", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "Upgrade: " + name)
        for name in ("h2c", "H2C", "h2c, websocket", "websocket, h2c", "h2c/1")
    ]
    for message in messages + h2c:
        seen = as_seen(c.ask(message))
        got = [value for value in seen.values.get("upgrade", []) if message not in h2c or "h2c" in value.lower()]
        expect(f"Upgrade that is passed on of {message!r}", got, [])
        expect("HTTP2-Settings", seen.values.get("http2-settings"), None)
        if not seen.values.get("upgrade"):
            expect("Connection", seen.values.get("connection"), None)


@case
def a_101_to_what_was_not_passed_on_backend(c):
    """The backend switches all the same: 502, and no byte of the client goes on."""
    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok())
            else:
                link.send(reply("101 Switching Protocols", "Connection: upgrade", "Upgrade: h2c"))

    backend, proxy = c.start(script)
    for message in (get("/up", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMA",
                        "Upgrade: h2c"), get("/up"),
                    get("/up", "Connection: upgrade", "Upgrade: websocket", version="1.0")):
        client = c.client()
        client.send(message + SMUGGLED)
        expect("status", client.answer().status, 502)
        client.close()
    still_serves(c, proxy)
    c.end()
    for link in backend.links:
        requests, rest = split_requests(link.got)
        expect("behind a switch that was none",
               ([one.target for one in requests if one.target == "/smuggled" and requests[0].target == "/up"], rest),
               ([], b""))


@case
def tunnels_end_with_either_side_client(c):
    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok())
                continue
            link.send(reply("101 Switching Protocols", "Upgrade: x", "Connection: upgrade"))
            if request.target == "/close":
                link.send(b"end")
                link.half_close()
            elif request.target == "/reset":
                link.settle()
                link.reset()
                return
            link.rest()
            return

    backend, proxy = c.start(script)
    client = c.client()
    client.send(upgrade("/close"))
    expect("status", client.answer().status, 101)
    client.expect_end("eof", b"end")
    client.close()
    client = c.client()
    client.send(upgrade("/reset"))
    expect("status", client.answer().status, 101)
    client.rest()
    still_serves(c, proxy)
    client = c.client()
    client.send(upgrade("/stay"))
    expect("status", client.answer().status, 101)
    client.reset()
    number = next(link.number for link in backend.links if any(one.target == "/stay" for one in link.requests))
    backend.wait_link_end(number)
    for target in ("/close", "/reset", "/stay"):
        proxy.expect_logged(target, status=101, outcome="upgraded")


@case
def a_malformed_101_backend(c):
    """A 101 with framing, or that upgrades to something else than was asked for."""
    answers = [
        reply("101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket", "Content-Length: 5") + b"hello",
        reply("101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked")
    ]

    def script(link):
        for request in link.each_request():
            link.send(answers[int(request.target[1:])] if request.target != "/control" else ok())

    _, proxy = c.start(script)
    for i in range(len(answers)):
        client = c.client()
        client.send(upgrade(f"/{i}"))
        expect("status", client.answer().status, 502)
        client.close()
    still_serves(c, proxy)


@case
def a_start_of_the_tunnel_in_many_pieces_client(c):
    """A megabyte each way at once."""
    size, sent = 1 << 20, bytes(range(256)) * 4096

    def script(link):
        for request in link.each_request():
            link.send(reply("101 Switching Protocols", "Upgrade: x", "Connection: upgrade"))
            feed = threading.Thread(target=lambda: (link.send(sent), link.half_close()), daemon=True)
            feed.start()
            body = link.rest()
            feed.join(10)
            expect("bytes to the backend", body == sent, True)
            return

    c.start(script)
    client = c.client()
    client.send(head(b"GET / HTTP/1.1", [b"Host: test", b"Connection: upgrade", b"Upgrade: x"]))
    expect("status", client.answer().status, 101)
    feed = threading.Thread(target=lambda: (client.send(sent), client.half_close()), daemon=True)
    feed.start()
    expect("bytes to the client", client.rest() == sent, True)
    feed.join(10)
    expect("bytes", size, len(sent))
    c.end()
