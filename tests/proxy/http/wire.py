"""wire.py - HTTP/1 as it must be on the wire: a reader that forgives nothing, and short ways to write messages.

What lbproxy writes is read here, on both sides. There is one form for everything ("Name: value", sizes without
extensions, CRLF), so that bytes which were copied raw and not written anew are found. Deadlines are the socket's."""
import re
import socket

DEADLINE = 10  # seconds that anything may take

TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*"
                   rb"[\x21-\x7e\x80-\xff])?)?)")
REQUEST_LINE = re.compile(rb"([A-Z-]+) ([\x21-\x7e]+) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class Broken(Exception):
    """What has come is no legal message."""


class Ended(Exception):
    """The connection has ended before the message was whole: .how is "eof" or "reset", .part what had come of it."""
    def __init__(self, how, part):
        super().__init__(f"{how} after {part!r}")
        self.how, self.part = how, part


class Message:
    """A request (method, target) or an answer (status, reason): fields in order as (name, value), body, trailers."""
    method = target = status = reason = None

    def __init__(self):
        self.minor, self.fields, self.trailers, self.body, self.framing = 1, [], [], b"", "none"

    def all(self, name):
        """The values of all fields of that name, in order."""
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def one(self, name):
        """The value of the one field of that name; None: there is none."""
        values = self.all(name)
        if len(values) > 1:
            raise Broken(f"{len(values)} fields {name}: {values}")
        return values[0] if values else None

    def options(self):
        """What Connection names, in lower case."""
        return [option.strip().lower() for value in self.all("Connection") for option in value.split(",")]

    def __repr__(self):
        start = f"{self.method} {self.target}" if self.method else f"{self.status} {self.reason}"
        return f"<{start} HTTP/1.{self.minor} {self.fields} {self.framing} {self.body[:200]!r} {self.trailers}>"


def text(raw):
    return raw.decode("latin-1")


class Reader:
    """Reads messages from a socket. `got` is every byte that has come, `at` how far messages were read."""
    def __init__(self, sock):
        self.sock, self.got, self.at, self.end = sock, bytearray(), 0, None

    def fill(self):
        """Reads once more. False: the end, and `end` says which."""
        if self.end is not None:
            return False
        try:
            more = self.sock.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            self.end = "reset"
            return False
        except socket.timeout:
            raise AssertionError(f"nothing came for {DEADLINE} s, after {bytes(self.got[-300:])!r}") from None
        if not more:
            self.end = "eof"
            return False
        self.got += more
        return True

    def need(self, begin):
        if not self.fill():
            raise Ended(self.end, bytes(self.got[begin:]))

    def line(self, begin):
        """The next line, without its CRLF."""
        scanned = self.at
        while (end := self.got.find(b"\n", scanned)) < 0:
            scanned = len(self.got)
            self.need(begin)
        line = bytes(self.got[self.at:end])
        self.at = end + 1
        if not line.endswith(b"\r") or b"\r" in line[:-1]:
            raise Broken(f"a line that does not end in CRLF: {line!r}")
        return line[:-1]

    def exactly(self, n, begin):
        while len(self.got) < self.at + n:
            self.need(begin)
        self.at += n
        return bytes(self.got[self.at - n:self.at])

    def rest(self):
        """All that comes until the end; `end` says which end."""
        begin = self.at
        while self.fill():
            pass
        self.at = len(self.got)
        return bytes(self.got[begin:])

    def read_fields(self, begin):
        fields = []
        while (line := self.line(begin)) != b"":
            match = FIELD.fullmatch(line)
            if match is None:
                raise Broken(f"no field: {line!r}")
            fields.append((text(match[1]), text(match[2])))
        return fields

    def read_chunks(self, message, begin):
        pieces = []
        while True:
            size = self.line(begin)
            if SIZE.fullmatch(size) is None:
                raise Broken(f"no chunk size: {size!r}")
            if int(size, 16) == 0:
                break
            pieces.append(self.exactly(int(size, 16), begin))
            if self.exactly(2, begin) != b"\r\n":
                raise Broken("a chunk does not end in CRLF")
        message.body, message.trailers = b"".join(pieces), self.read_fields(begin)

    def read_body(self, message, begin, bodyless, until_close):
        lengths, codings = message.all("Content-Length"), message.all("Transfer-Encoding")
        if len(lengths) + len(codings) > 1:
            raise Broken(f"framed twice: {message}")
        if codings and codings != ["chunked"] or lengths and not lengths[0].isdecimal():
            raise Broken(f"framing that is none: {message}")
        if bodyless:
            return
        if codings:
            message.framing = "chunked"
            self.read_chunks(message, begin)
        elif lengths:
            message.framing = "length"
            message.body = self.exactly(int(lengths[0]), begin)
        elif until_close:
            message.framing = "close"
            message.body = self.rest()
            if self.end != "eof":
                raise Ended(self.end, bytes(self.got[begin:]))

    def request(self):
        """The next request, whole; None: the end came in its place."""
        begin, message = self.at, Message()
        if self.at == len(self.got) and not self.fill():
            return None
        line = self.line(begin)
        match = REQUEST_LINE.fullmatch(line)
        if match is None:
            raise Broken(f"no request line: {line!r}")
        message.method, message.target, message.minor = text(match[1]), text(match[2]), int(match[3])
        message.fields = self.read_fields(begin)
        message.head_n = self.at - begin
        self.on_head(message)
        self.read_body(message, begin, False, False)
        return message

    def on_head(self, message):
        """A request's head has come, and its body follows."""

    def answer(self, method="GET"):
        """The next answer, whole, to a request with that method."""
        begin, message = self.at, Message()
        line = self.line(begin)
        match = STATUS_LINE.fullmatch(line)
        if match is None:
            raise Broken(f"no status line: {line!r}")
        message.minor, message.status, message.reason = int(match[1]), int(match[2]), text(match[3])
        message.fields = self.read_fields(begin)
        message.head_n = self.at - begin
        bodyless = method == "HEAD" or message.status < 200 or message.status in (204, 304)
        self.read_body(message, begin, bodyless, True)
        return message


def split_requests(raw):
    """Takes recorded bytes apart: the whole requests, and what is left behind them."""
    class Recorded(Reader):
        def fill(self):
            self.end = "eof"
            return False

    reader, requests = Recorded(None), []
    reader.got += raw
    while True:
        begin = reader.at
        try:
            message = reader.request()
        except Ended:
            return requests, bytes(raw[begin:])
        if message is None:
            return requests, b""
        requests.append(message)


# ---- writing ----


def head(start, fields):
    return b"\r\n".join([start, *fields, b"", b""])


def to_bytes(value):
    return value.encode("latin-1") if isinstance(value, str) else value


def get(target="/", *fields, method="GET", version="1.1", host="test"):
    """A request without a body; fields are whole lines."""
    hosts = [] if host is None else [b"Host: " + to_bytes(host)]
    start = b"%s %s HTTP/%s" % (to_bytes(method), to_bytes(target), to_bytes(version))
    return head(start, hosts + [to_bytes(field) for field in fields])


def post(target="/", body=b"", *fields, method="POST", **options):
    """A request with a body of known length."""
    return get(target, *fields, b"Content-Length: %d" % len(body), method=method, **options) + body


def post_chunks(target, chunks, *fields, trailers=(), method="POST", **options):
    """A request with a chunked body; chunks are their data."""
    return get(target, *fields, "Transfer-Encoding: chunked", method=method, **options) + chunked(chunks, trailers)


def chunked(chunks, trailers=()):
    """A chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk)
                    for chunk in chunks) + head(b"0", [to_bytes(trailer) for trailer in trailers])


def reply(status="200 OK", *fields, version="1.1"):
    """An answer's head."""
    return head(b"HTTP/%s %s" % (to_bytes(version), to_bytes(status)), [to_bytes(field) for field in fields])


def ok(body=b"ok", *fields, status="200 OK", version="1.1"):
    """An answer with a body of known length."""
    return reply(status, *fields, b"Content-Length: %d" % len(body), version=version) + body


def ok_chunks(chunks, *fields, trailers=(), status="200 OK", version="1.1"):
    """An answer with a chunked body."""
    return reply(status, *fields, "Transfer-Encoding: chunked", version=version) + chunked(chunks, trailers)
