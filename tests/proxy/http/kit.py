"""kit.py - what each case stands on: lbproxy, scripted backends, clients; all end with the case.

A case is a function with the name of its promise, registered by @case and given a Case. A backend's script is a
function of one connection (Link), run in a thread of its own; what comes is recorded byte by byte. Nothing waits
without a deadline. Case.end() stops the proxy in order, joins the backends and fails for whatever went wrong there, so
that what is asserted after it is final."""
import contextlib
import json
import os
import signal
import socket
import threading

from kernel import patiently
from peer import Client, Peer, check_own, expect, expect_in, expect_range
from proxy import Proxy
from wire import DEADLINE, Ended, ok

CASES = {}


def case(function):
    """Registers a case by its name."""
    if function.__name__ in CASES:
        raise AssertionError(f"two cases are called {function.__name__}")
    CASES[function.__name__] = function
    return function


class Link(Peer):
    """A connection that a backend has taken."""
    def __init__(self, sock, backend, number):
        super().__init__(sock)
        self.backend, self.number, self.requests, self.heads = backend, number, [], []

    def fill(self):
        before = len(self.got), self.end
        more = super().fill()
        if before != (len(self.got), self.end):
            self.backend.tell()
        return more

    def on_head(self, message):
        self.heads.append(message)
        self.backend.tell()

    def request(self):
        """The next request, whole; None: the link has ended before."""
        message = super().request()
        if message is not None:
            with self.backend.changed:
                self.requests.append(message)
                self.backend.requests.append(message)
            self.backend.tell()
        return message

    def each_request(self):
        with contextlib.suppress(Ended):
            while (request := self.request()) is not None:
                yield request

    def answer_to(self, request, body, *fields):
        """An answer of known length; to a HEAD its head alone."""
        message = ok(body, *fields)
        self.send(message[:len(message) - len(body)] if request.method == "HEAD" else message)

    def wait_end(self):
        """Reads until the proxy ends the link; says how."""
        self.rest()
        return self.end


class Backend:
    """Listens and runs `script(link)` for each connection. `requests` are all that came whole, `links` all links."""
    def __init__(self, script, address=("127.0.0.1", 0), listener=None):
        self.script, self.links, self.requests, self.faults = script, [], [], []
        self.changed, self.threads, self.closed = threading.Condition(), [], False
        self.listener = listener or socket.create_server(address, backlog=512)
        self.address = self.listener.getsockname()
        self.name = "%s:%d" % self.address
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            if self.closed:
                sock.close()
                return
            with self.changed:
                link = Link(sock, self, len(self.links))
                self.links.append(link)
                thread = threading.Thread(target=self.run, args=(link, ), daemon=True)
                self.threads.append(thread)
                self.changed.notify_all()
            thread.start()

    def run(self, link):
        try:
            self.script(link)
            link.close()
        except Ended as ended:
            link.end = ended.how
            link.close()
        except Exception as fault:  # of any kind: the case is told
            self.faults.append(f"link {link.number}: {type(fault).__name__}: {fault}")
            link.close()
        self.tell()

    def tell(self):
        with self.changed:
            self.changed.notify_all()

    def wait(self, condition, what):
        """Waits for something to happen here."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.faults or condition(), DEADLINE):
                raise AssertionError(f"not within {DEADLINE} s: {what}")
        self.check()

    def wait_requests(self, n):
        self.wait(lambda: len(self.requests) >= n, f"{n} requests")

    def wait_heads(self, n):
        self.wait(lambda: sum(len(link.heads) for link in self.links) >= n, f"{n} heads of requests")

    def wait_link_end(self, number=0):
        self.wait(lambda: len(self.links) > number and self.links[number].end is not None, f"the end of link {number}")
        return self.links[number].end

    def check(self):
        if self.faults:
            raise AssertionError("at a backend: " + "; ".join(self.faults))

    def stop_listening(self):
        """From now on connections are refused."""
        if not self.closed:
            self.closed = True
            self.listener.shutdown(socket.SHUT_RDWR)
            self.acceptor.join(DEADLINE)
            self.listener.close()

    def join(self):
        self.stop_listening()
        for thread in self.threads:
            thread.join(DEADLINE)
            if thread.is_alive():
                raise AssertionError("a backend's script does not end")
        self.check()

    def targets(self):
        return [request.target for request in self.requests]


def echo(link):
    """Answers each request with what it was, as JSON; but for the id, which is never the same."""
    for request in link.each_request():
        link.answer_to(request, describe(request))


def describe(request):
    """What a request said, X-Request-Id apart."""
    fields = [field for field in request.fields if field[0].lower() != "x-request-id"]
    return json.dumps(
        [request.method, request.target, fields, request.framing,
         request.body.decode("latin-1"), request.trailers]).encode()


class Case:
    """What one case has started."""
    def __init__(self, programs, folder):
        self.programs, self.folder, self.started = programs, folder, 0
        self.proxies, self.backends, self.clients = [], [], []
        with open(os.path.join(programs, "lbproxy"), "rb") as program:
            self.sanitized = b"__asan_init" in program.read()

    def backend(self, script=echo, **options):
        self.backends.append(Backend(script, **options))
        return self.backends[-1]

    def proxy(self, *options, to=None):
        """An lbproxy before the backends `to` (one, several, addresses as texts; by default all of the case)."""
        to = self.backends if to is None else to if isinstance(to, list) else [to]
        words = [word for one in to for word in ("--backend", one if isinstance(one, str) else one.name)]
        self.started += 1
        folder = os.path.join(self.folder, str(self.started))
        os.mkdir(folder)
        self.proxies.append(Proxy(os.path.join(self.programs, "lbproxy"), folder, [*words, *map(str, options)]))
        return self.proxies[-1]

    def start(self, script=echo, *options):
        """A backend, a proxy before it: the usual pair."""
        backend = self.backend(script)
        return backend, self.proxy(*options, to=backend)

    def client(self, proxy=None):
        self.clients.append(Client((proxy or self.proxies[-1]).address))
        return self.clients[-1]

    def ask(self, *pieces, proxy=None):
        """One request on a connection of its own."""
        client = self.client(proxy)
        answer = client.ask(*pieces)
        client.close()
        return answer

    def end(self):
        """Ends all, in order; whatever went wrong unseen comes out here."""
        for client in self.clients:
            client.close()
        for proxy in self.proxies:
            if not proxy.is_over():
                proxy.signal(signal.SIGTERM)
            proxy.expect_exit()
        for backend in self.backends:
            backend.join()
        self.clients, self.proxies = [], []

    def unmeasured(self):
        """Whether memory and time mean nothing here; says so."""
        if self.sanitized:
            print("note: memory and time are not measured in a sanitized build")
        return self.sanitized


__all__ = [
    "Backend", "Case", "Client", "Ended", "case", "check_own", "describe", "echo", "expect", "expect_in",
    "expect_range", "patiently"
]
