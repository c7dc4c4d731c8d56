"""framed.py - the wire form of framed links in Python, both sides: written from docs/linkpool-framed.7 alone.

A second implementation, so that the C client and the C server are not wrong alike. Blocking sockets, one connection an
object; whatever is not as the page says raises Wrong."""

import select
import socket
import struct

HELLO, HELLO_ACK, LIMIT, REQUEST, ANSWER, ERROR, CANCEL, PING, PONG, GOAWAY = range(1, 11)
NAMES = dict(zip(range(1, 11), "HELLO HELLO_ACK LIMIT REQUEST ANSWER ERROR CANCEL PING PONG GOAWAY".split()))
VERSION = 1
LARGEST_ID = 2**31 - 1
MAX_TOKEN = 4096
MAX_TEXT = 1024
NOT_PROCESSED = 1

# type: (least, most) bytes of payload, None: what the receiver takes; whether it is about a request
RULES = {
    HELLO: (8, 8 + MAX_TOKEN, False),
    HELLO_ACK: (12, 12, False),
    LIMIT: (4, 4, False),
    REQUEST: (0, None, True),
    ANSWER: (0, None, True),
    ERROR: (4, 4 + MAX_TEXT, True),
    CANCEL: (0, 0, True),
    PING: (8, 8, False),
    PONG: (8, 8, False),
    GOAWAY: (8, 8 + MAX_TEXT, False),
}


class Wrong(Exception):
    """The other side has said what it may not."""


class Closed(Exception):
    """The other side has closed the connection between two frames."""


def pack(kind, request=0, payload=b""):
    return struct.pack(">IBBHI", len(payload), kind, 0, 0, request) + payload


class Wire:
    """Frames on a socket."""

    def __init__(self, sock, takes):
        self.sock = sock
        self.takes = takes  # the largest payload we take
        self.peer_takes = None
        self.buffer = b""

    def send(self, kind, request=0, payload=b""):
        self.sock.sendall(pack(kind, request, payload))

    def _fill(self, n):
        while len(self.buffer) < n:
            more = self.sock.recv(65536)
            if not more:
                if self.buffer:
                    raise Wrong("the end within a frame")
                raise Closed()
            self.buffer += more

    def is_quiet(self):
        """Whether nothing has come that was not taken."""
        return not self.buffer and not select.select([self.sock], [], [], 0)[0]

    def next(self):
        """(type, id, payload) of the next frame."""
        self._fill(12)
        n, kind, flags, reserved, request = struct.unpack(">IBBHI", self.buffer[:12])
        if kind not in RULES:
            raise Wrong(f"type {kind}")
        least, most, about = RULES[kind]
        if flags or reserved:
            raise Wrong(f"{NAMES[kind]}: flags {flags}, reserved {reserved}")
        if not least <= n <= (self.takes if most is None else most):
            raise Wrong(f"{NAMES[kind]}: {n} bytes")
        if not (0 < request <= LARGEST_ID if about else request == 0):
            raise Wrong(f"{NAMES[kind]}: id {request}")
        self._fill(12 + n)
        payload, self.buffer = self.buffer[12 : 12 + n], self.buffer[12 + n :]
        return kind, request, payload


class Client:
    """The asking side: call() asks and waits; ask() and wait() apart for more than one at a time."""

    def __init__(self, address, token=b"", takes=1 << 20, timeout=20):
        self.wire = Wire(socket.create_connection(address, timeout=timeout), takes)
        self.wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.last = 0
        self.limit = None
        self.answers = {}  # id: ("answer", bytes) or ("error", code, text)
        self.goaways = []
        self.wire.send(HELLO, 0, struct.pack(">II", VERSION, takes) + token)
        kind, _, payload = self.wire.next()
        if kind == GOAWAY:
            self.goaways.append(self._goaway(payload))
            return
        if kind != HELLO_ACK:
            raise Wrong(f"{NAMES[kind]} instead of HELLO_ACK")
        version, self.wire.peer_takes, self.limit = struct.unpack(">III", payload)
        if version != VERSION:
            raise Wrong(f"version {version}")

    @staticmethod
    def _goaway(payload):
        last, code = struct.unpack(">II", payload[:8])
        return last, code, payload[8:].decode()

    def ask(self, payload):
        self.last += 1
        self.wire.send(REQUEST, self.last, payload)
        return self.last

    def cancel(self, request):
        self.wire.send(CANCEL, request)

    def take_one(self):
        """One frame from the server, put where it belongs; its type."""
        kind, request, payload = self.wire.next()
        if kind in (ANSWER, ERROR):
            if request > self.last or request in self.answers:
                raise Wrong(f"{NAMES[kind]} to {request}")
            self.answers[request] = (
                ("answer", payload)
                if kind == ANSWER
                else ("error", struct.unpack(">I", payload[:4])[0], payload[4:].decode())
            )
        elif kind == LIMIT:
            (self.limit,) = struct.unpack(">I", payload)
        elif kind == PING:
            self.wire.send(PONG, 0, payload)
        elif kind == GOAWAY:
            self.goaways.append(self._goaway(payload))
            if len(self.goaways) > 1 and self.goaways[-1][0] > self.goaways[-2][0]:
                raise Wrong("GOAWAY raises the last id")
        elif kind != PONG:
            raise Wrong(f"{NAMES[kind]} from a server")
        self.last_kind, self.last_payload = kind, payload
        return kind

    def wait(self, request):
        while request not in self.answers:
            self.take_one()
        return self.answers[request]

    def call(self, payload):
        return self.wait(self.ask(payload))

    def ping(self, eight):
        self.wire.send(PING, 0, eight)
        while self.take_one() != PONG:
            pass
        return self.last_payload

    def close(self):
        self.wire.sock.close()


class Session:
    """The answering side of one connection. serve() goes on until the client has gone."""

    def __init__(self, sock, channels=100, takes=1 << 20):
        self.wire = Wire(sock, takes)
        self.channels = channels
        self.last = 0
        self.accepted = None  # after goaway(): the last id that is processed
        self.token = None
        self.cancelled = []
        self.pongs = []
        self.goaways = []

    def hello(self):
        kind, _, payload = self.wire.next()
        if kind != HELLO:
            raise Wrong(f"{NAMES[kind]} before HELLO")
        version, self.wire.peer_takes = struct.unpack(">II", payload[:8])
        if version != VERSION:
            raise Wrong(f"version {version}")
        self.token = payload[8:]

    def welcome(self):
        self.wire.send(HELLO_ACK, 0, struct.pack(">III", VERSION, self.wire.takes, self.channels))

    def take(self):
        """The next request, (id, payload); what is not a request is seen to on the way."""
        while True:
            kind, request, payload = self.wire.next()
            if kind == REQUEST:
                if request != self.last + 1:
                    raise Wrong(f"REQUEST {request} after {self.last}")
                self.last = request
                if self.accepted is not None and request > self.accepted:
                    self.error(request, NOT_PROCESSED, "leaving")
                    continue
                return request, payload
            if kind == CANCEL:
                if request > self.last:
                    raise Wrong(f"CANCEL of {request}")
                self.cancelled.append(request)
            elif kind == PING:
                self.wire.send(PONG, 0, payload)
            elif kind == PONG:
                self.pongs.append(payload)
            elif kind == GOAWAY:
                self.goaways.append(struct.unpack(">II", payload[:8]))
            else:
                raise Wrong(f"{NAMES[kind]} from a client")

    def answer(self, request, payload):
        self.wire.send(ANSWER, request, payload)

    def error(self, request, code, text=""):
        self.wire.send(ERROR, request, struct.pack(">I", code) + text.encode())

    def limit(self, channels):
        self.wire.send(LIMIT, 0, struct.pack(">I", channels))

    def ping(self, eight):
        self.wire.send(PING, 0, eight)

    def goaway(self, last, code=0, text=""):
        self.accepted = last
        self.wire.send(GOAWAY, 0, struct.pack(">II", last, code) + text.encode())
