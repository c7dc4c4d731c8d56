"""retry.py - links that die: what is tried again, on which link, and what is never sent twice."""
import threading

from checks import by_target, expect_own, still_serves
from kernel import diag, patiently
from kit import case, expect, expect_range
from wire import Ended, get, ok, ok_chunks, post, post_chunks, reply


def over(function):
    """The same action, after which the backend's end of the link is closed."""
    return lambda link, request: (function(link, request), "over")[1]


def dies_on_second(how):
    """A script: the first request on a link is answered; when the second has come, the link ends without an answer. On
    later links all are answered."""
    def script(link):
        for request in link.each_request():
            if link.number == 0 and len(link.heads) == 2:
                link.reset() if how == "reset" else link.close()
                return
            link.answer_to(request, request.target.encode())

    return script


@case
def VB6_a_request_that_crosses_the_close_is_tried_again_backend(c):
    """GET, HEAD, OPTIONS and TRACE without a body, once, on a fresh link."""
    for how in ("close", "reset"):
        for method in ("GET", "HEAD", "OPTIONS", "TRACE"):
            backend = c.backend(dies_on_second(how))
            proxy = c.proxy(to=backend)
            expect("the first", c.ask(get("/1"), proxy=proxy).status, 200)
            expect("the second", c.ask(get("/2", method=method), proxy=proxy).status, 200)
            expect("targets", [[one.target for one in link.heads] for link in backend.links if link.heads],
                   [["/1", "/2"], ["/2"]])
            proxy.expect_logged("/2", status=200, tries=2, reused=0, outcome="ok")
            proxy.expect_logged("/1", status=200, tries=1, reused=0, outcome="ok")


@case
def VB6_the_second_try_is_on_a_fresh_link_backend(c):
    """Several links have been idle, all of which the backend has given up: the second try takes none of them."""
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if len(link.heads) == 2:
                return
            if request.target == "/hold":
                gate.wait(10)
            link.answer_to(request, b"ok")

    backend, proxy = c.start(script)
    clients = [c.client() for _ in range(3)]
    for client in clients:
        client.send(get("/hold"))
    backend.wait_requests(3)
    gate.set()
    expect("statuses", [client.answer().status for client in clients], [200] * 3)
    expect("status of the next", clients[0].ask(get("/next")).status, 200)
    proxy.expect_logged("/next", tries=2, reused=0)
    expect("links that it was sent on",
           [link.number for link in backend.links if any(one.target == "/next" for one in link.heads)][1:], [3])


@case
def VB6_a_body_is_never_sent_twice_backend(c):
    for how in ("close", "reset"):
        for message in (post("/2", b"hello"), post("/2", b""), post_chunks("/2", [b"hello"]), post("/2", b"x" * 100000),
                        get("/2", method="POST"), get("/2", method="PUT"), get("/2", method="DELETE"),
                        get("/2", method="PATCH"), post("/2", b"hello", method="GET"),
                        post_chunks("/2", [b"x"], method="OPTIONS"), get("/2", method="PURGE")):
            backend = c.backend(dies_on_second(how))
            proxy = c.proxy(to=backend)
            expect("the first", c.ask(get("/1"), proxy=proxy).status, 200)
            expect("the second", c.ask(message, proxy=proxy).status, 502)
            proxy.expect_logged("/2",
                                status=502,
                                tries=1,
                                reused=1,
                                outcome="backend_closed" if how == "close" else "backend_reset")
            still_serves(c, proxy)
            expect(f"how often {message[:40]!r} was sent",
                   sum(one.target == "/2" for link in backend.links for one in link.heads), 1)


@case
def VB6_two_failures_are_enough_backend(c):
    for how in ("close", "reset"):

        def script(link, how=how):
            for request in link.each_request():
                if request.target == "/bad":
                    link.reset() if how == "reset" else link.close()
                    return
                link.send(ok())

        backend = c.backend(script)
        proxy = c.proxy(to=backend)
        expect("status", c.ask(get("/bad"), proxy=proxy).status, 502)
        proxy.expect_logged("/bad",
                            status=502,
                            tries=2,
                            outcome="backend_closed" if how == "close" else "backend_reset")
        expect("how often it was sent", len([one for link in backend.links for one in link.heads]), 2)
        still_serves(c, proxy)


@case
def VB6_no_second_try_once_a_byte_has_come_backend(c):
    actions = {
        "/byte": over(lambda link, request: (link.send(b"H"), link.settle())),
        "/interim": over(lambda link, request: (link.send(reply("103 Early Hints")), link.settle())),
        "/head": over(lambda link, request: (link.send(reply("200 OK", "Content-Length: 5")), link.settle()))
    }
    backend, proxy = c.start(by_target(actions))
    for target in actions:
        client = c.client()
        client.send(get(target))
        try:
            answer = client.answer()
            if answer.status == 103:
                answer = client.answer()
            expect("status", answer.status, 502)
        except Ended as ended:
            expect("how it ends", (target, ended.how), (target if target != "/byte" else "", "reset"))
        proxy.expect_logged(target, tries=1)
    still_serves(c, proxy)
    c.end()
    expect("how often each was sent", backend.targets(), [*actions, "/control"])


@case
def VB6_a_link_closed_while_idle_is_not_used_backend(c):
    """The end of an idle link is seen before the next request is sent: one try, POST too."""
    for how in ("close", "reset"):
        gate = threading.Event()

        def script(link, how=how, gate=gate):
            for request in link.each_request():
                link.send(ok(request.target.encode()))
                if request.target == "/1":
                    gate.wait(10)
                    link.reset() if how == "reset" else link.close()
                    return

        backend = c.backend(script)
        proxy = c.proxy(to=backend)
        client = c.client(proxy)
        expect_own(client, "/1")
        link = next(link for link in backend.links if link.requests)
        places = link.sock.getpeername(), link.sock.getsockname()
        gate.set()
        patiently(lambda: link_is_gone(places), "lbproxy closes the link")
        expect("status", client.ask(post("/2", b"hello")).status, 200)
        proxy.expect_logged("/2", status=200, tries=1, reused=0, outcome="ok")
        expect("targets", backend.targets(), ["/1", "/2"])


def link_is_gone(places):
    return diag.queues(*places) is None


@case
def VB6_posts_against_closes_backend(c):
    """A backend that closes each link as soon as it has answered, and POSTs without a pause: some cross. Each is
    answered or is a 502; none is seen twice."""
    def script(link):
        for request in link.each_request():
            link.send(ok(request.target.encode()))
            if link.number % 2:
                link.reset()
            return

    backend, proxy = c.start(script)

    def run(k, seen):
        client = c.client()
        for i in range(150):
            target = f"/{k}/{i}"
            answer = client.ask(post(target, b"hello"))
            seen.append((answer.status, answer.body == target.encode()))
            if "close" in answer.options():
                client.close()
                client = c.client()

    seen = [[] for _ in range(4)]
    threads = [threading.Thread(target=run, args=(k, seen[k])) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    seen = [one for some in seen for one in some]
    expect("requests answered", len(seen), 600)
    expect("kinds of answers", set(seen) <= {(200, True), (502, False), (503, False)}, True)
    c.end()
    targets = [one.target for link in backend.links for one in link.heads]
    expect("requests seen twice", len(targets) - len(set(targets)), 0)
    print(f"note: of 600 {seen.count((502, False))} crossed a close, {seen.count((503, False))} had no link")


@case
def VB6_a_reset_after_an_answer_is_no_outage_backend(c):
    """A backend that answers, and resets the connection then, serves: who comes next is not told that it is down."""
    def script(link):
        for request in link.each_request():
            link.send(ok(request.target.encode()))
            link.settle()
            link.reset()
            return

    backend, proxy = c.start(script)
    statuses = [c.ask(get(f"/{i}")).status for i in range(20)]
    expect("statuses", (statuses.count(200), statuses.count(503)), (20, 0))


@case
def an_answer_that_says_close_ends_the_link_backend(c):
    kinds = [
        ok(b"x", "Connection: close"),
        ok(b"x", "Connection: foo, CLOSE"),
        ok(b"x", version="1.0"),
        ok_chunks([b"x"], "Connection: close"),
        reply("204 No Content", "Connection: close")
    ]
    stays = [ok(b"x", "Connection: keep-alive", version="1.0"), ok(b"x", "Connection: foo"), ok(b"x")]

    def script(link):
        for request in link.each_request():
            link.send((kinds + stays)[int(request.target[1:])])

    backend, proxy = c.start(script)
    client = c.client()
    for i in range(len(kinds)):
        n = len(backend.requests)
        answer = client.ask(get(f"/{i}"))
        expect("what the client is told", "close" in answer.options(), False)
        backend.wait_link_end(next(link.number for link in backend.links if backend.requests[n] in link.requests))
    n = len(backend.requests)
    for i in range(len(stays)):
        client.ask(get(f"/{len(kinds) + i}"))
    c.end()
    expect("links that were used again",
           len([link for link in backend.links if backend.requests[-1] in link.requests and len(link.requests) == 3]),
           1)
    expect("requests", len(backend.requests), n + 3)


@case
def a_refused_connection_is_503_backend(c):
    backend = c.backend()
    backend.stop_listening()
    proxy = c.proxy(to=backend)
    for target in ("/1", "/2", "/3"):
        answer = c.ask(get(target))
        expect("status", answer.status, 503)
        expect_range("Retry-After", int(answer.one("Retry-After")), 1, 5)
        proxy.expect_logged(target,
                            status=503,
                            outcome="unavailable",
                            reused="-" if proxy.logged(target).reused == "-" else 0)
    answer = c.ask(post("/4", b"hello"))
    expect("status", answer.status, 503)
    if len(answer.body) < 10:
        raise AssertionError(f"no reason: {answer.body}")


@case
def a_backend_that_is_down_is_passed_by_backend(c):
    down, up = c.backend(), c.backend(by_target({}))
    down.stop_listening()
    proxy = c.proxy(to=[down, up])
    for i in range(20):
        expect("status", c.ask(post(f"/{i}", b"x"), proxy=proxy).status, 200)
        expect("backend in the log", proxy.logged(f"/{i}").backend, up.name)
