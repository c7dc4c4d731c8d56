"""kernel.py - what the system knows of a connection and of a process: bytes in queues, memory, processor time.

It makes a split real without sleeping: the second piece is sent when the proxy has read the first."""
import errno
import fcntl
import os
import socket
import struct
import threading
import time

SIOCOUTQ = 0x5411
SIOCINQ = 0x541b
TCP_LISTEN = 10
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR = 2


def patiently(condition, what, seconds=10):
    """Waits until the condition is met and returns what it said; fails after the time."""
    due, pause = time.monotonic() + seconds, 0.0001
    while not (value := condition()):
        if time.monotonic() > due:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)  # between two looks
        pause = min(pause * 1.5, 0.01)
    return value


class Diag(threading.local):
    """Asks the kernel for the queues of any TCP socket over IPv4 by its two addresses."""
    sock = None

    def queues(self, local, remote):
        """(unread, unacknowledged) bytes; None: there is no such socket (any more), or no way to ask."""
        if self.sock is None:
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
            self.sock.settimeout(5)
        places = b"".join(socket.inet_aton(host) + bytes(12) for host, _ in (local, remote))
        question = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xffffffff) + struct.pack(
            "!HH", local[1], remote[1]) + places + struct.pack("=III", 0, 0xffffffff, 0xffffffff)
        self.sock.send(struct.pack("=IHHII", 16 + len(question), SOCK_DIAG_BY_FAMILY, 1, 1, 0) + question)
        answer = self.sock.recv(65536)
        if struct.unpack_from("=IH", answer)[1] == NLMSG_ERROR:
            return None
        if answer[17] == TCP_LISTEN:
            return None  # it stands for the connections that are gone
        return struct.unpack_from("=II", answer, 72)


diag = Diag()


def unsent(sock):
    """Bytes that the peer's kernel has not acknowledged."""
    return struct.unpack("i", fcntl.ioctl(sock, SIOCOUTQ, b"\0\0\0\0"))[0]


def is_taken(sock):
    """The peer's process has read all that was sent, or its socket is gone: then nothing is acknowledged any more."""
    if sock.family == socket.AF_UNIX:
        return unsent(sock) == 0  # the bytes are the sender's until they are read
    try:
        left = unsent(sock)  # before the peer's queue is looked at: what is acknowledged later is there by then
        queues = diag.queues(sock.getpeername(), sock.getsockname())
    except OSError as error:
        if error.errno in (errno.ENOTCONN, errno.ECONNRESET, errno.EINVAL):
            return True
        raise
    return queues is None or left == 0 and queues[0] == 0


def unread(sock):
    """Bytes that have come and were not read."""
    return struct.unpack("i", fcntl.ioctl(sock, SIOCINQ, b"\0\0\0\0"))[0]


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def under_way(sock):
    """Bytes sent on a socket that its peer's process has not read yet."""
    queues = diag.queues(sock.getpeername(), sock.getsockname())
    return unsent(sock) + (queues[0] if queues else 0)


def memory(pid, what="VmRSS"):
    """KiB: what a process has in memory, or (VmHWM) had at most."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what + ":"))


def processor_time(pid):
    """Seconds that all threads of a process were running."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
