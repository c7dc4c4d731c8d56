"""reuse.py - whose answer it is: links are used again only when nothing of one exchange can reach the next."""
import threading

from checks import by_target, expect_own, still_serves
from kit import case, expect, expect_in
from wire import Ended, get, ok, ok_chunks, reply

POISON = ok(b"poison", "X-Poison: 1")


@case
def VA8_clean_links_are_shared_backend(c):
    """What a backend knows of a connection is the same client's or another's: links are shared, one after the other."""
    backend, proxy = c.start(by_target({}))
    for i in range(30):
        client = c.client()
        expect_own(client, f"/{i}")
        client.close()
    c.end()
    expect("links that carried requests", len([link for link in backend.links if link.requests]), 1)


@case
def VA8_unclean_links_are_not_shared_backend(c):
    """A backend with a state for each connection: what an unfinished exchange has left there is nobody else's."""
    def script(link):
        owner = None
        for request in link.each_request():
            if owner is None:
                owner = request.one("Cookie")
            body = f"{owner} {request.one('Cookie')}".encode()
            if request.target == "/cut":
                link.send(ok(body)[:-1])
            else:
                link.send(ok(body, "Connection: close"))
                return

    backend, proxy = c.start(script)
    for i in range(20):
        client = c.client()
        client.send(get("/cut", f"Cookie: user{i}"))
        backend.wait_requests(2 * i + 1)
        client.close() if i % 2 else client.reset()
        answer = c.ask(get("/whole", f"Cookie: other{i}"))
        expect("whose connection", answer.body, f"other{i} other{i}".encode())


@case
def VA8_a_login_of_the_connection_ends_the_link_backend(c):
    """Whatever asks for, or offers, a login by NTLM or Negotiate: the link serves nobody else."""
    def offer(scheme):
        return lambda link, request: link.send(ok(b"", f"WWW-Authenticate: {scheme}").replace(b"200 OK", b"401 No"))

    offers = {"/ntlm": "NTLM", "/negotiate": "negotiate dG9rZW4=", "/basic": "Basic realm=x", "/word": "Negotiated"}
    backend, proxy = c.start(by_target({target: offer(scheme) for target, scheme in offers.items()}))
    asks = [(get("/ntlm"), False), (get("/negotiate"), False), (get("/basic"), True), (get("/word"), True),
            (get("/", "Authorization: NTLM TlRMTVNTUAAB"), False), (get("/", "Authorization: negotiate YII="), False),
            (get("/", "Authorization: Basic bmVnb3RpYXRl"), True)]
    for ask, shared in asks:
        c.ask(ask)
        number = next(link.number for link in backend.links if backend.requests[-1] in link.requests)
        c.ask(get("/after"))
        after = next(link.number for link in backend.links if backend.requests[-1] in link.requests)
        expect(f"the same link after {ask[:60]}", number == after, shared)


@case
def VB4_two_answers_for_one_request_backend(c):
    """The second answer is seen by nobody, and the link is closed."""
    actions = {
        "/two": lambda link, request: link.send(ok(b"first") + POISON),
        "/chunks": lambda link, request: link.send(ok_chunks([b"first"]) + POISON),
        "/apart": lambda link, request: link.send(ok(b"first"), POISON),
        "/part": lambda link, request: link.send(ok(b"first") + POISON[:9]),
        "/byte": lambda link, request: link.send(ok(b"first") + b"\n"),
        "/line": lambda link, request: link.send(ok(b"first") + b"\r\n"),
        "/many": lambda link, request: link.send(ok(b"first") + POISON * 5000)
    }
    backend, proxy = c.start(by_target(actions))
    for target in actions:
        for same in (True, False):
            n = len(backend.requests)
            client = c.client()
            answer = client.ask(get(target))
            expect("the answer", (answer.status, answer.body), (200, b"first"))
            number = next(link.number for link in backend.links if backend.requests[n] in link.requests)
            if target == "/apart":
                backend.wait_link_end(number)
            other = client if same else c.client()
            for i in range(3):
                expect_own(other, f"/next{i}")
            backend.wait_link_end(number)
            expect("the last on its link", backend.links[number].heads[-1].target, target)
    expect("outcomes", {line.outcome for line in proxy.log()}, {"ok"})


@case
def VB4_two_answers_behind_pipelined_requests_backend(c):
    """Requests wait in line at lbproxy, not at the backend: the answer unasked is not taken for the next one's."""
    actions = {"/two": lambda link, request: link.send(ok(b"first") + POISON + POISON)}
    backend, proxy = c.start(by_target(actions))
    client = c.client()
    client.send(get("/two") + get("/a") + get("/two") + get("/b"))
    expect("answers", [client.answer().body for _ in range(4)], [b"first", b"/a", b"first", b"/b"])


@case
def VB4_an_answer_on_an_idle_link_backend(c):
    """Bytes on a link that nobody holds end it."""
    for poison in (POISON, b"x", b"\r\n", reply("100 Continue"), reply("408 Request Timeout", "Connection: close")):
        gate = threading.Event()

        def late(link, request, gate=gate, poison=poison):
            link.send(ok(b"first"))
            gate.wait(10)
            link.send(poison)

        backend = c.backend(by_target({"/late": late}))
        proxy = c.proxy(to=backend)
        client = c.client(proxy)
        expect_own(client, "/late", b"first")
        gate.set()
        number = next(link.number for link in backend.links if link.requests)
        backend.wait_link_end(number)
        expect_own(client, "/next")
        expect_own(c.client(proxy), "/other")
        expect("the last on its link", backend.links[number].heads[-1].target, "/late")


@case
def VB4_a_greeting_backend(c):
    """A backend that speaks first, unasked. On the wire that cannot be told from an early answer; but what is then too
    much on the link ends it, and nothing is waited for in vain."""
    def script(link):
        link.send(POISON)
        for request in link.each_request():
            link.send(ok(request.target.encode()))

    _, proxy = c.start(script)
    for target in ("/1", "/2", "/3"):
        expect_in("the answer's status", c.ask(get(target)).status, (200, 502, 503))
    still_serves(c, c.proxy(to=c.backend()))
    expect_in("outcomes", {line.outcome
                           for line in proxy.wait_log(3)} - {"ok", "unavailable"}, (set(), {"backend_broken"}))


@case
def VB7_cut_answers_backend(c):
    """An answer that ends before its end: the client is reset, or gets a 502; the link is not used again."""
    whole = [ok(b"hello"), ok_chunks([b"hello", b"world"]), ok(b"x" * 100000)]

    def script(link):
        for request in link.each_request():
            if request.target.count("/") == 4:
                i, n, how = request.target.split("/")[1:4]
                link.send(whole[int(i)][:int(n)])
                link.settle()
                if how == "reset":
                    link.reset()
                return
            link.send(ok(request.target.encode()))

    backend, proxy = c.start(script)
    for i, message in enumerate(whole):
        short = len(message) if len(message) < 1000 else 60
        for n in [*range(1, short), *(() if short == len(message) else (1000, len(message) - 1))]:
            for how in ("close", "reset") if n % 9 == 0 else ("close", ):
                client, target = c.client(), f"/{i}/{n}/{how}/"
                client.send(get(target))
                body_at = message.index(b"\r\n\r\n") + 4
                try:
                    answer = client.answer()
                    expect("status before the head was whole", (answer.status, n < body_at), (502, True))
                except Ended as ended:
                    expect("how a cut answer ends", (ended.how, n >= body_at), ("reset", True))
                client.close()
                outcomes = ("cut", ) if n >= body_at else ("backend_reset", ) if how == "reset" else (
                    "backend_closed", )
                expect_in(f"outcome of {target}", proxy.logged(target).outcome, outcomes)
                if how == "reset":
                    still_serves(c, proxy)
    expect_own(c.client(), "/next")
    c.end()
    for link in backend.links:
        expect("behind a cut answer", [one.target for one in link.heads[:-1] if one.target.count("/") == 4], [])
