"""programs.py - the example programs of this library's second half as their users run them: framed_fanout before real
servers, and lineproto before one of lines."""

import socket
import time

import stage
from lines import Lines
from stage import Listener, Server, case, equal


def nobody():
    """An address where nobody listens: it was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "127.0.0.1:%d" % free.getsockname()[1]


def fanout(*arguments):
    """(exit status, lines of the answers, the line of the count, stderr). It has time, where the case says nothing."""
    done = stage.run("framed_fanout", "--timeout", "50", *arguments)
    lines = done.stdout.splitlines()
    return done.returncode, sorted(lines[:-1]), lines[-1] if lines else "", done.stderr


# ---- framed_fanout ----


@case
def fanout_prints_all_answers():
    with Server() as one, Server() as two, Server() as three:
        texts = [one.text, two.text, three.text]
        status, lines, count, errors = fanout("echohello\\", *texts)
        equal((status, count, errors), (0, "3 of 3", ""))
        equal(lines, sorted(f"{text}: hello\\x5c" for text in texts))
        status, lines, _, _ = fanout("total", *texts)
        equal(lines, sorted(f"{text}: " + "\\x00" * 16 for text in texts))


@case
def fanout_has_what_there_is_at_its_deadline():
    gone = nobody()
    with Server() as fast, Server("--delay", "50") as slow:
        begin = time.monotonic()
        status, lines, count, _ = fanout("--timeout", "2", "--wait", "echo1", fast.text, slow.text, gone)
        equal(2 <= time.monotonic() - begin < 30, True)
        equal((status, count), (1, "1 of 3"))
        equal(
            lines,
            sorted(
                [
                    f"{fast.text}: 1",
                    f"{slow.text}: missing: no answer in time; may have been done",
                    f"{gone}: missing: not up again in time (connection refused); not sent",
                ]
            ),
        )


@case
def fanout_ends_when_enough_have_answered():
    with Server() as one, Server() as two, Server("--delay", "50") as slow:
        status, lines, count, _ = fanout("--wanted", "2", "echo1", one.text, slow.text, two.text)
        equal((status, count), (0, "2 of 3"))
        equal(any(line.startswith(f"{slow.text}: missing: given up; ") for line in lines), True)  # sent by now, or not


@case
def fanout_ends_when_enough_cannot_come():
    gone = nobody()
    with Server("--delay", "50") as slow:
        status, lines, count, _ = fanout("--wanted", "2", "echo1", slow.text, gone)
        equal((status, count), (1, "0 of 2"))
        equal(f"{gone}: missing: connection refused; not sent" in lines, True)


@case
def fanout_hears_every_server_though_one_is_gone():
    gone = nobody()
    with Server("--delay", "0.2") as one, Server() as two:
        status, lines, count, _ = fanout("--timeout", "20", "echo1", gone, one.text, two.text)
        equal((status, count), (1, "2 of 3"))
        equal(lines, sorted([f"{gone}: missing: connection refused; not sent", f"{one.text}: 1", f"{two.text}: 1"]))


@case
def fanout_is_told_when_its_token_is_not_welcome():
    listener = Listener(lambda session: session.goaway(0, 6, "who are you?"))
    status, lines, count, _ = fanout("--token", "sesame", "echo1", listener.address)
    listener.close()
    equal((status, count, listener.sessions[0].token), (1, "0 of 1", b"sesame"))
    equal(lines, [f"{listener.address}: missing: handshake failed; not sent"])


@case
def fanout_tries_again_what_was_not_processed():
    def serve(session):
        session.welcome()
        request, payload = session.take()
        if len(listener.sessions) < 3:
            session.goaway(request - 1)
        else:
            session.answer(request, payload)
        session.take()

    for retries, expected in (1, (1, "0 of 1")), (2, (0, "1 of 1")):
        listener = Listener(serve)
        status, lines, count, _ = fanout("--retries", retries, "--wait", "x", listener.address)
        listener.close()
        equal((status, count, listener.faults), (*expected, []))
        if status:
            equal(lines[0].endswith("; not sent in 2 attempts"), True)


@case
def fanout_prints_a_servers_error_in_its_words():
    with Server() as one, Server() as two:
        for wanted, count in ("1", "0 of 2"), ("2", "0 of 2"):
            status, lines, found, _ = fanout("--wanted", wanted, "what?", one.text, two.text)
            equal((status, found), (1, count))
            equal(any(line.endswith(": missing: error 256: no such call") for line in lines), True)
        equal(len(lines), 2)


@case
def fanout_refuses_what_cannot_be_meant():
    for arguments in (
        ("echo",),
        ("echo", "localhost"),
        ("--wanted", "2", "echo", "127.0.0.1:1"),
        ("--wanted", "0", "echo", "127.0.0.1:1"),
        ("--timeout", "soon", "echo", "127.0.0.1:1"),
        ("--retries", "-1", "echo", "127.0.0.1:1"),
        ("--token", "x" * 4097, "echo", "127.0.0.1:1"),
        ("--unknown", "echo", "127.0.0.1:1"),
    ):
        status, lines, _, errors = fanout(*arguments)
        equal((arguments, status, lines, errors.count("\n")), (arguments, 2, [], 1))
        equal(errors.startswith("framed_fanout: "), True)


# ---- lineproto ----


def lineproto(server, *lines, user="ann", password="secret"):
    done = stage.run("lineproto", server.address, user, password, *lines)
    server.close()
    return done.returncode, done.stdout.splitlines(), done.stderr


LOGIN = ["USER ann", "PASS secret"]


def served(server, *expected):
    """What connections served. While one is being cleaned another may be opened, and then not be needed."""
    equal(server.heard[: len(expected)], list(expected))
    for heard in server.heard[len(expected) :]:
        equal(heard, LOGIN[: len(heard)])


@case
def lineproto_logs_in_once_and_cleans_between():
    server = Lines()
    equal(lineproto(server, "LIST", "STAT", "NOOP"), (0, ["+OK LIST", "+OK STAT", "+OK NOOP"], ""))
    served(server, [*LOGIN, "LIST", "RSET", "STAT", "RSET", "NOOP", "RSET"])


@case
def lineproto_says_why_its_login_was_refused():
    for word in "USER", "PASS":
        server = Lines({word: b"-ERR you are not welcome\r\n"})
        status, lines, errors = lineproto(server, "LIST")
        equal((status, lines, errors.count("\n")), (1, [], 1))
        equal("handshake failed: -ERR you are not welcome" in errors, True)


@case
def lineproto_logs_in_again_when_its_server_was_restarted():
    server = Lines({"RSET": [b"+OK\r\n", None, b"+OK\r\n"]})  # the second is its end, in order
    equal(lineproto(server, "LIST", "STAT", "NOOP"), (0, ["+OK LIST", "+OK STAT", "+OK NOOP"], ""))
    served(server, [*LOGIN, "LIST", "RSET", "STAT", "RSET"], [*LOGIN, "NOOP", "RSET"])


@case
def lineproto_ends_at_a_line_that_is_too_long():
    most = b"+OK " + b"x" * (512 - 6)
    for word in "PASS", "LIST":
        server = Lines({word: most + b"\r\n"})
        equal(lineproto(server, "LIST")[0], 0)
        server = Lines({word: most + b"x\r\n"})
        status, lines, errors = lineproto(server, "LIST")
        equal((status, lines, errors.count("\n")), (1, [], 1))
        equal("a line that is too long" in errors, True)


@case
def lineproto_says_what_else_is_wrong():
    server = Lines({"LIST": None})
    equal("closed without an answer" in lineproto(server, "LIST")[2], True)
    equal("one line each" in lineproto(Lines(), "LIST", password="x\r\nDELE 1")[2], True)
    gone = Lines()
    gone.address = nobody()
    equal("connection refused" in lineproto(gone, "LIST")[2], True)
    equal(stage.run("lineproto", "127.0.0.1:1", "ann").returncode, 2)
