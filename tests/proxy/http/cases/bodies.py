"""bodies.py - answers with interim ones before them, without a body, and with one that ends when the backend closes."""
from cases.answers import plain
from checks import answer_each, answering, ask_for, check_broken, refuse_answers, still_serves
from kit import case, expect, expect_in
from split import try_each
from wire import chunked, get, ok, ok_chunks, reply


@case
def VE8_interim_answers_backend(c):
    early = [
        reply("100 Continue"),
        reply("102 Processing", "A: b"),
        reply("103 Early Hints", "Link: </a>; rel=preload", "Link: </b>"),
        reply("199 x"),
        reply("103 Early Hints", "Content-Length: 0")
    ]

    def script(link):
        for request in link.each_request():
            n = int(request.target[1:])
            link.send(b"".join(early[i % len(early)] for i in range(n)) + ok(b"%d" % n))

    backend, proxy = c.start(script)
    for n in (0, 1, 5, 16):
        client = c.client()
        client.send(get(f"/{n}"))
        for i in range(n):
            seen, wanted = client.answer(), early[i % len(early)]
            expect("status line", b"HTTP/1.1 %d %s" % (seen.status, seen.reason.encode()), wanted.split(b"\r\n")[0])
            expect("fields", [f"{name}: {value}".encode() for name, value in plain(seen)],
                   [line for line in wanted.split(b"\r\n")[1:-2] if not line.startswith(b"Content-Length")])
            expect("framing of a 1xx", [seen.all(name) for name in ("Content-Length", "Transfer-Encoding")], [[], []])
        expect("the answer", client.answer().body, b"%d" % n)
        expect("of a 1.0 client", c.ask(get(f"/{n}", version="1.0")).body, b"%d" % n)
    c.end()
    expect("links", len(backend.links) <= 2, True)


@case
def interim_answers_cut_anywhere_backend(c):
    message = reply("100 Continue") + reply("103 Early Hints", "Link: </a>") + ok(b"hello")

    def look(client):
        seen = [client.answer() for _ in range(3)]
        return [one.status for one in seen], plain(seen[1]), seen[2].body

    _, proxy = c.start(answering([message]))
    asked = [request for _, request in ask_for([message])]
    wanted = [100, 103, 200], [("Link", "</a>")], b"hello"
    expect("what clients see", [one for one in try_each(proxy.address, asked, look) if one != wanted], [])


@case
def VE8_too_many_interim_answers_backend(c):
    """The seventeenth is a 502, whether or not 10^6 would follow; those before it were passed on."""
    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok())
                continue
            for _ in range(int(request.target[1:]) // 17):
                link.send(reply("100 Continue") * 17)

    backend, proxy = c.start(script)
    for target in ("/17", "/1000000"):
        client = c.client()
        client.send(get(target))
        statuses = []
        while (seen := client.answer()).status == 100:
            statuses.append(seen.status)
        expect("interim answers, then", (len(statuses), seen.status), (16, 502))
        proxy.expect_logged(target, outcome="backend_broken", status=502)
        client = c.client()
        client.send(get(target, version="1.0"))
        expect("what a 1.0 client gets", client.answer().status, 502)
    still_serves(c, proxy)


@case
def VE8_bad_interim_answers_backend(c):
    refuse_answers(c, [
        reply("100 Continue", field) + ok(b"hello") for field in ("Content-Length: 5", "Transfer-Encoding: chunked",
                                                                  "Content-Length: 0\r\nContent-Length: 0", "A : b")
    ])


@case
def VE8_101_that_nobody_asked_for_backend(c):
    refuse_answers(c, [
        reply("101 Switching Protocols", "Connection: upgrade", "Upgrade: x"),
        reply("101 Switching Protocols"),
        reply("101 Switching Protocols") + ok(b"hello")
    ])


@case
def VE8_answers_without_a_body_backend(c):
    goods = [
        reply("204 No Content", "A: b"),
        reply("204 No Content", "Content-Length: 0"),
        reply("304 Not Modified", "ETag: \"x\""),
        reply("304 Not Modified", "Content-Length: 5"),
        reply("304 Not Modified", "Transfer-Encoding: chunked")
    ]
    seen, backend, proxy = answer_each(c, goods)
    expect("statuses", [one.status for one in seen], [204, 204, 304, 304, 304])
    expect("Content-Length of a 204", [one.all("Content-Length") for one in seen[:2]], [[], []])
    if len(backend.links) > 60:
        raise AssertionError(f"{len(backend.links)} links for {len(backend.requests)} answers")
    old = c.client()
    old.send(get("/0/0", version="1.0"))
    expect("a 204 to a 1.0 client", (old.answer().status, old.rest()), (204, b""))


@case
def VE8_204_with_a_body_backend(c):
    refuse_answers(c, [
        reply("204 No Content", "Content-Length: 5") + b"hello",
        reply("204 No Content", "Content-Length: 5"),
        reply("204 No Content", "Transfer-Encoding: chunked") + chunked([b"hello"]),
        reply("204 No Content", "Transfer-Encoding: chunked") + chunked([])
    ])


def bodyless(c, message, method):
    """Sent in one piece: 502. Bytes that come behind a head that was told: nobody sees them, and the link is closed."""
    cut = message.index(b"\r\n\r\n") + 4

    def script(link):
        for request in link.each_request():
            if request.target == "/whole":
                link.send(message)
            elif request.target == "/cut":
                link.send(message[:cut], message[cut:])
            else:
                link.send(ok(b"control"))

    backend, proxy = c.start(script)
    client = c.client()
    client.send(get("/whole", method=method))
    expect("status", client.answer(method).status, 502)
    client.close()
    proxy.expect_logged("/whole", outcome="backend_broken")
    client = c.client()
    client.send(get("/cut", method=method))
    expect_in("status", client.answer(method).status, (200, 204, 304))
    backend.wait_link_end(
        next(link.number for link in backend.links if any(one.target == "/cut" for one in link.requests)))
    expect("the next answer", client.ask(get("/next")).body, b"control")
    client.close()
    c.end()


@case
def VE8_a_body_where_none_may_be_backend(c):
    bodyless(c, ok(b"hello"), "HEAD")
    bodyless(c, ok_chunks([b"hello"]), "HEAD")
    bodyless(c, ok(b"hello", status="304 Not Modified"), "GET")
    bodyless(c, reply("204 No Content") + b"hello", "GET")
    bodyless(c, ok(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "HEAD")


@case
def head_backend(c):
    """The answer to a HEAD has no body, whatever it says of one, and the link is used again."""
    goods = [
        reply("200 OK", "Content-Length: 5"),
        reply("200 OK", "Content-Length: 0"),
        reply("200 OK", "Transfer-Encoding: chunked"),
        reply("404 Not Found", "Content-Length: 9223372036854775807")
    ]
    seen, backend, _ = answer_each(c, goods, "HEAD")
    expect("Content-Length",
           [one.one("Content-Length") for one in seen if one.one("Content-Length") not in (None, "0")],
           ["5", "9223372036854775807"])
    if len(backend.links) > 60:
        raise AssertionError(f"{len(backend.links)} links for {len(backend.requests)} answers")


@case
def until_close_backend(c):
    """Chunked to 1.1 clients, until close to 1.0 ones; the link is not used again."""
    messages = [
        reply("200 OK") + b"hello",
        reply("200 OK", version="1.0") + b"hello",
        reply("200 OK", "Connection: close") + b"hello",
        reply("200 OK")
    ]
    seen, backend, proxy = answer_each(c, messages, at_end=lambda link: link.close())
    expect("framing and body", [(one.framing, one.body) for one in seen],
           [("chunked", b"hello")] * 3 + [("chunked", b"")])
    for i, body in enumerate([b"hello", b"hello", b"hello", b""]):
        client = c.client()
        one = client.ask(get(f"/{i}/0", version="1.0"))
        expect("of a 1.0 client", (one.framing, one.body, one.minor), ("close", body, 1))
        client = c.client()
        one = client.ask(get(f"/{i}/0", "Connection: keep-alive", version="1.0"))
        expect("of a 1.0 client that would stay", (one.framing, one.body, "keep-alive" in one.options()),
               ("close", body, False))
    client = c.client()
    expect("on a connection that stays", [client.ask(get(f"/{i}/0")).body for i in (0, 1, 3)],
           [b"hello", b"hello", b""])


@case
def until_close_cut_by_a_reset_backend(c):
    """A reset is no end: the client must not take what has come for the whole."""
    _, proxy = c.start(
        answering(
            [reply("200 OK") + b"hello",
             ok(b"hello")[:-1],
             ok_chunks([b"hello"])[:-1],
             ok_chunks([b"hello"])[:-5]],
            at_end=lambda link: (link.settle(), link.reset())))
    for target in ("/0/0", "/0/20", "/1/0", "/2/0", "/3/0"):
        for version in ("1.1", "1.0"):
            still_serves(c, proxy)
            client = c.client()
            client.send(get(target, version=version))
            check_broken(client, "GET", True)


@case
def http_1_0_clients_backend(c):
    """Chunked answers go to 1.0 clients without chunks, and 1.0 answers to 1.1 clients as 1.1."""
    seen, _, proxy = answer_each(c,
                                 [ok_chunks([b"hel", b"lo"]),
                                  ok(b"hello"), ok(b"hello", version="1.0")],
                                 version="1.0")
    expect("framing", [(one.framing, one.body, one.one("Transfer-Encoding")) for one in seen],
           [("close", b"hello", None), ("length", b"hello", None), ("length", b"hello", None)])
    client = c.client()
    for i in (1, 2):
        one = client.ask(get(f"/{i}/0", "Connection: keep-alive", version="1.0"))
        expect("of a 1.0 client that stays", (one.body, one.options()), (b"hello", ["keep-alive"]))
    one = client.ask(get("/0/0", "Connection: keep-alive", version="1.0"))
    expect("where the framing does not permit", (one.framing, one.body, "keep-alive" in one.options()),
           ("close", b"hello", False))
