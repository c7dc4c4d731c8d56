"""start_line.py - the first line of a request: versions, methods, targets."""
from checks import as_seen, pass_on, refuse_each
from kit import case, echo, expect, expect_in
from wire import get, head, post

METHODS = ("DELETE GET POST PUT OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND REBIND UNBIND "
           "ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PATCH PURGE MKCALENDAR LINK "
           "UNLINK").split()
RTSP = ("DESCRIBE ANNOUNCE SETUP PLAY PAUSE TEARDOWN GET_PARAMETER SET_PARAMETER REDIRECT RECORD FLUSH").split()


def line(start):
    return head(start, [b"Host: test"])


@case
def versions_1_0_and_1_1_client(c):
    _, proxy = c.start()
    for version in ("1.0", "1.1"):
        seen = pass_on(c, proxy, get("/v", "A: b", version=version))
        expect("what goes on", (seen.method, seen.target, seen.plain), ("GET", "/v", [("A", "b")]))


@case
def other_versions_client(c):
    lines = [
        b"GET / HTTP/1.2", b"GET / HTTP/2.0", b"GET / HTTP/0.9", b"GET / HTTP/3.0", b"GET / HTTP/0.0", b"GET / HTTP/9.9"
    ]
    refuse_each(c, [b"GET /\r\n\r\n", *map(line, lines)], 505)


@case
def versions_that_are_none_client(c):
    lines = [
        b"GET / HTTP/1.10", b"GET / HTTP/1.", b"GET / HTTP/11", b"GET / HTTP/+1.1", b"GET / HTTP/1.1x",
        b"GET / HTTP/01.1", b"GET / HTTP/1,1", b"GET / http/1.1", b"GET / HTP/1.1", b"GET / HTTPS/1.1",
        b"GET / XHTTP/1.1", b"GET / HTTP/ 1.1", b"GET / HTTP /1.1", b"GET / ICE/1.0", b"GET / RTSP/1.0", b"GET / /1.1"
    ]
    refuse_each(c, map(line, lines), (400, 505))


@case
def odd_blanks_in_the_request_line_client(c):
    lines = [
        b"GET  / HTTP/1.1", b"GET /  HTTP/1.1", b"GET\t/ HTTP/1.1", b"GET /\tHTTP/1.1", b" GET / HTTP/1.1",
        b"GET / HTTP/1.1 ", b"GET / HTTP/1.1\t", b"GET / a HTTP/1.1", b"GET", b"GET /\x0bHTTP/1.1", b"/ HTTP/1.1",
        b"GET  HTTP/1.1", b"GET HTTP/1.1"
    ]
    refuse_each(c, map(line, lines), (400, 501, 505))


@case
def every_known_method_is_passed_on_client(c):
    _, proxy = c.start()
    for method in METHODS:
        answer = c.ask(get("/m", method=method), proxy=proxy)
        expect(f"status of {method}", answer.status, 200)
        seen = as_seen(answer)
        expect("what goes on", (seen.method, seen.target), (method, "/m"))
        if method != "TRACE":
            seen = as_seen(c.ask(post("/m", b"body", method=method), proxy=proxy))
            expect("what goes on", (seen.method, seen.body), (method, b"body"))
    expect("HEAD", c.ask(get("/m", method="HEAD"), proxy=proxy).status, 200)


@case
def unknown_methods_client(c):
    methods = [b"BREW", b"get", b"Get", b"G", b"GETT", b"GE", b"X" * 100, b"POST2", b"QUERY-X"]
    refuse_each(c, [get("/", method=method) for method in methods], 501)


@case
def methods_that_are_no_tokens_client(c):
    methods = [b"G(T", b"GET,", b"G\x80T", b"G\x00T", b"\"GET\"", b"{GET}"]
    refuse_each(c, [get("/", method=method) for method in methods], (400, 501))


@case
def pri_and_rtsp_methods_client(c):
    refuse_each(c, [get("/", method=method) for method in ["PRI", *RTSP]], 501)
    refuse_each(c, [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], (501, 505))


@case
def connect_is_refused_client(c):
    backend, proxy = c.start()
    for message in (get("test:443", method="CONNECT", host="test:443"), get("/", method="CONNECT"),
                    get("test:443", method="CONNECT", host="test:443") + b"\x16\x03\x01"):
        answer = c.client().ask(message)
        expect("status", answer.status, 405)
        allow = (answer.one("Allow") or "").split(", ")
        if "GET" not in allow or "CONNECT" in allow:
            raise AssertionError(f"Allow: {allow}")
    refuse_each(c, [get("test:443", method="CONNECT", host="test:443")], 405)
    expect("requests passed on", backend.targets(), [])


@case
def one_empty_line_before_a_request_client(c):
    _, proxy = c.start()
    expect("target", pass_on(c, proxy, b"\r\n" + get("/e")).target, "/e")
    client = c.client()
    client.send(get("/1") + b"\r\n" + post("/2", b"x") + b"\r\n" + get("/3"))
    expect("targets", [as_seen(client.answer()).target for _ in range(3)], ["/1", "/2", "/3"])


@case
def more_empty_lines_before_a_request_client(c):
    refuse_each(c, [b"\r\n\r\n" + get(), b"\n" + get(), b"\r" + get(), b"\r\n\n" + get(), b" \r\n" + get()], (400, 501))
    client = c.client(c.proxy(to=c.backend()))
    expect("status", client.ask(get("/1")).status, 200)
    client.send(b"\r\n\r\n" + get("/2"))
    client.refused(400)


@case
def targets_client(c):
    _, proxy = c.start()
    odd = bytes(byte for byte in range(0x21, 0x7f) if byte not in b"#?").decode()
    for target in ("/", "/a?b=1&c", "//x//", "/%00%0d%0a%zz", "/?", "/??", "/../..", "/" + odd, "/?" + odd, "/a:80/b@c",
                   "/http://other/"):
        expect("target", pass_on(c, proxy, get(target)).target, target)


@case
def bad_targets_client(c):
    bads = [
        b"/a#b", b"/#", b"#", b"a", b"?a", b"test", b"test:80", b"https://test/", b"ftp://test/", b"http:/test/",
        b"http:test", b"http:///a", b"http://", b"://test/", b"/\x80", b"/a\xff", b"/\xc3\xa9", b"/a\x01b", b"/a\x7f",
        b"/a\x00b", b"**", b"*a", b"http://test/a#b", b"http://te\x80st/", b"mailto:a"
    ]
    refuse_each(c, [get(target) for target in bads])


@case
def control_bytes_in_the_target_client(c):
    refuse_each(
        c,
        [b"GET /a%cb HTTP/1.1\r\nHost: test\r\n\r\n" % byte
         for byte in (*range(0x20), 0x7f) if byte not in (0x0a, )], (400, 505))


@case
def options_asterisk_client(c):
    _, proxy = c.start()
    seen = pass_on(c, proxy, get("*", method="OPTIONS"))
    expect("what goes on", (seen.method, seen.target, seen.values["host"]), ("OPTIONS", "*", ["test"]))


@case
def asterisk_with_other_methods_client(c):
    refuse_each(c, [get("*", method=method) for method in ("GET", "POST", "TRACE", "DELETE")])


@case
def absolute_form_is_rewritten_client(c):
    _, proxy = c.start()
    for target, wanted in (("http://test/a?b", "/a?b"), ("http://test", "/"), ("http://test/", "/"),
                           ("http://test?a=b", "/?a=b"), ("http://test//a", "//a")):
        seen = pass_on(c, proxy, get(target))
        expect(f"what goes on of {target}", (seen.target, seen.values["host"]), (wanted, ["test"]))
    seen = as_seen(c.ask(get("http://TEST:80/a", host="test:80"), proxy=proxy))
    expect("target", seen.target, "/a")
    expect_in("Host", seen.values["host"], (["TEST:80"], ["test:80"]))
    seen = as_seen(c.ask(get("http://test:81/a", host=None, version="1.0"), proxy=proxy))
    expect("of a 1.0 request", (seen.target, seen.values["host"]), ("/a", ["test:81"]))
    seen = as_seen(c.ask(get("http://test", method="OPTIONS"), proxy=proxy))
    expect_in("target of an OPTIONS for the server", seen.target, ("*", "/"))


@case
def absolute_form_that_disagrees_with_host_client(c):
    bads = [
        get("http://other/"),
        get("http://test:80/"),
        get("http://test/", host="test:80"),
        get("http://testx/"),
        get("http://tes/"),
        get("http://u@test/"),
        get("http://test@/"),
        get("http://u@test/", host="u@test"),
        get("http://test\\@other/"),
        get("http://other/", version="1.0"),
        get("http://test/", host=None)
    ]
    refuse_each(c, bads)


@case
def VE9_line_ends_in_texts_client(c):
    """Nothing that a client writes becomes a line of its own, in a request or in the log."""
    _, proxy = c.start(echo)
    target = "/%0d%0aX-A:%20b%00%0a"
    expect("target", as_seen(c.ask(get(target))).target, target)
    proxy.expect_logged(target, outcome="ok", status=200)
    c.ask(b"GET /a\r\nb HTTP/1.1\r\nHost: test\r\n\r\n")
    lines = proxy.wait_log(2)
    expect("lines in the log", len(lines), 2)
    expect("what a refused request is called", (lines[1].method, lines[1].target, lines[1].outcome),
           (lines[1].method, lines[1].target if lines[1].target in ("-", "/a") else "-", "refused"))
