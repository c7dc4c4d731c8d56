"""load.py - peers that send without end, do not read, drip or crowd: bounded memory, and time that grows no faster than
what is sent."""
import resource
import select
import socket
import threading
import time

from checks import still_serves
from cases.limits import numbered, padded
from kernel import diag, memory, processor_time, unsent
from kit import Client, Ended, case, expect, expect_in, expect_range
from wire import get, ok, ok_chunks, post, post_chunks, reply

# ---- back-pressure ----


def stalled(sock, feed):
    """Feeds a socket until nothing is taken for a while; returns how many bytes it took."""
    sent, piece = 0, memoryview(feed)
    sock.setblocking(False)
    while select.select([], [sock], [], 0.3)[1]:
        try:
            sent += sock.send(piece[sent % 1024:])
        except BlockingIOError:
            pass
    sock.setblocking(True)
    sock.settimeout(10)
    return sent


def behind(sender, receiver):
    """Of what `sender` was given, what stands in the kernel's queues until `receiver` reads it."""
    to_proxy = diag.queues(sender.getpeername(), sender.getsockname())
    from_proxy = diag.queues(receiver.getpeername(), receiver.getsockname())
    received = diag.queues(receiver.getsockname(), receiver.getpeername())
    return unsent(sender) + to_proxy[0] + from_proxy[1] + received[0]


FEED = b"x" * (1 << 18)
TAIL = 60000  # bytes, fewer than lbproxy reads at once
HELD = 2 * 65536 + 16384  # bytes that lbproxy may hold of one direction: its buffer, and what it has just read


@case
def VD1_a_client_that_does_not_read_backend(c):
    """The backend is made to wait, and lbproxy holds a buffer of what it sent."""
    sent, told = {}, threading.Semaphore(0)

    def script(link):
        for request in link.each_request():
            link.send(
                reply("200 OK", "Content-Length: 1000000000000") if "length" in request.target else reply("200 OK"))
            sent[request.target] = stalled(link.sock, FEED), link
            told.release()
            link.wait_end()
            return

    backend, proxy = c.start(script)
    before, clients = memory(proxy.pid), {}
    for i in range(12):
        target = f"/length{i}" if i % 2 else f"/close{i}"
        clients[target] = c.client()
        clients[target].send(get(target, version="1.1" if i % 2 else "1.0"))
    for _ in clients:
        expect("a backend is made to wait", told.acquire(timeout=20), True)
    for target, client in clients.items():
        n, link = sent[target]
        expect_range("bytes that lbproxy holds", n - behind(link.sock, client.sock), -2000, HELD)
    if not c.unmeasured():
        expect_range("KiB more in memory", memory(proxy.pid) - before, 0, len(clients) * HELD // 1024)
    still_serves(c, c.proxy(to=c.backend()))


@case
def VD1_a_backend_that_does_not_read_client(c):
    """The mirror: the client is made to wait."""
    gate = threading.Event()

    def script(link):
        link.line(0)
        gate.wait(30)
        link.wait_end()

    backend, proxy = c.start(script)
    before, clients = memory(proxy.pid), []
    for _ in range(6):
        client = c.client()
        client.send(get("/", "Content-Length: 1000000000000", method="POST"))
        clients.append(client)
    results = [None] * len(clients)

    def feed(i):
        results[i] = stalled(clients[i].sock, FEED)

    threads = [threading.Thread(target=feed, args=(i, )) for i in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    backend.wait(lambda: len([link for link in backend.links if link.got]) == len(clients), "links")
    in_kernel = sum(
        unsent(client.sock) + diag.queues(client.sock.getpeername(), client.sock.getsockname())[0]
        for client in clients)
    for link in backend.links:
        from_proxy = diag.queues(link.sock.getpeername(), link.sock.getsockname())
        in_kernel += from_proxy[1] + diag.queues(link.sock.getsockname(), link.sock.getpeername())[0] + len(link.got)
    expect_range("bytes that lbproxy holds", sum(results) - in_kernel, -2000 * len(clients), HELD * len(clients))
    if not c.unmeasured():
        expect_range("KiB more in memory", memory(proxy.pid) - before, 0, len(clients) * HELD // 1024)
    for client in clients:
        client.reset()
    gate.set()


def small_listener():
    """Whose connections take little before their reader does."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    return listener


def taken_by(link):
    """Bytes that have left lbproxy on a link, read or not."""
    from_proxy = diag.queues(link.sock.getpeername(), link.sock.getsockname())
    return from_proxy[1] + diag.queues(link.sock.getsockname(), link.sock.getpeername())[0] + len(link.got)


@case
def VB3_an_answer_while_lbproxy_holds_the_request_backend(c):
    """lbproxy has all of a request, the backend has not taken all, and answers: the link, on which the rest is owed, is
    used by nobody else."""
    answer_now = threading.Event()

    def script(link):
        if b"/control" not in link.line(0):
            answer_now.wait(20)
            link.send(ok(b"early"))
        else:
            link.send(ok(b"control"))
        link.rest()

    backend = c.backend(script, listener=small_listener())
    proxy = c.proxy(to=backend)
    measuring = c.client()
    measuring.send(get("/measure", "Content-Length: 100000000", method="POST"))
    stalled(measuring.sock, FEED)
    room = taken_by(backend.links[0])
    measuring.reset()
    client, request = c.client(), post("/owed", b"x" * (room + TAIL // 2))
    client.send(request[:-TAIL])
    client.settle()
    with proxy.stopped():  # so that it reads the tail at once, of which the kernel takes only a part
        client.send(request[-TAIL:])
        client.wait_sent()
    client.settle()
    link = backend.links[-1]
    expect_range("bytes that lbproxy holds of a whole request", len(request) - taken_by(link), 1000, TAIL)
    answer_now.set()
    expect("the answer", client.answer().body, b"early")
    client.close()
    still_serves(c, proxy)
    backend.wait_link_end(link.number)
    expect("what came on the link", b"/control" in link.got, False)


@case
def VD1_a_long_answer_takes_no_memory_backend(c):
    total = 256 << 20
    gate = threading.Event()

    def script(link):
        for request in link.each_request():
            if request.method == "POST":
                continue
            link.send(
                reply("200 OK", f"Content-Length: {total}") if request.target ==
                "/length" else reply("200 OK", "Transfer-Encoding: chunked"))
            for _ in range(total // len(FEED)):
                link.send(FEED if request.target == "/length" else b"%x\r\n%s\r\n" % (len(FEED), FEED))
            gate.wait(10)
            if request.target != "/length":
                link.send(b"0\r\n\r\n")

    backend, proxy = c.start(script)
    before = memory(proxy.pid)
    for target in ("/length", "/chunks"):
        client, n = c.client(), 0
        client.send(get(target))
        while n < total:
            piece = client.sock.recv(1 << 18)
            if not piece:
                raise AssertionError(f"the answer ends after {n} bytes")
            n += len(piece)
        gate.set()
        client.reset()
    if not c.unmeasured():
        expect_range("KiB more in memory", memory(proxy.pid, "VmHWM") - before, 0, 1500)


# ---- endless heads, and time that grows no faster than what is sent ----


def send_endless(client, start, piece, most):
    sent = len(start)
    client.send(start)
    try:
        while sent < most:
            client.send(piece)
            sent += len(piece)
    except Ended:
        pass
    return sent


@case
def VD3_endless_heads_client(c):
    backend, proxy = c.start()
    before = memory(proxy.pid)
    for start, piece in ((b"GET / HTTP/1.1\r\nHost: test\r\nA: ", b"v" * 65536), (b"GET / HTTP/1.1\r\nHost: test\r\n",
                                                                                  b"a:b\r\n" * 13000),
                         (b"GET / HTTP/1.1\r\nHost: test\r\n", b"n" * 65536), (b"GET /", b"t" * 65536), (b"",
                                                                                                         b"M" * 65536)):
        client = c.client()
        sent = send_endless(client, start, piece, 1 << 28)
        expect("cut off before 256 MiB", sent < 1 << 28, True)
        answers = {int(client.got.split(b" ")[1])} if client.fill() else set()
        expect("status", answers <= {431, 414, 400, 501}, True)
    if not c.unmeasured():
        expect_range("KiB more in memory", memory(proxy.pid, "VmHWM") - before, 0, 1500)
    still_serves(c, proxy)
    c.end()
    expect("requests", backend.targets(), ["/control"])


@case
def VD3_endless_heads_backend(c):
    starts = {
        "/value": (b"HTTP/1.1 200 OK\r\nA: ", b"v" * 65536),
        "/fields": (b"HTTP/1.1 200 OK\r\n", b"a:b\r\n" * 13000),
        "/reason": (b"HTTP/1.1 200 ", b"r" * 65536),
        "/name": (b"HTTP/1.1 200 OK\r\n", b"n" * 65536),
        "/trailer": (reply("200 OK", "Transfer-Encoding: chunked") + b"0\r\nT: ", b"v" * 65536),
        "/extension": (reply("200 OK", "Transfer-Encoding: chunked") + b"5;", b"e" * 65536),
        "/size": (reply("200 OK", "Transfer-Encoding: chunked"), b"0" * 65536),
        "/early": (b"", reply("103 Early Hints", "A: b") * 1000)
    }

    def script(link):
        for request in link.each_request():
            if request.target not in starts:
                link.send(ok())
                continue
            send_endless(link, *starts[request.target], 1 << 28)
            return

    backend, proxy = c.start(script)
    before = memory(proxy.pid)
    for target in starts:
        client = c.client()
        client.send(get(target))
        try:
            answer = client.answer()
            while answer.status == 103:
                answer = client.answer()
            expect("status", answer.status, 502)
        except Ended as ended:
            expect("how it ends", ended.how, "reset")
        expect_in("outcome", proxy.logged(target).outcome, ("backend_broken", "cut"))
    if not c.unmeasured():
        expect_range("KiB more in memory", memory(proxy.pid, "VmHWM") - before, 0, 1500)
    still_serves(c, proxy)


def costs(proxy, run):
    """Processor seconds of lbproxy while run() runs; the least of several."""
    seen = []
    for _ in range(4):
        before = processor_time(proxy.pid)
        run()
        seen.append(processor_time(proxy.pid) - before)
    return min(seen)


def expect_linear(c, proxy, run, n):
    """Twice as much takes at most 2.2 times as long, and 10 ms. What else the machine does can only make a figure larger,
    and what costs the square takes four times as long each time: so it need hold once in six."""
    run(n)
    for _ in range(6):
        once, twice = costs(proxy, lambda: run(n)), costs(proxy, lambda: run(2 * n))
        if c.unmeasured() or twice <= 2.2 * once + 0.010:
            print(f"note: {once * 1000:.1f} and {twice * 1000:.1f} ms")
            return
    raise AssertionError(f"{n} take {once:.4f} s, twice as many {twice:.4f} s")


def quick(link):
    """Answers, without looking at more than where requests end."""
    for request in link.each_request():
        link.answer_to(request, b"ok")


@case
def VD3_a_dripping_head_costs_its_bytes_client(c):
    _, proxy = c.start(quick)

    def drip(n):
        message = padded(n)
        client = c.client()
        for i in range(len(message)):
            client.send(message[i:i + 1])
            client.settle()
        expect("status", client.answer().status, 200)
        client.close()

    expect_linear(c, proxy, drip, 2500)


@case
def VD3_many_fields_cost_their_bytes_client(c):
    _, proxy = c.start(quick)

    def ask(n):
        options = b"Connection: " + b", ".join(b"n%d" % i for i in range(50)) + b"\r\n"
        message, client = numbered(n, b"GET / HTTP/1.1\r\nHost: test\r\n", options), c.client()
        for _ in range(100):
            expect("status", client.ask(message).status, 200)
        client.close()

    expect_linear(c, proxy, ask, 120)


@case
def VD3_many_chunks_cost_their_bytes_client(c):
    _, proxy = c.start(quick)

    def send(n):
        expect("status", c.ask(post_chunks("/", [b"x"] * n)).status, 200)

    expect_linear(c, proxy, send, 60000)


@case
def VD3_many_chunks_cost_their_bytes_backend(c):
    def script(link):
        for request in link.each_request():
            link.send(ok_chunks([b"x"] * int(request.target[1:])))

    _, proxy = c.start(script)

    def ask(n):
        expect("bytes", len(c.ask(get(f"/{n}")).body), n)

    expect_linear(c, proxy, ask, 60000)


@case
def VD3_many_pipelined_requests_cost_their_bytes_client(c):
    _, proxy = c.start(quick)

    def ask(n):
        client = c.client()
        feed = threading.Thread(target=lambda: client.send(get("/") * n), daemon=True)
        feed.start()
        for _ in range(n):
            expect("status", client.answer().status, 200)
        feed.join(10)
        client.close()

    expect_linear(c, proxy, ask, 800)


# ---- many slow clients ----


@case
def VD5_a_thousand_slow_heads_client(c):
    """Each drips; the time for a head is absolute; others are served meanwhile, and memory stays small."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    _, proxy = c.start(quick, "--header-timeout", 2)
    c.ask(get("/warm"))
    before, began = memory(proxy.pid), time.monotonic()
    clients = [Client(proxy.address) for _ in range(1000)]
    for client in clients:
        client.send(b"GET / HTTP/1.1\r\nHost: test\r\nA: ")
    grown, slowest, drips = 0, 0, 0
    while time.monotonic() < began + 1.5:
        drips += 1
        for client in clients:
            client.send(b"v")
        asked = time.monotonic()
        expect("status of another", c.ask(get("/other")).status, 200)
        slowest = max(slowest, time.monotonic() - asked)
        grown = memory(proxy.pid) - before
    statuses = {client.answer().status for client in clients}
    took = time.monotonic() - began
    expect("statuses", statuses, {408})
    expect_range("seconds until all are refused", took, 1.9, 8)
    for client in clients:
        client.close()
    print(f"note: {grown} KiB for 1000, slowest of {drips} others {slowest * 1000:.1f} ms")
    if not c.unmeasured():
        expect_range("KiB for a thousand slow heads", grown, 0, 6000)
        expect_range("ms for another", slowest * 1000, 0, 500)
    still_serves(c, proxy)


@case
def VD5_a_thousand_idle_clients_client(c):
    """Clients that are kept alive, and those that never say a word, hold no buffer."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    _, proxy = c.start(quick, "--keepalive-timeout", 30)
    c.ask(get("/warm"))
    before = memory(proxy.pid)
    clients = [Client(proxy.address) for _ in range(1000)]
    for client in clients[:500]:
        expect("status", client.ask(get("/")).status, 200)
    grown = memory(proxy.pid) - before
    print(f"note: {grown} KiB for 1000")
    if not c.unmeasured():
        expect_range("KiB for a thousand", grown, 0, 3000)
    for client in clients:
        client.close()
