"""peer.py - our ends of connections, of clients and of backends; and the ways to say that something is not as it is to
be."""
import re
import socket
import struct

from kernel import is_taken, patiently, unsent
from wire import DEADLINE, Ended, Reader

LINGER_0 = struct.pack("ii", 1, 0)


def expect(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r}, expected {wanted!r}")


def expect_in(what, seen, wanted):
    if seen not in wanted:
        raise AssertionError(f"{what}: {seen!r}, expected one of {wanted!r}")


def expect_range(what, seen, least, most):
    if not least <= seen <= most:
        raise AssertionError(f"{what}: {seen}, expected {least} to {most}")


class Peer(Reader):
    """One end of a connection of ours: a client, or a link at a backend."""
    def __init__(self, sock):
        super().__init__(sock)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(DEADLINE)

    def send(self, *pieces):
        """Sends the pieces, each when the proxy has read what was sent before it."""
        for i, piece in enumerate(pieces):
            if i > 0:
                self.settle()
            try:
                self.sock.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                raise Ended("reset", b"") from None

    def settle(self):
        """Waits until the proxy has read all that was sent."""
        patiently(lambda: is_taken(self.sock), "the proxy reads what was sent")

    def wait_sent(self):
        """Waits until the kernel of the proxy has all that was sent, read or not."""
        patiently(lambda: unsent(self.sock) == 0, "what was sent is in the other kernel")

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        self.sock.close()

    def expect_end(self, how="eof", rest=b""):
        """The connection ends so, and nothing more comes before."""
        expect("what comes before the end", self.rest(), rest)
        expect("how the connection ends", self.end, how)


def family_of(address):
    if isinstance(address, str):
        return socket.AF_UNIX
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


class Client(Peer):
    def __init__(self, address):
        sock = socket.socket(family_of(address))
        sock.settimeout(DEADLINE)
        sock.connect(address)
        super().__init__(sock)

    def ask(self, *pieces, method=None):
        """Sends a request and reads its answer."""
        self.send(*pieces)
        return self.answer(method or pieces[0].split(b" ")[0].decode())

    def refused(self, status, close=True):
        """Reads an answer of lbproxy's own."""
        answer = self.answer()
        check_own(answer, status, close)
        if close:
            self.expect_end()
        return answer


def check_own(answer, status, close=True):
    """An answer of lbproxy's own has one form."""
    expect_in("status", answer.status, status if isinstance(status, tuple) else (status, ))
    expect("Content-Type", (answer.one("Content-Type") or "").split(";")[0], "text/plain")
    expect("framing", answer.framing, "length")
    if re.fullmatch(rb"[\x20-\x7e]+\n", answer.body) is None:
        raise AssertionError(f"the body is not one line: {answer.body!r}")
    expect("Connection: close is said", "close" in answer.options(), close)
