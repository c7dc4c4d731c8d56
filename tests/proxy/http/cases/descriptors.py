"""descriptors.py - what happens when they run out: those at the door wait, nobody inside is lost, and nothing spins."""
import resource
import socket
import time

from cases.load import quick
from kernel import descriptors, diag, patiently, processor_time
from kit import Client, case, expect, expect_in, expect_range
from wire import get


def limit(proxy, n):
    """From now on lbproxy can open no descriptor from number n on: with 3 none at all."""
    resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (n, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@case
def VC9_out_of_descriptors_client(c):
    """Those at the door wait, lbproxy does not spin, and goes on when there is room."""
    _, proxy = c.start(quick)
    expect("status of healthz, when all is open", proxy.ask_status("/healthz").status, 200)
    clients = [c.client() for _ in range(2)]
    for client in clients:
        expect("status", client.ask(get("/")).status, 200)
    limit(proxy, 3)
    waiting = [c.client() for _ in range(20)]
    for client in waiting:
        client.send(get("/w"))
    for client in clients:
        expect("who is inside is served", client.ask(get("/")).status, 200)
    before, began = processor_time(proxy.pid), time.monotonic()
    while time.monotonic() < began + 1:  # to measure over, not to wait for something
        time.sleep(0.1)
    busy = processor_time(proxy.pid) - before
    if not c.unmeasured():
        expect_range("seconds busy in one", busy, 0, 0.05)
    limit(proxy, 4096)
    began = time.monotonic()
    expect("statuses", {client.answer().status for client in waiting}, {200})
    expect_range("seconds until all are served", time.monotonic() - began, 0, 3)


@case
def VD2_few_descriptors_client(c):
    """With 64 in all: many at once are served in turn, none is lost, and nothing is left open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    backend = c.backend(quick)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    proxy = c.proxy(to=backend)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expect("status", c.ask(get("/")).status, 200)
    before = descriptors(proxy.pid)
    for _ in range(3):
        clients = [Client(proxy.address) for _ in range(100)]
        for i, client in enumerate(clients):
            client.send(get("/", "Connection: close") if i % 10 else b"GET")
        for i, client in enumerate(clients):
            client.reset() if i % 10 == 0 else expect_in("status", client.answer().status, (200, 503))
            client.close()
    patiently(lambda: descriptors(proxy.pid) <= before + 16, "descriptors are closed")
    expect("status", c.ask(get("/")).status, 200)


@case
def VD2_backends_out_of_reach_backend(c):
    """Links that cannot be opened, for want of a descriptor, are an answer, not a crash; and it recovers."""
    backend, proxy = c.start(quick)
    expect("status of healthz, when all is open", proxy.ask_status("/healthz").status, 200)
    client = c.client()
    expect("status", client.ask(get("/")).status, 200)
    limit(proxy, 3)
    for link in backend.links:
        ends = link.sock.getpeername(), link.sock.getsockname()
        link.sock.shutdown(socket.SHUT_RDWR)
        patiently(lambda ends=ends: diag.queues(*ends) is None, "lbproxy closes its link")
    answer = client.ask(get("/short"))
    expect_in("status", answer.status, (503, 504))
    limit(proxy, 4096)
    patiently(lambda: client.ask(get("/again")).status == 200, "it recovers")
