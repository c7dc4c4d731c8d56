"""stage.py - what the cases of this folder stand on: programs of ours, and servers in threads of the test."""

import os
import socket
import subprocess
import sys
import threading
import traceback

import framed

CASES = []
LIMIT = 60  # seconds for a program
directory = ""  # where the programs are


def case(function):
    CASES.append(function)
    return function


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def run(program, *arguments):
    """A program of ours, and how it ended: returncode, stdout, stderr."""
    command = [f"{directory}/{program}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


class Server:
    """A framed_server of ours."""

    def __init__(self, *options, listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [f"{directory}/framed_server", "--listen", listen, *options], stdout=subprocess.PIPE, text=True
        )
        self.text = self.process.stdout.readline().rsplit(" ", 1)[1].strip()
        host, port = self.text.rsplit(":", 1)
        self.address = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Listener:
    """A server in a thread: `serve(session)` runs for each connection, in turn."""

    def __init__(self, serve):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(LIMIT)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.serve, self.faults, self.sessions, self.over = serve, [], [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            if self.over:
                sock.close()
                return
            sock.settimeout(LIMIT)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = framed.Session(sock)
            self.sessions.append(session)
            try:
                session.hello()
                self.serve(session)
            except (framed.Closed, ConnectionError):
                pass
            except Exception:  # a Wrong is what the tests look for
                self.faults.append(traceback.format_exc())
            sock.close()

    def close(self):
        """Returns when all that its clients said has been taken."""
        self.over = True
        host, port = self.address.split(":")
        socket.create_connection((host, int(port))).close()  # ends the accepting
        self.thread.join(LIMIT)
        self.socket.close()


def main(usage):
    """Runs the cases there are; those with a word in their name, where one is given."""
    global directory
    if len(sys.argv) not in (2, 3):
        sys.exit(usage)
    if len(sys.argv) == 3:
        CASES[:] = [function for function in CASES if sys.argv[2] in function.__name__]
    directory = os.path.abspath(sys.argv[1])
    failed = 0
    for function in CASES:
        try:
            function()
            print(f"passed  {function.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {function.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{len(CASES)} cases, {failed} failed")
    sys.exit(1 if failed else 0)
