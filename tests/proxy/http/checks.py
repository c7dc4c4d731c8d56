"""checks.py - what is asked of many messages alike: passed on as expected, or refused and seen by nobody.

Each message is sent whole and cut in two at every position, each time on a connection of its own."""
import json
from types import SimpleNamespace

from kernel import patiently
from kit import Ended, echo, expect, expect_in
from split import cuts, send_each, try_each
from wire import get, ok, split_requests

SHORT = 260  # bytes: what is longer is cut at some positions only
OURS = ("x-forwarded-for", "x-forwarded-proto", "via", "x-request-id")
FRAMING = ("content-length", "transfer-encoding")


def some_cuts(message):
    """The message whole, and in two: everywhere when it is short, else at some sixty places."""
    return cuts(message, 1 if len(message) <= SHORT else len(message) // 60)


def still_serves(c, proxy, target="/control"):
    """Another client is served: at once, or after a 503 or two, since a backend that reset a link is left alone for a
    moment."""
    def served():
        status = c.ask(get(target), proxy=proxy).status
        expect_in(f"status of {target}", status, (200, 503))
        return status == 200

    patiently(served, f"{target} is answered")


# ---- requests ----


def as_seen(answer):
    """What echo() says that the backend saw."""
    expect("status", answer.status, 200)
    method, target, fields, framing, body, trailers = json.loads(answer.body)
    fields, trailers = [tuple(field) for field in fields], [tuple(field) for field in trailers]
    values = {}
    for name, value in fields:
        values.setdefault(name.lower(), []).append(value)
    plain = [field for field in fields if field[0].lower() not in OURS + FRAMING + ("host", )]
    return SimpleNamespace(method=method,
                           target=target,
                           fields=fields,
                           plain=plain,
                           framing=framing,
                           body=body.encode("latin-1"),
                           trailers=trailers,
                           values=values)


def pass_on(c, proxy, message):
    """Sends a good request in all ways; what the backend sees is always the same, and is returned."""
    method = message.split(b" ")[0].decode()
    answers = try_each(proxy.address, some_cuts(message), lambda client: client.answer(method).body)
    expect(f"different things that a backend sees of {message!r}", len(set(answers)), 1)
    return as_seen(c.ask(message, proxy=proxy))


def refuse_each(c, messages, status=400, *options, partly=False, script=echo):
    """Each bad request is refused so, with all that follows it. The backend sees nothing of any; with `partly`, where
    the fault is in the body, never the whole of one."""
    backend, proxy = c.start(script, *options)
    for message in messages:
        try_each(proxy.address, [[message + get("/smuggled")]] + some_cuts(message),
                 lambda client: client.refused(status) and None)
    outcomes = {(line.outcome, line.status) for line in proxy.log()}
    statuses = status if isinstance(status, tuple) else (status, )
    if not outcomes or not outcomes <= {("refused", str(one)) for one in statuses}:
        raise AssertionError(f"outcomes in the log: {outcomes}, expected refused {status}")
    still_serves(c, proxy)
    c.end()
    expect("whole requests that the backend saw", backend.targets(), ["/control"])
    if not partly:
        expect_nothing_else(backend)
    return backend


def expect_nothing_else(backend):
    """No link has carried anything but whole requests."""
    for link in backend.links:
        expect("bytes on a link that are no whole request", split_requests(link.got)[1], b"")


# ---- answers ----


def answering(answers, at_end=None):
    """A script: to /N/CUT it sends answers[N], cut at CUT (0: whole), and then at_end(link), if any; to anything else
    an ok."""
    def script(link):
        for request in link.each_request():
            words = request.target.split("/")
            if len(words) != 3:
                link.send(ok(b"control"))
                continue
            message, cut = answers[int(words[1])], int(words[2])
            link.send(*([message[:cut], message[cut:]] if cut else [message]))
            if at_end is not None:
                at_end(link)
                return

    return script


def ask_for(answers, method="GET", version="1.1"):
    """The requests that go with answering(): each answer whole, and cut in some or all places. Yields (answer number,
    [request])."""
    for i, message in enumerate(answers):
        step = 1 if len(message) <= SHORT else len(message) // 60
        for cut in [0, *range(1, len(message), step)]:
            yield i, [get(f"/{i}/{cut}", method=method, version=version)]


def answer_each(c, answers, method="GET", version="1.1", at_end=None, *, options=()):
    """Good answers: each as the client sees it, the same in all ways of being cut. Returns them, and backend and
    proxy."""
    backend, proxy = c.start(answering(answers, at_end), *options)
    seen = [None] * len(answers)
    asked = list(ask_for(answers, method, version))
    looks = try_each(proxy.address, [request for _, request in asked], lambda client: client.answer(method))
    for (i, request), answer in zip(asked, looks):
        form = (answer.status, answer.reason, answer.fields, answer.framing, answer.body, answer.trailers)
        if seen[i] is None:
            seen[i] = answer
            answer.form = form
        expect(f"what the client sees of {answers[i]!r} after {request[0]!r}", form, seen[i].form)
    return seen, backend, proxy


def look_at_broken(client):
    """What comes of a broken answer: (status, how the client's connection ended)."""
    try:
        answer = client.answer()
    except Ended as ended:
        return "cut", ended.how
    client.rest()
    return answer.status, client.end


def refuse_answers(c, answers, method="GET", *, partly=False, options=(), at_end=None):
    """Bad answers: the client gets a 502; with `partly`, where the fault is in the body, that or a reset, never a whole
    answer. The link is closed, and the next client is served. Cut or not."""
    backend, proxy = c.start(answering(answers, at_end), *options)
    asked = list(ask_for(answers, method))
    for (client, message), (i, _) in zip(send_each(proxy.address, [request for _, request in asked]), asked):
        try:
            check_broken(client, method, partly)
        except Exception as fault:
            raise AssertionError(f"answer {answers[i]!r} to {message[0]!r}: {type(fault).__name__}: {fault}") from None
    still_serves(c, proxy)
    outcomes = {line.outcome for line in proxy.wait_log(len(asked)) if line.target.count("/") == 2}
    allowed = {"backend_broken", "cut"} if partly else {"backend_broken"}
    if not outcomes <= allowed:
        raise AssertionError(f"outcomes in the log: {outcomes}, expected {allowed}")
    c.end()
    for link in backend.links:
        if any(request.target.count("/") == 2 for request in link.requests[:-1]):
            raise AssertionError(f"a link was used again after a broken answer: {link.requests}")
    expect("broken answers asked for", sum(target.count("/") == 2 for target in backend.targets()), len(asked))


def check_broken(client, method, partly):
    try:
        answer = client.answer(method)
    except Ended as ended:
        expect("how the connection ends inside an answer", (partly, ended.how), (True, "reset"))
        return
    expect("status", answer.status, 502)
    if method != "HEAD":
        expect_in("lines of the body", answer.body.count(b"\n"), (1, ))
    if "close" in answer.options():
        client.expect_end()


# ---- scripts ----


def by_target(actions):
    """A script: actions[target](link, request) for these targets, and for all others an answer that says the target."""
    def script(link):
        for request in link.each_request():
            action = actions.get(request.target)
            if action is None:
                link.answer_to(request, request.target.encode())
            elif action(link, request) == "over":
                return

    return script


def expect_own(client, target, wanted=None):
    answer = client.ask(get(target))
    expect("the answer", (answer.status, answer.body), (200, wanted or target.encode()))
