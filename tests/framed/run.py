#!/usr/bin/env python3
"""run.py - the C client and the C server of framed links, each before a second implementation of the wire form.

Usage: run.py DIRECTORY [WORD]    where the programs are; only cases with WORD

All on 127.0.0.1, on ports that the system picks. Prints a line a case; the exit status is 0 when all passed."""

import os
import random
import signal
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framed  # noqa: E402
import stage  # noqa: E402
from stage import LIMIT, Listener, Server, case, equal  # noqa: E402

# ---- our server, their client ----


@case
def server_says_its_numbers():
    with Server("--channels", "7") as server:
        client = framed.Client(server.address, b"token")
        equal((client.limit, client.wire.peer_takes), (7, 1 << 20))
        client.close()


@case
def server_echoes_all_sizes():
    with Server() as server:
        client = framed.Client(server.address)
        for n in (0, 1, 11, 12, 13, 4084, 4096, 65524, 65536, 300000, (1 << 20) - 4):
            payload = random.Random(n).randbytes(n)
            equal(client.call(b"echo" + payload), ("answer", payload))
        client.close()


@case
def server_takes_a_stream_cut_anywhere():
    with Server() as server:
        client = framed.Client(server.address)
        stream = b"".join(framed.pack(framed.REQUEST, i, b"echo" + b"x" * i) for i in range(1, 60))
        client.last = 59
        at, draw = 0, random.Random(5)
        while at < len(stream):
            n = draw.randint(1, 40)
            client.wire.sock.sendall(stream[at : at + n])
            at += n
        for i in range(1, 60):
            equal(client.wait(i), ("answer", b"x" * i))
        client.close()


@case
def server_answers_a_thousand_at_once():
    with Server("--channels", "1000") as server:
        client = framed.Client(server.address)
        asked = [client.ask(b"echo%d" % i) for i in range(1000)]
        for i, request in enumerate(asked):
            equal(client.wait(request), ("answer", b"%d" % i))
        client.close()


@case
def server_adds():
    with Server() as server:
        client = framed.Client(server.address)
        for i in range(1, 11):
            equal(client.call(b"add" + struct.pack(">QQ", i, i)), ("answer", struct.pack(">Q", i * (i + 1) // 2)))
        equal(client.call(b"total"), ("answer", struct.pack(">QQ", 55, 10)))
        equal(client.call(b"sub"), ("error", 256, "no such call"))
        client.close()


@case
def server_answers_pings_and_forgets_what_is_cancelled():
    with Server("--delay", "0.2") as server:
        client = framed.Client(server.address)
        first, second = client.ask(b"echo1"), client.ask(b"echo2")
        client.cancel(first)
        equal(client.ping(b"abcdefgh"), b"abcdefgh")
        equal(client.wait(second), ("answer", b"2"))
        equal(first in client.answers, False)
        client.close()


@case
def server_keeps_answers_to_what_the_client_takes():
    with Server() as server:
        client = framed.Client(server.address, takes=1024)
        equal(client.call(b"echo" + b"x" * 1024), ("answer", b"x" * 1024))
        equal(client.call(b"echo" + b"x" * 1025)[:2], ("error", 3))
        client.close()


@case
def server_leaves_in_order():
    with Server("--delay", "0.3") as server:
        client = framed.Client(server.address)
        asked = [client.ask(b"echo%d" % i) for i in range(3)]
        equal(client.ping(b"12345678"), b"12345678")  # all three are there
        server.process.send_signal(signal.SIGTERM)
        while not client.goaways:
            client.take_one()
        equal(client.goaways[0][:2], (3, 0))
        equal(client.call(b"echo4")[:2], ("error", framed.NOT_PROCESSED))
        for i, request in enumerate(asked):
            equal(client.wait(request), ("answer", b"%d" % i))
        client.close()
        equal(server.process.wait(LIMIT), 0)


@case
def server_sends_away_who_makes_no_sense():
    head = lambda n, kind, flags, reserved, request: struct.pack(">IBBHI", n, kind, flags, reserved, request)
    wrong = {
        "HELLO twice": framed.pack(framed.HELLO, 0, struct.pack(">II", 1, 1024)),
        "unknown type": framed.pack(77),
        "an answer": framed.pack(framed.ANSWER, 1),
        "a flag": head(0, framed.REQUEST, 1, 0, 1),
        "reserved bits": head(0, framed.REQUEST, 0, 1, 1),
        "too large": head((1 << 20) + 1, framed.REQUEST, 0, 0, 1),
        "no id": head(0, framed.REQUEST, 0, 0, 0),
        "an id out of turn": framed.pack(framed.REQUEST, 2),
        "an id too large": framed.pack(framed.REQUEST, 1 << 31),
        "a cancel of nothing": framed.pack(framed.CANCEL, 9),
        "a short ping": framed.pack(framed.PING, 0, b"1234567"),
        "a ping with an id": framed.pack(framed.PING, 1, b"12345678"),
    }
    with Server() as server:
        for name, frame in wrong.items():
            client = framed.Client(server.address)
            client.wire.sock.sendall(frame)
            try:
                while True:
                    client.take_one()
            except (framed.Closed, ConnectionResetError):
                pass
            if [goaway[1] for goaway in client.goaways] != [4]:
                raise AssertionError(f"{name}: {client.goaways}")
            client.close()


# ---- our client, their server ----


def run_client(serve, callers, calls, largest=100, cancel_every=0):
    """The client's figures, and the sessions of the server it met."""
    listener = Listener(serve)
    done = stage.run("framed_client", listener.address, callers, calls, largest, cancel_every)
    listener.close()
    if done.returncode or listener.faults:
        raise AssertionError(f"{done.returncode} {done.stdout} {done.stderr} {''.join(listener.faults)}")
    words = done.stdout.split()
    return dict(zip(words[::2], map(int, words[1::2]))), listener.sessions


def echo(session, request, payload):
    session.answer(request, payload[4:])


@case
def client_introduces_itself_and_is_answered():
    def serve(session):
        session.welcome()
        while True:
            echo(session, *session.take())

    figures, sessions = run_client(serve, 1, 50)
    equal(figures["answers"], 50)
    equal((sessions[0].token, sessions[0].wire.peer_takes, len(sessions)), (b"open sesame", 1 << 20, 1))
    equal(sessions[0].goaways, [(0, 0)])  # it said goodbye


@case
def client_takes_answers_in_any_order():
    def serve(session):
        session.welcome()
        while True:
            batch = [session.take() for _ in range(20)]
            random.shuffle(batch)
            for request, payload in batch:
                echo(session, request, payload)

    figures, _ = run_client(serve, 20, 50)
    equal(figures["answers"], 1000)


@case
def client_takes_a_stream_cut_anywhere():
    draw = random.Random(7)

    def serve(session):
        session.channels = 8
        session.welcome()
        while True:
            request, payload = session.take()
            frame = framed.pack(framed.ANSWER, request, payload[4:])
            at = 0
            while at < len(frame):
                n = draw.randint(1, 30)
                session.wire.sock.sendall(frame[at : at + n])
                at += n

    figures, _ = run_client(serve, 8, 40, 300)
    equal(figures["answers"], 320)


@case
def client_sends_and_takes_large_payloads():
    def serve(session):
        session.welcome()
        while True:
            echo(session, *session.take())

    figures, _ = run_client(serve, 6, 8, 1 << 20)
    equal(figures["answers"], 48)


@case
def client_holds_back_before_a_server_that_reads_slowly():
    def serve(session):
        session.welcome()
        while True:  # each answer is large, and nothing is read while it is written
            echo(session, *session.take())

    figures, _ = run_client(serve, 40, 2, 1 << 20)
    equal(figures["answers"], 80)
    equal(figures["refused"] > 0, True)


@case
def client_is_told_of_errors():
    def serve(session):
        session.welcome()
        while True:
            request, payload = session.take()
            if request % 5 == 0:
                session.error(request, 300, "every fifth")
            else:
                echo(session, request, payload)

    figures, _ = run_client(serve, 5, 100)
    equal((figures["answers"], figures["errors"]), (400, 100))


@case
def client_repeats_what_was_not_processed():
    def serve(session):
        session.welcome()
        while True:
            request, payload = session.take()
            if request % 7 == 0:
                session.error(request, framed.NOT_PROCESSED, "busy")
            else:
                echo(session, request, payload)

    figures, _ = run_client(serve, 5, 60)
    equal((figures["answers"], figures["lost"]), (300, 0))
    equal(figures["repeated"] > 20, True)


@case
def client_keeps_within_limits_that_change():
    most = [0]

    def serve(session):
        session.channels = 0
        session.welcome()
        open_ones = []
        session.limit(3)
        for turn in range(150):
            if len(open_ones) < (3 if turn % 40 < 20 else 1):
                open_ones.append(session.take())
                most[0] = max(most[0], len(open_ones))
            else:
                echo(session, *open_ones.pop(0))
            if turn % 40 == 19:
                session.limit(0)
            elif turn % 40 == 0 and turn:
                session.limit(3)
            elif turn % 40 == 21:
                while open_ones:
                    echo(session, *open_ones.pop(0))
                session.limit(1)
        session.limit(50)
        for request, payload in open_ones:
            echo(session, request, payload)
        while True:
            echo(session, *session.take())

    figures, _ = run_client(serve, 10, 30)
    equal((figures["answers"], most[0]), (300, 3))


@case
def client_cancels():
    def serve(session):
        session.welcome()
        batch = []
        while True:
            batch.append(session.take())
            if session.wire.is_quiet():  # also what will be cancelled is answered: that is swallowed
                random.shuffle(batch)
                while batch:
                    echo(session, *batch.pop())

    figures, sessions = run_client(serve, 10, 300, 100, 3)
    equal(figures["answers"] + figures["cancelled"], 3000)
    equal(sessions[0].last, figures["answers"] + len(sessions[0].cancelled))
    equal(len(sessions[0].cancelled) > 0, True)
    equal(len(sessions), 1)


@case
def client_answers_pings_between():
    def serve(session):
        session.welcome()
        for i in range(200):
            request, payload = session.take()
            session.ping(struct.pack(">Q", i))
            echo(session, request, payload)
            session.ping(struct.pack(">Q", 1000 + i))
        while True:
            session.take()

    figures, sessions = run_client(serve, 4, 50)
    equal(figures["answers"], 200)
    said = [value for i in range(200) for value in (struct.pack(">Q", i), struct.pack(">Q", 1000 + i))]
    heard = sessions[0].pongs
    equal(heard, said[: len(heard)])
    equal(len(heard) >= 392, True)  # what comes with the last answers may not be answered: the client leaves


@case
def client_moves_on_when_the_server_leaves():
    def serve(session):
        session.welcome()
        held = []
        for _ in range(30):
            echo(session, *session.take())
        while len(held) < 4:
            held.append(session.take())
        session.goaway(2**31 - 1, 0, "soon")
        session.goaway(held[1][0], 0, "the last two are not processed")
        for request, payload in held[:2]:
            echo(session, request, payload)
        while True:
            session.take()

    figures, sessions = run_client(serve, 8, 30)
    equal((figures["answers"], figures["lost"]), (240, 0))
    equal(figures["repeated"] > 2, True)
    equal(len(sessions) > 3, True)


import programs  # noqa: E402,F401  # cases of its own

stage.main(__doc__)
