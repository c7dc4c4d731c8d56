"""proxy.py - an lbproxy in HTTP mode that runs, and what it says: addresses, access log, status pages, its end."""
import contextlib
import os
import re
import signal
import subprocess
import threading
from types import SimpleNamespace

from kernel import is_stopped, patiently
from peer import Client, expect
from wire import DEADLINE, get

LOG_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?P<client>\S+) (?P<method>[A-Z-]+) (?P<target>[!-~]+) "
    r"(?P<status>[1-5]\d\d|-) (?P<bytes>\d+|-) (?P<waited>\d+\.\d{6}|-) (?P<total>\d+\.\d{6}|-) (?P<backend>\S+) "
    r"(?P<reused>[01-]) (?P<tries>[012-]) (?P<outcome>[a-z_]+)")


class Proxy:
    """An lbproxy in HTTP mode, with an access log."""
    def __init__(self, program, folder, options):
        self.log_path, self.error_path = os.path.join(folder, "access"), os.path.join(folder, "errors")
        command = [
            program, "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--access-log", self.log_path, *options
        ]
        with open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        self.pid, self.said, self.heard = self.process.pid, [], threading.Condition()
        threading.Thread(target=self.hear, daemon=True).start()
        self.address = self.told("listening on ")
        self.status_address = self.told("status on ")

    def hear(self):
        for line in self.process.stdout:
            with self.heard:
                self.said.append(line.decode().rstrip("\n"))
                self.heard.notify_all()
        with self.heard:
            self.said.append(None)
            self.heard.notify_all()

    def told(self, words):
        """The address that lbproxy says behind these words."""
        def found():
            return next((line for line in self.said if line is None or line.startswith(words)), "")

        with self.heard:
            self.heard.wait_for(lambda: found() != "", DEADLINE)
            line = found()
        if not line:
            raise AssertionError(f"lbproxy does not say '{words}ADDR': {self.errors()}")
        place = line[len(words):]
        if place.startswith("unix:"):
            return place[5:]
        host, port = place.rsplit(":", 1)
        return host.strip("[]"), int(port)

    def errors(self):
        with open(self.error_path, encoding="utf-8", errors="replace") as errors:
            return errors.read()

    def log(self):
        """The lines of the access log, taken apart."""
        with open(self.log_path, encoding="ascii") as log:
            lines = log.read().split("\n")[:-1]
        matches = [(line, LOG_LINE.fullmatch(line)) for line in lines]
        for line, match in matches:
            if match is None:
                raise AssertionError(f"a line of the access log is not in its form: {line!r}")
        return [SimpleNamespace(**match.groupdict()) for line, match in matches]

    def logged(self, target):
        """The one line of the access log for a target, when it is there."""
        patiently(lambda: any(line.target == target for line in self.log()), f"a line of the access log for {target}")
        lines = [line for line in self.log() if line.target == target]
        expect(f"lines of the access log for {target}", len(lines), 1)
        return lines[0]

    def expect_logged(self, target, **wanted):
        """The line for a target has these values."""
        line = self.logged(target)
        expect(f"log of {target}", {name: getattr(line, name)
                                    for name in wanted}, {name: str(value)
                                                          for name, value in wanted.items()})
        return line

    def wait_log(self, n):
        patiently(lambda: len(self.log()) >= n, f"{n} lines in the access log")
        return self.log()

    def ask_status(self, path="/", method="GET"):
        client = Client(self.status_address)
        client.send(get(path, "Connection: close", method=method))
        answer = client.answer(method)
        client.close()
        return answer

    def signal(self, number):
        self.process.send_signal(number)

    @contextlib.contextmanager
    def stopped(self):
        """It reads nothing meanwhile: what is sent is there whole when it goes on."""
        self.signal(signal.SIGSTOP)
        patiently(lambda: is_stopped(self.pid), "lbproxy is stopped")
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def expect_exit(self, status=0):
        try:
            seen = self.process.wait(DEADLINE * 2)
        except subprocess.TimeoutExpired:
            raise AssertionError("lbproxy does not end") from None
        if seen != status or self.errors() != "":
            raise AssertionError(f"lbproxy ends with {seen}, expected {status}; stderr: {self.errors()[-2000:]!r}")

    def is_over(self):
        return self.process.poll() is not None
