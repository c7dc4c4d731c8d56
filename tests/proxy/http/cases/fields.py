"""fields.py - the fields of a request: their bytes, Host, what is for one connection only, what is added."""
import os
import re

from checks import OURS, as_seen, pass_on, refuse_each
from kit import Client, case, echo, expect
from wire import get, head, post, post_chunks

TOKEN_CHARS = "!#$%&'*+-.^`|~09azAZ"
CONTROLS = [byte for byte in (*range(0x20), 0x7f) if byte not in (0x09, 0x0a)]


def fields_of(raw):
    return b"GET /f HTTP/1.1\r\nHost: test\r\n" + raw + b"\r\n\r\n"


@case
def VE6_field_bytes_client(c):
    """What is legal goes on, written anew."""
    _, proxy = c.start()
    obs = bytes(range(0x80, 0x100))
    raw = [
        b"X-" + TOKEN_CHARS.encode() + b": a", b"A:b", b"B:  \t b \t ", b"C:", b"D: \t", b"E: a\tb  c",
        b"F: a:b: c,;=\"\\\"", b"G: " + bytes(range(0x21, 0x7f)), b"H: " + obs, b"a: lower", b"A: again"
    ]
    seen = pass_on(c, proxy, fields_of(b"\r\n".join(raw)))
    expect("fields", seen.plain, [("X-" + TOKEN_CHARS, "a"), ("A", "b"), ("B", "b"), ("C", ""), ("D", ""),
                                  ("E", "a\tb  c"), ("F", "a:b: c,;=\"\\\""), ("G", bytes(range(0x21, 0x7f)).decode()),
                                  ("H", obs.decode("latin-1")), ("a", "lower"), ("A", "again")])


@case
def VE6_bad_field_lines_client(c):
    bads = [
        b": b", b":", b":b", b"A : b", b"A\t: b", b" A: b", b"\tA: b", b"A b: c", b"A", b"A b", b"=", b"A: b\r\n c",
        b"A: b\r\n\tc", b"A:\r\n b", b"A: b\r\n \r\nC: d", b"A: b\nC: d", b"A: b\rC: d", b"A: b\r\r\nC: d", b"A\r: b",
        b"A\r\n: b", b"A: b\n", b"A\n", b"\rA: b", b"A: \r", b"A: b\x00c", b"A\x00: b", b"\x00: b", b"A: \x00",
        b"A\x0b: b", b"A: b\x7f", b"\xc3\xa9: b", b"A\x80: b", b"\xa0A: b", b"\"A\": b", b"(A): b", b"A/B: c", b"A@: b",
        b"{A}: b", b"A,B: c", b"A;B: c", b"A=B: c", b"[A]: b", b"<A>: b", b"A?: b", b"A\\B: c"
    ]
    refuse_each(c, map(fields_of, bads))
    first = b"GET /f HTTP/1.1\r\n%s\r\nHost: test\r\n\r\n"
    refuse_each(c, [first % bad for bad in (b" A: b", b"\tHost: other", b": b", b"A : b", b" ", b"\x00")])


@case
def VE6_bare_line_ends_client(c):
    bads = [
        b"GET / HTTP/1.1\nHost: test\r\n\r\n", b"GET / HTTP/1.1\rHost: test\r\n\r\n",
        b"GET / HTTP/1.1\r\r\nHost: test\r\n\r\n", b"GET / HTTP/1.1\r\nHost: test\n\r\n",
        b"GET / HTTP/1.1\r\nHost: test\r\n\n", b"GET / HTTP/1.1\r\nHost: test\n\n",
        b"GET / HTTP/1.1\r\nHost: test\r\r\n\r\n", b"GET / HTTP/1.1\r\nHost: test\r\n\r\r\n",
        b"GET / HTTP/1.1\n\rHost: test\r\n\r\n", b"GET / HTTP/1.1\r\nHost: te\rst\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: test\r\nA: b\r \r\n\r\n", b"\nGET / HTTP/1.1\r\nHost: test\r\n\r\n"
    ]
    refuse_each(c, bads)


@case
def VE6_every_control_byte_client(c):
    refuse_each(c, [fields_of(b"A: b%cd" % byte) for byte in CONTROLS])
    refuse_each(c, [fields_of(b"A%cB: c" % byte) for byte in (*CONTROLS, 0x09, 0x20)])


@case
def VE6_every_byte_that_is_no_token_client(c):
    names = [
        byte for byte in range(0x21, 0x100)
        if byte not in TOKEN_CHARS.encode() and not chr(byte).isalnum() and byte not in b":_\x7f" or byte >= 0x80
    ]
    backend, proxy = c.start()
    for byte in names:
        client = c.client()
        client.send(fields_of(b"A%cB: c" % byte))
        client.refused(400)
    c.end()
    expect("requests passed on", backend.targets(), [])


@case
def hosts_client(c):
    _, proxy = c.start()
    for host in ("test", "TEST.example", "test:8080", "127.0.0.1", "[::1]", "[::1]:80", "a-b.c_d",
                 "xn--bcher-kva.example", "a" * 255):
        expect("Host", pass_on(c, proxy, get(host=host)).values["host"], [host])
    expect("Host", pass_on(c, proxy, b"GET / HTTP/1.1\r\nA: b\r\nhOsT:\ttest\r\n\r\n").values["host"], ["test"])


@case
def bad_hosts_client(c):
    hosts = [
        "", " ", "a b", "a\tb", "a/b", "a@b", "a?b", "a#b", "a\\b", "a\"b", "a<b", "a>b", "a^b", "a{b}", "a|b", "a`b",
        "\x80", "t\xe9st", "http://test", "test/"
    ]
    refuse_each(c, [get(host=host) for host in hosts])


@case
def none_or_two_hosts_client(c):
    two = b"%s / HTTP/1.%d\r\nHost: %s\r\nA: b\r\n%s: %s\r\n\r\n"
    bads = [
        two % (b"GET", 1, b"test", b"Host", b"test"), two % (b"GET", 1, b"test", b"hOST", b"other"),
        two % (b"GET", 0, b"test", b"Host", b"test"), two % (b"GET", 0, b"test", b"host", b"other"),
        two % (b"GET", 1, b"", b"Host", b"test"), two % (b"GET", 1, b"test", b"Host", b"")
    ]
    refuse_each(c, [get(host=None), get("/", "Hos: test", "Host2: test", host=None), *bads])


@case
def no_host_on_1_0_client(c):
    _, proxy = c.start()
    seen = pass_on(c, proxy, get("/", host=None, version="1.0"))
    expect("Host", seen.values["host"], ["%s:%d" % proxy.address])


@case
def VE10_hop_by_hop_fields_are_removed_client(c):
    _, proxy = c.start()
    hop = [
        "Connection: keep-alive, X-Gone", "X-Gone: 1", "x-gone: 2", "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive", "Proxy-Authenticate: Basic", "Proxy-Authorization: Basic x", "TE: trailers",
        "Upgrade: websocket", "HTTP2-Settings: AAMA", "Connection: x-also-gone ,,\tX-3", "X-Also-Gone: 1", "X-3: 1"
    ]
    seen = pass_on(c, proxy, get("/", "A: b", *hop, "C: d"))
    expect("fields", seen.plain, [("A", "b"), ("C", "d")])
    expect("framing", [name for name in seen.values if name in ("content-length", "transfer-encoding", "connection")],
           [])


@case
def VE10_connection_strips_none_of_ours_client(c):
    """What a client names in Connection cannot take away Host, the framing, or what lbproxy adds."""
    _, proxy = c.start()
    ours = "X-Forwarded-For, X-Forwarded-Proto, Via, X-Request-Id"
    options = f"Connection: Host, Content-Length, Transfer-Encoding, {ours}, close"
    given = ["X-Forwarded-For: 10.0.0.1", "Via: 1.1 first", "X-Request-Id: abc", options]
    for message, body, framing in ((get("/", *given), b"", "none"), (post("/", b"12345", *given), b"12345", "length"),
                                   (post_chunks("/", [b"123", b"45"], *given), b"12345", "chunked")):
        seen = pass_on(c, proxy, message)
        expect("body", (seen.framing, seen.body), (framing, body))
        expect("Host", seen.values.get("host"), ["test"])
        expect("X-Forwarded-Proto", seen.values.get("x-forwarded-proto"), ["http"])
        expect("lists", [", ".join(seen.values.get(name, [])) for name in ("x-forwarded-for", "via")],
               ["10.0.0.1, 127.0.0.1", "1.1 first, 1.1 lbproxy"])


@case
def VE10_underscores_are_dropped_client(c):
    _, proxy = c.start()
    names = [
        "X_Forwarded_For", "X-Forwarded_For", "Content_Length", "_", "a_", "_a", "Transfer_Encoding", "X_Request_Id"
    ]
    seen = pass_on(c, proxy, get("/", *[name + ": 5" for name in names], "A: b_c"))
    expect("fields", seen.plain, [("A", "b_c")])
    expect("X-Forwarded-For", seen.values["x-forwarded-for"], ["127.0.0.1"])


@case
def connection_lists_client(c):
    backend, proxy = c.start()
    options = ", ".join(f"x-{i}" for i in range(64))
    expect("fields", pass_on(c, proxy, get("/", "Connection: " + options, "X-63: a", "X-64: b")).plain, [("X-64", "b")])
    many = [f"Connection: x-{i}" for i in range(64)]
    expect("fields", pass_on(c, proxy, get("/", *many, "X-0: a", "X-64: b")).plain, [("X-64", "b")])
    c.end()
    expect("Connection passed on",
           [request.all("Connection") for request in backend.requests if request.all("Connection")], [])


@case
def bad_connection_lists_client(c):
    options = ", ".join(f"x-{i}" for i in range(65))
    bads = [
        "Connection: " + options, "Connection: a b", "Connection: close;x", "Connection: \"close\"", "Connection: a/b",
        "Connection: a=b", "Connection: close, a b", "Connection: cl\x80se", "Connection: close,(x)"
    ]
    refuse_each(c, [get("/", bad) for bad in bads])
    refuse_each(c, [get("/", *[f"Connection: x-{i}" for i in range(65)])])


@case
def forwarded_fields_are_added_client(c):
    _, proxy = c.start()
    seen = pass_on(c, proxy, get())
    expect("fields of ours", [seen.values.get(name) for name in OURS[:3]], [["127.0.0.1"], ["http"], ["1.1 lbproxy"]])
    seen = pass_on(c, proxy, get(version="1.0"))
    expect("Via of a 1.0 request", seen.values["via"], ["1.0 lbproxy"])
    given = [
        "X-Forwarded-For: 10.0.0.1, 10.0.0.2", "Via: 1.0 a, 1.1 b", "x-forwarded-for: 10.0.0.3",
        "X-Forwarded-Proto: https", "VIA: 1.1 c", "X-Forwarded-Proto: gopher"
    ]
    seen = pass_on(c, proxy, get("/", *given))
    expect("X-Forwarded-For", seen.values["x-forwarded-for"], ["10.0.0.1, 10.0.0.2, 10.0.0.3, 127.0.0.1"])
    expect("X-Forwarded-Proto", seen.values["x-forwarded-proto"], ["http"])
    expect("Via", ", ".join(seen.values["via"]), "1.0 a, 1.1 b, 1.1 c, 1.1 lbproxy")


@case
def request_ids_client(c):
    backend, proxy = c.start()
    for good in ("a", "!~", "0" * 128, "a,b"):
        c.ask(get("/", "X-Request-Id: " + good), proxy=proxy)
        expect("X-Request-Id", backend.requests[-1].all("X-Request-Id"), [good])
    own = set()
    bads = [[], ["X-Request-Id: " + "0" * 129], ["X-Request-Id: "], ["X-Request-Id: a b"], ["X-Request-Id: a\tb"],
            ["X-Request-Id: \xe9"], ["X-Request-Id: a", "X-Request-Id: a"], ["X-Request-Id: a", "x-request-id: b"]]
    for bad in bads * 20:
        c.ask(get("/", *bad), proxy=proxy)
        seen = backend.requests[-1].one("X-Request-Id")
        if re.fullmatch("[0-9a-f]{32}", seen) is None:
            raise AssertionError(f"X-Request-Id {seen} for {bad}")
        own.add(seen)
    expect("different ids", len(own), len(bads) * 20)


@case
def unix_clients_client(c):
    backend = c.backend()
    path = os.path.join(c.folder, "socket")
    proxy = c.proxy("--listen", "unix:" + path, to=backend)
    seen = as_seen(Client(path).ask(get("/", "X-Forwarded-For: 10.0.0.1")))
    expect("X-Forwarded-For", seen.values["x-forwarded-for"], ["10.0.0.1, unknown"])
    expect("status without a Host", Client(path).ask(get("/unix", host=None, version="1.0")).status, 200)
    expect("Hosts", len(backend.requests[-1].all("Host")), 1)
    proxy.logged("/unix")


@case
def ipv6_clients_client(c):
    backend = c.backend()
    proxy = c.proxy("--listen", "[::1]:0", to=backend)
    seen = as_seen(c.ask(get("/six", host=None, version="1.0")))
    expect("X-Forwarded-For", seen.values["x-forwarded-for"], ["::1"])
    expect("Host, where none was given", seen.values["host"], [f"[::1]:{proxy.address[1]}"])
    proxy.expect_logged("/six", client="::1", outcome="ok")


@case
def expectations_client(c):
    _, proxy = c.start(echo)
    for value in ("100-continue", "100-Continue"):
        seen = as_seen(c.ask(post("/", b"body", "Expect: " + value), proxy=proxy))
        expect("Expect", [one.lower() for one in seen.values["expect"]], ["100-continue"])
    refuse_each(
        c, [post("/", b"", f"Expect: {value}") for value in ("100-continu", "200-ok", "a=b", "100-continue, x", "100")],
        417)


@case
def the_order_of_fields_is_kept_client(c):
    """Fields go on in their order, each by itself, with names as they were written."""
    _, proxy = c.start()
    lines = [
        f"{name}: {i}"
        for i, name in enumerate(["Cookie", "accept", "COOKIE", "X-A", "Set-Cookie", "set-cookie", "x-a", "Trailer"])
    ]
    seen = pass_on(c, proxy, head(b"GET / HTTP/1.1", [b"Host: test"] + [line.encode() for line in lines]))
    expect("fields", [f"{name}: {value}" for name, value in seen.plain], lines)
