"""servers.py - the origin and the three proxies: started on their cores, checked, ended."""

import http.client
import os
import select
import shutil
import socket
import subprocess
import time

from measure import Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
START_TIMEOUT = 10


class Server:
    """A process on one core, reached at `address`."""

    def __init__(self, name, command, core, address=None):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.DEVNULL if address else subprocess.PIPE,
                                        preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.pid = self.process.pid
        try:
            self.address = address or self.read_address()
            self.wait_until_open()
        except BaseException:
            self.end()
            raise

    def read_address(self):
        """The last word of its first line, "listening on ADDRESS"."""
        if not select.select([self.process.stdout], [], [], START_TIMEOUT)[0]:
            raise Wrong(f"{self.name}: does not say where it listens")
        words = self.process.stdout.readline().split()
        if words[:2] != ["listening", "on"]:
            raise Wrong(f"{self.name}: did not start")
        return words[-1]

    def wait_until_open(self):
        host, port = self.address.split(":")
        deadline = time.monotonic() + START_TIMEOUT
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Wrong(f"{self.name}: does not listen on {self.address}")

    def get(self, path, headers=None):
        """Returns status, header fields, body."""
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Wrong(f"{self.name}: GET {path}: {error!r}") from error
        finally:
            connection.close()

    def count(self):
        """Of the origin: answers with a measured body so far."""
        return int(self.get("/count")[2])

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def free_address():
    """One that was free a moment ago: nginx and haproxy cannot tell which port the system picked for them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def configuration(template, directory, origin, address):
    """Fills in a template. Returns the file."""
    with open(os.path.join(HERE, template)) as file:
        text = file.read()
    for name, value in (("@DIR@", directory), ("@ORIGIN@", origin.address), ("@PORT@", address.split(":")[1])):
        text = text.replace(name, value)
    path = os.path.join(directory, template)
    with open(path, "w") as file:
        file.write(text)
    return path


def program(name):
    """Debian has servers where a user's PATH may not look."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Wrong(f"{name}: not a program")
    return path


def start_origin(built, sizes, core):
    return Server("origin", [os.path.join(built, "bench", "origin"), *map(str, sizes)], core)


def start_proxy(name, built, directory, origin, core):
    if name == "lbproxy":
        return Server(name, [os.path.join(built, "lbproxy"), "--listen", "127.0.0.1:0", "--backend", origin.address],
                      core)
    address = free_address()
    if name == "nginx":
        path = configuration("nginx.conf", directory, origin, address)
        return Server(name, [program("nginx"), "-p", directory, "-e", "stderr", "-c", path], core, address)
    path = configuration("haproxy.cfg", directory, origin, address)
    return Server(name, [program("haproxy"), "-db", "-q", "-f", path], core, address)


def check_forwarding(proxy):
    """The four fields go on, an id that is given is kept, and one that is not is made: all three do this work."""
    for given in (None, "a-given-id"):
        status, fields, head = proxy.get("/head", {"X-Request-Id": given} if given else None)
        lines = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
        wanted = {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "via": f"1.1 {proxy.name}"}
        if given:
            wanted["x-request-id"] = given
        for field, value in wanted.items():
            if lines.get(field) != value:
                raise Wrong(f"{proxy.name}: {field} is {lines.get(field)!r}, not {value!r}, in:\n{head.decode()}")
        if len(lines.get("x-request-id", "")) < len("a-given-id") or "close" in lines.get("connection", ""):
            raise Wrong(f"{proxy.name}: no id, or no connection kept:\n{head.decode()}")
        if status != 200 or f"1.1 {proxy.name}" not in fields.get("Via", ""):
            raise Wrong(f"{proxy.name}: status {status}, Via: {fields.get('Via')}")


def check_proxy(proxy, sizes):
    """What is measured is the load, not an error page."""
    check_forwarding(proxy)
    for size in sizes:
        status, _, body = proxy.get(f"/{size}")
        if status != 200 or body != (b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]:
            raise Wrong(f"{proxy.name}: /{size}: status {status}, {len(body)} bytes")
