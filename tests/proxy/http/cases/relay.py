"""relay.py - requests and answers under way together: pipelining, Expect, early answers."""
import threading

from checks import as_seen, expect_nothing_else, still_serves
from kernel import descriptors, patiently
from kit import case, expect, expect_in
from wire import Ended, chunked, get, ok, ok_chunks, post, post_chunks, reply

SMUGGLED = get("/smuggled")

# ---- pipelining ----


@case
def pipelined_requests_are_answered_in_order_client(c):
    backend, proxy = c.start()
    for n in (2, 3, 10, 50):
        kinds = [
            lambda i: get(f"/{i}"), lambda i: post(f"/{i}", b"%d" % i),
            lambda i: post_chunks(f"/{i}", [b"%d" % i, b"!"]), lambda i: get(f"/{i}", method="HEAD"),
            lambda i: post(f"/{i}", b"")
        ]
        client = c.client()
        client.send(b"".join(kinds[i % len(kinds)](i) for i in range(n)))
        for i in range(n):
            if i % len(kinds) == 3:
                expect("status of a HEAD", client.answer("HEAD").status, 200)
                continue
            seen = as_seen(client.answer())
            expect("target and body", (seen.target, seen.body),
                   (f"/{i}", [b"", b"%d" % i, b"%d!" % i, b"", b""][i % len(kinds)]))
        client.close()
    expect("the requests, in order", backend.targets(), [f"/{i}" for n in (2, 3, 10, 50) for i in range(n)])


@case
def pipelined_requests_cut_anywhere_client(c):
    _, proxy = c.start()
    message = get("/1") + post("/2", b"12") + post_chunks("/3", [b"3"]) + get("/4")
    for i in range(1, len(message)):
        client = c.client()
        client.send(message[:i], message[i:])
        expect("targets", [as_seen(client.answer()).target for _ in range(4)], ["/1", "/2", "/3", "/4"])
        client.close()


@case
def pipelined_behind_a_bad_one_client(c):
    """What is before a bad request is answered, what is behind it is never seen."""
    backend, proxy = c.start()
    for bad in (b"GET / HTTP/1.1\r\nHost: test\r\nA : b\r\n\r\n", b"\x00",
                b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n"
                b"Content-Length: 1\r\n\r\nx", b"BREW / HTTP/1.1\r\n\r\n"):
        client = c.client()
        client.send(get("/1") + post("/2", b"x") + bad + SMUGGLED)
        expect("targets", [as_seen(client.answer()).target for _ in range(2)], ["/1", "/2"])
        client.refused((400, 501))
    c.end()
    expect("targets", set(backend.targets()), {"/1", "/2"})
    expect_nothing_else(backend)


@case
def the_next_request_waits_for_the_answer_before_client(c):
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/1":
                gate.wait(10)
            link.send(ok(request.target.encode()))

    backend, proxy = c.start(script)
    client = c.client()
    client.send(get("/1") + get("/2"))
    backend.wait_requests(1)
    expect("another client", c.ask(get("/3")).body, b"/3")
    expect("targets until the first is answered", backend.targets(), ["/1", "/3"])
    gate.set()
    expect("answers", [client.answer().body for _ in range(2)], [b"/1", b"/2"])


@case
def close_is_obeyed_client(c):
    """After Connection: close, or on 1.0, the answer is the last; requests behind it are never seen."""
    backend, proxy = c.start()
    for message in (get("/1", "Connection: close"), get("/1", "Connection: foo, CLOSE"), get("/1", version="1.0"),
                    get("/1", "Connection: close", version="1.0"), get("/1", "Connection: keep-alive, close")):
        client = c.client()
        client.send(message + SMUGGLED)
        answer = client.answer()
        expect("Connection: close is said", "close" in answer.options() or b" HTTP/1.0" in message, True)
        client.expect_end()
    c.end()
    expect("targets", set(backend.targets()), {"/1"})


# ---- Expect: 100-continue ----


def inviting(link):
    """A script: a 100 as soon as a head has come, then the request's body back."""
    on_head = link.on_head

    def invite(message):
        on_head(message)
        link.send(reply("100 Continue"))

    link.on_head = invite
    for request in link.each_request():
        link.send(ok(request.body))


@case
def expect_100_then_body_client(c):
    backend, _ = c.start(inviting)
    for expectation in ("100-continue", "100-Continue"):
        client = c.client()
        client.send(get("/", "Content-Length: 5", "Expect: " + expectation, method="POST"))
        expect("what comes first", client.answer().status, 100)
        client.send(b"hello")
        answer = client.answer()
        expect("the answer", (answer.status, answer.body, "close" in answer.options()), (200, b"hello", False))
        expect("the next request", [one.status for one in (client.ask(get("/")), client.answer())], [100, 200])
        client.close()
    c.end()
    expect("links", len(backend.links) <= 2, True)


@case
def expect_100_without_waiting_client(c):
    """A client that sends its body without waiting, to a backend that says no 100."""
    backend, proxy = c.start()
    client = c.client()
    seen = as_seen(client.ask(post("/1", b"hello", "Expect: 100-continue") + get("/2")))
    expect("the first", (seen.target, seen.body), ("/1", b"hello"))
    expect("the second", as_seen(client.answer()).target, "/2")


def answer_at_heads(answers):
    """A script: as soon as the head of a request to /N has come, the answer N; then it reads on. Others get an echo."""
    def script(link):
        on_head = link.on_head

        def early(message):
            on_head(message)
            if message.target[1:] in answers:
                link.send(answers[message.target[1:]])

        link.on_head = early
        for request in link.each_request():
            if request.target[1:] not in answers:
                link.send(ok(request.target.encode()))

    return script


@case
def VB2_answer_without_100_backend(c):
    """A final answer in the place of a 100: the link, on which a body is still owed, is used by nobody else."""
    answers = {"417": ok(b"no", status="417 Expectation Failed"), "200": ok(b"yes"), "chunked": ok_chunks([b"yes"])}
    backend, proxy = c.start(answer_at_heads(answers))
    for target in answers:
        for framing in ("Content-Length: %d" % len(SMUGGLED), "Transfer-Encoding: chunked"):
            client = c.client()
            client.send(get("/" + target, framing, "Expect: 100-continue", method="POST"))
            answer = client.answer()
            expect("status, close", (answer.status, "close" in answer.options()),
                   (417 if target == "417" else 200, True))
            client.send(SMUGGLED)
            client.expect_end()
            expect("the next", c.ask(get("/next")).body, b"/next")
    c.end()
    expect("smuggled requests", [one for link in backend.links for one in link.heads if one.target == "/smuggled"], [])
    expect_last_on_their_links(backend, "/next")


def expect_last_on_their_links(backend, *others):
    """Behind a request that is none of the others nothing comes on its link."""
    for link in backend.links:
        for message in link.heads[:-1]:
            expect_in("a request before others on its link", message.target, others)


@case
def VB2_100_then_answer_backend(c):
    backend, proxy = c.start(answer_at_heads({"late": reply("100 Continue")}))
    client = c.client()
    client.send(get("/late", "Content-Length: 2", "Expect: 100-continue", method="POST"))
    expect("status", client.answer().status, 100)
    client.close()
    expect("the next", c.ask(get("/next")).body, b"/next")
    proxy.expect_logged("/late", outcome="client_gone", status=499)


@case
def a_body_that_comes_while_its_link_is_waited_for_client(c):
    """Head first, then the body, while another request has the only link: nothing of it is forgotten."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.target == "/hold":
                gate.wait(10)
            link.send(ok(request.target.encode() + request.body))

    backend, proxy = c.start(script, "--max-links", 1, "--connect-timeout", 5)
    holder = c.client()
    holder.send(get("/hold"))
    backend.wait_requests(1)
    starts = [(get("/1", "Content-Length: 60000", method="POST"), b"hello" * 12000),
              (post("/2", b"hello")[:-5], b"hello"), (get("/3")[:-2], b"\r\n"),
              (post_chunks("/4", [b"hello"])[:-15], chunked([b"hello"]))]
    clients = [c.client() for _ in starts]
    for client, (start, rest) in zip(clients, starts):
        client.send(start)
        client.settle()
        client.send(rest)  # in part it may have to wait at our end
    clients[1].settle()
    gate.set()
    expect("answers", [holder.answer().body, *[client.answer().body for client in clients]],
           [b"/hold", b"/1" + b"hello" * 12000, b"/2hello", b"/3", b"/4hello"])


# ---- early answers ----


@case
def VB3_early_answer_then_rest_client(c):
    """The answer comes while the body is still under way: it is told with close, the rest is dropped, and a request
    that hides in it is seen by nobody."""
    answers = {"404": ok(b"no", status="404 Not Found"), "chunked": ok_chunks([b"no"])}
    backend, proxy = c.start(answer_at_heads(answers))
    size = 200000
    for target in answers:
        for more in (b"", SMUGGLED * 3, b"x" * (size - 1000), SMUGGLED * (size // len(SMUGGLED))):
            client = c.client()
            client.send(get("/" + target, f"Content-Length: {size}", method="POST") + b"x" * 10)
            answer = client.answer()
            expect("body, close", (answer.body, "close" in answer.options()), (b"no", True))
            try:
                client.send(more)
            except Ended:
                pass
            client.expect_end()
    still_serves(c, proxy, "/next")
    c.end()
    seen = [one.target for link in backend.links for one in link.heads]
    expect("heads that the backend saw", set(seen), {"/404", "/chunked", "/next"})
    expect_last_on_their_links(backend, "/next")


@case
def VB3_early_refusal_then_rest_client(c):
    """The same with answers of lbproxy's own: what follows a refused head is read for a while, and dropped."""
    backend = c.backend()
    proxy = c.proxy("--connect-timeout", 1, to=backend)
    bad = get("/bad", "Content-Length: 100000", "A : b", method="POST")
    for more in (b"", SMUGGLED, SMUGGLED * 1000, b"x" * 100000 + SMUGGLED):
        client = c.client()
        client.send(bad + more)
        client.refused(400)
    still_serves(c, proxy)
    c.end()
    expect("requests", backend.targets(), ["/control"])
    expect_nothing_else(backend)


@case
def VB3_a_refused_sender_does_not_hold_on_client(c):
    """Who goes on sending after a refusal is cut off: after 1 MiB, or after 2 seconds."""
    _, proxy = c.start()
    client = c.client()
    client.send(b"GET / HTTP/1.1\r\nA : b\r\n\r\n")
    client.answer()
    sent = 0
    try:
        while sent < 1 << 26:
            client.send(b"x" * 65536)
            client.settle()
            sent += 65536
    except Ended:
        pass
    expect("ended before 64 MiB", sent < 1 << 26, True)
    expect("bytes taken", sent > 1000000, True)
    before, client = descriptors(proxy.pid), c.client()
    client.send(b"GET / HTTP/1.1\r\nA : b\r\n\r\n")
    client.refused(400)
    patiently(lambda: descriptors(proxy.pid) <= before, "lbproxy closes a connection on which nothing more comes", 5)


@case
def early_answer_while_both_stream_client(c):
    """Both ways go on after the answer has begun; an answer that ends after the request has is an ordinary one."""
    size = 300000

    def script(link):
        on_head = link.on_head

        def begin(message):
            on_head(message)
            if message.method == "POST":
                link.send(reply("200 OK", "Transfer-Encoding: chunked"))

        link.on_head = begin
        for request in link.each_request():
            link.send(chunked([b"%d" % len(request.body)]) if request.method == "POST" else ok())

    backend, proxy = c.start(script)
    client = c.client()
    client.send(get("/", f"Content-Length: {size}", method="POST"))
    line = client.line(0)
    expect("the answer begins", line, b"HTTP/1.1 200 OK")
    client.at = 0
    for _ in range(3):
        client.send(b"x" * (size // 3))
    answer = client.answer()
    expect("the answer", (answer.body, "close" in answer.options()), (b"%d" % size, True))
    client.expect_end()
    still_serves(c, proxy)
    c.end()


@case
def VE5_a_bad_chunk_after_the_answer_has_begun_client(c):
    """Nothing can be said any more: the connection ends without an end of the answer, and the backend sees no end of
    the request."""
    def script(link):
        on_head = link.on_head

        def begin(message):
            on_head(message)
            if message.target != "/control":
                link.send(reply("200 OK", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n")

        link.on_head = begin
        for _ in link.each_request():
            link.send(ok())

    backend, proxy = c.start(script)
    for bad in (b"zz\r\n", b"5\r\nhello0", b"0\r\nContent-Length: 1\r\n\r\n", b"-1\r\n"):
        client = c.client()
        client.send(get("/bad", "Transfer-Encoding: chunked", method="POST") + b"5\r\nhello\r\n")
        expect("the answer begins", client.line(0), b"HTTP/1.1 200 OK")
        client.send(bad + SMUGGLED)
        client.rest()
        expect("an end of the answer", b"0\r\n\r\n" in client.got, False)
    still_serves(c, proxy)
    c.end()
    expect("whole requests", backend.targets(), ["/control"])


@case
def an_answer_whole_with_the_request_keeps_the_link_backend(c):
    """An answer behind the whole request, sent in one piece with nothing after it: link and client stay."""
    backend, proxy = c.start()
    client = c.client()
    for i in range(20):
        expect("body", as_seen(client.ask(post("/", b"x" * i))).body, b"x" * i)
    client.close()
    c.end()
    expect("links that carried requests", len([link for link in backend.links if link.requests]), 1)
