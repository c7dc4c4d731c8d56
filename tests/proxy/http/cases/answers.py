"""answers.py - a backend's answers: the rules for requests mirrored, and what only answers have."""
from cases.framing import BAD_CODINGS, BAD_EXTENSIONS, BAD_LENGTHS, BAD_SIZES
from checks import answer_each, refuse_answers
from kit import case, expect, expect_in
from wire import chunked, get, head, ok, ok_chunks


def answer(start, *fields, body=b"hello", length=True):
    return head(start, [*fields, *([b"Content-Length: %d" % len(body)] if length else [])]) + body


def answered(framing, body):
    return head(b"HTTP/1.1 200 OK", framing) + body


def in_chunks(body):
    return answered([b"Transfer-Encoding: chunked"], body)


def plain(message, *without):
    """An answer's fields but for framing, Via and what lbproxy says of the connection."""
    return [
        field for field in message.fields
        if field[0].lower() not in ("via", "connection", "content-length", "transfer-encoding", *without)
    ]


@case
def versions_1_0_and_1_1_backend(c):
    seen, backend, _ = answer_each(
        c,
        [answer(b"HTTP/1.1 200 OK"),
         answer(b"HTTP/1.0 200 OK"),
         answer(b"HTTP/1.0 200 OK", b"Connection: keep-alive")])
    expect("versions, bodies", {(one.minor, one.body) for one in seen}, {(1, b"hello")})


@case
def other_versions_backend(c):
    refuse_answers(c, [
        answer(line) for line in (b"HTTP/1.2 200 OK", b"HTTP/2.0 200 OK", b"HTTP/0.9 200 OK", b"HTTP/3 200 OK",
                                  b"HTTP/1.10 200 OK", b"HTTP/11 200 OK", b"http/1.1 200 OK", b"ICY 200 OK",
                                  b"HTP/1.1 200 OK", b"RTSP/1.0 200 OK", b"XHTTP/1.1 200 OK", b"HTTP/1.1x 200 OK")
    ])


@case
def VE8_status_lines_backend(c):
    lines = [
        b"HTTP/1.1 200 OK", b"HTTP/1.1 200 ", b"HTTP/1.1 599 a b  c", b"HTTP/1.1 299 t\xe9st\tx",
        b"HTTP/1.1 404 " + b"r" * 1000, b"HTTP/1.1 200 " + bytes(range(0x21, 0x7f))
    ]
    seen, _, _ = answer_each(c, [answer(line) for line in lines])
    for line, one in zip(lines, seen):
        expect("status line", b"HTTP/1.1 %d %s" % (one.status, one.reason.encode("latin-1")), line)
        expect("body", one.body, b"hello")


@case
def VE8_bad_status_lines_backend(c):
    numbers = [
        b"000", b"099", b"99", b"600", b"999", b"1000", b"20", b"2", b"2000", b"-200", b"+200", b"2x0", b"", b"0x200",
        b" 200", b"200.1", b"two"
    ]
    lines = [b"HTTP/1.1 " + number + b" OK" for number in numbers]
    lines += [
        b"HTTP/1.1", b"HTTP/1.1 ", b"HTTP/1.1\t200 OK", b"HTTP/1.1  200 OK", b" HTTP/1.1 200 OK", b"200 OK", b"hello",
        b"HTTP/1.1 200\x00OK", b"HTTP/1.1 200 a\x00b", b"HTTP/1.1 200 \x01", b"HTTP/1.1 200 a\x7f",
        b"HTTP/1.1 200 a\rb", b"HTTP/1.1 200 OK\r", b"HTTP/1.1 200 a\x0bb", b"GET / HTTP/1.1"
    ]
    refuse_answers(c,
                   [answer(line)
                    for line in lines] + [b"\r\n\r\n" + answer(b"HTTP/1.1 200 OK"), b"\n" + answer(b"HTTP/1.1 200 OK")])


@case
def VE6_field_bytes_backend(c):
    obs = bytes(range(0x80, 0x100))
    fields = [
        b"A:b", b"B:  \t b \t ", b"C:", b"!#$%&'*+-.^_`|~09azAZ: x", b"E: a\tb", b"F: " + obs, b"X_Under: kept",
        b"Set-Cookie: a", b"set-cookie: b", b"Server: x", b"Content-Type: text/html; charset=\"x\""
    ]
    (seen, ), _, _ = answer_each(c, [answer(b"HTTP/1.1 200 OK", *fields)])
    expect("fields", plain(seen), [("A", "b"), ("B", "b"), ("C", ""), ("!#$%&'*+-.^_`|~09azAZ", "x"), ("E", "a\tb"),
                                   ("F", obs.decode("latin-1")), ("X_Under", "kept"), ("Set-Cookie", "a"),
                                   ("set-cookie", "b"), ("Server", "x"), ("Content-Type", "text/html; charset=\"x\"")])
    expect("Via", seen.all("Via"), ["1.1 lbproxy"])


@case
def VE6_bad_field_lines_backend(c):
    bads = [
        b": b", b":", b"A : b", b"A\t: b", b" A: b", b"A b: c", b"A", b"A: b\r\n c", b"A: b\r\n\tc", b"A: b\nC: d",
        b"A: b\rC: d", b"A: b\r\r\nC: d", b"A\r: b", b"A: b\x00c", b"A\x00: b", b"\x00: b", b"A\x0b: b", b"A: b\x7f",
        b"A: b\x01", b"\xc3\xa9: b", b"\"A\": b", b"A/B: c", b"{A}: b", b"A,B: c", b"A: \r", b"A@: b"
    ]
    refuse_answers(c, [answer(b"HTTP/1.1 200 OK", bad) for bad in bads])


@case
def VE6_bare_line_ends_backend(c):
    refuse_answers(c, [
        b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 200 OK\rContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 200 OK\r\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\r\nhello"
    ])


@case
def VE6_every_control_byte_backend(c):
    controls = [byte for byte in (*range(0x20), 0x7f) if byte not in (0x09, 0x0a)]
    refuse_answers(c, [answer(b"HTTP/1.1 200 OK", b"A: b%cd" % byte) for byte in controls])


@case
def VE1_length_with_chunked_backend(c):
    te, cl = b"Transfer-Encoding: chunked", b"Content-Length: 5"
    refuse_answers(c, [
        answered(fields, b"0\r\n\r\n") for fields in ([te, cl], [cl, te], [te, b"Content-Length: 0"], [te, b"A: b", cl],
                                                      [cl, b"Transfer-Encoding: identity"], [b"Content-Length: ", te])
    ])


@case
def VE1_length_or_chunked_backend(c):
    seen, backend, _ = answer_each(c, [ok(b"hello"), ok_chunks([b"hel", b"lo"]), ok(b""), ok_chunks([])])
    expect("bodies", [(one.framing, one.body) for one in seen], [("length", b"hello"), ("chunked", b"hello"),
                                                                 ("length", b""), ("chunked", b"")])
    if len(backend.links) > 60:  # as many as were asked at a time, and not a link for each of 200 answers
        raise AssertionError(f"{len(backend.links)} links for {len(backend.requests)} answers")


@case
def VE2_one_length_backend(c):
    seen, _, _ = answer_each(c, [
        answered([b"Content-Length:" + value], b"hello") for value in (b"5", b" 005", b"  5 ", b" 0000000000000000005")
    ])
    expect("bodies", {(one.framing, one.body, int(one.one("Content-Length")))
                      for one in seen}, {("length", b"hello", 5)})


@case
def VE2_odd_lengths_backend(c):
    refuse_answers(c, [answered([b"Content-Length: " + value], b"hello") for value in BAD_LENGTHS])


@case
def VE2_several_lengths_backend(c):
    five, six = b"Content-Length: 5", b"content-length: 6"
    refuse_answers(c, [
        answered(fields, b"hello") for fields in ([five, five], [five, six], [six, five], [five, b"A: b", five],
                                                  [b"Content-Length: ", five], [five, b"Content-Length:"], [five] * 3)
    ])


@case
def VE4_exactly_chunked_backend(c):
    seen, _, _ = answer_each(c, [
        answered([b"transfer-encoding:" + value], chunked([b"hello"]))
        for value in (b"chunked", b" CHUNKED", b"  chunked ")
    ])
    expect("bodies", {(one.framing, one.body) for one in seen}, {("chunked", b"hello")})


@case
def VE4_other_codings_backend(c):
    te = b"Transfer-Encoding: "
    messages = [[te + value] for value in BAD_CODINGS] + [[te + b"chunked"] * 2, [te + b"gzip", te + b"chunked"],
                                                          [te + b"chunked", te]]
    refuse_answers(c, [answered(fields, chunked([b"hello"])) for fields in messages])


@case
def VE4_chunked_on_1_0_backend(c):
    refuse_answers(c, [
        head(b"HTTP/1.0 200 OK", [b"Transfer-Encoding: " + value, *more]) + chunked([b"hello"])
        for value in (b"chunked", b"identity") for more in ([], [b"Connection: keep-alive"])
    ])


@case
def VE5_chunks_backend(c):
    bodies = [
        b"5\r\nhello\r\n0\r\n\r\n", b"0000000000000005\r\nhello\r\n0000\r\n\r\n", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"5;a=\"b c\"; e\r\nhello\r\n0;x\r\n\r\n", b"5;\r\nhello\r\n0\r\n\r\n",
        b"5;" + b"e" * 255 + b"\r\nhello\r\n0\r\n\r\n"
    ]
    seen, _, _ = answer_each(c, [in_chunks(body) for body in bodies])
    expect("bodies", {(one.framing, one.body) for one in seen}, {("chunked", b"hello")})


@case
def VE5_bad_sizes_backend(c):
    refuse_answers(c, [in_chunks(size + b"\r\nhello\r\n0\r\n\r\n") for size in BAD_SIZES], partly=True)


@case
def VE5_bad_sizes_of_later_chunks_backend(c):
    refuse_answers(c, [in_chunks(b"1\r\nx\r\n" + size + b"\r\nhello\r\n0\r\n\r\n") for size in BAD_SIZES], partly=True)


@case
def VE5_bad_ends_of_chunks_backend(c):
    bodies = [
        b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r0\r\n\r\n", b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\r\n0\n\r\n", b"5\r\nhello\r\n0\r\n\n", b"4\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\rx", b"0\n\n", b"5\rhello\r\n0\r\n\r\n"
    ]
    refuse_answers(c, [in_chunks(body) for body in bodies], partly=True)


@case
def VE5_bad_extensions_backend(c):
    bads = [*BAD_EXTENSIONS, b";" + b"e" * 257]
    refuse_answers(c, [in_chunks(b"5" + bad + b"\r\nhello\r\n0\r\n\r\n") for bad in bads], partly=True)


@case
def VE7_lengths_do_not_wrap_backend(c):
    """An answer with a size at the edge of 31, 32 or 63 bits stays open: what looks like its end, and like another
    answer, is its body."""
    sizes = [2**bits + more for bits in (31, 32, 63) for more in (-1, 0, 5)] + [2**64 - 1]
    poison = b"\r\n0\r\n\r\n" + ok(b"poison")
    starts = [answered([b"Transfer-Encoding: chunked"], b"%x\r\n" % size) for size in sizes]
    starts += [answered([b"Content-Length: %d" % size], b"") for size in sizes if size < 2**63]

    def script(link):
        for request in link.each_request():
            if request.target == "/control":
                link.send(ok(b"control"))
                continue
            link.send(starts[int(request.target[1:])] + poison)
            link.wait_end()
            return

    _, proxy = c.start(script)
    for i in range(len(starts)):
        client = c.client()
        client.send(get(f"/{i}"))
        expect("the answer begins", client.line(0)[:9], b"HTTP/1.1 ")
        client.sock.settimeout(0.05)  # what comes more is the body that has come; the end does not
        try:
            while client.sock.recv(65536):
                pass
        except OSError:
            pass
        client.close()
        expect("the next", c.ask(get("/control")).body, b"control")
    expect_in("outcomes", {line.outcome
                           for line in proxy.wait_log(2 * len(starts))} - {"ok", "client_gone"},
              (set(), {"backend_broken"}))


@case
def trailers_backend(c):
    message = ok_chunks([b"hello"], trailers=["T: 1", "t: 2", "E:", "Via: 1.1 evil"])
    (seen, ), _, proxy = answer_each(c, [message])
    expect("trailers", (seen.body, seen.trailers), (b"hello", [("T", "1"), ("t", "2"), ("E", "")]))
    old = c.ask(get("/0/0", version="1.0"), proxy=proxy)
    expect("what a 1.0 client gets", (old.framing, old.body), ("close", b"hello"))


@case
def bad_trailers_backend(c):
    lines = [
        b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: x", b"Connection: close", b"Keep-Alive: x",
        b"TE: x", b"Upgrade: x", b": a", b"A : b", b" A: b", b"A", b"A: b\x00", b"A: b\r\n c", b"A: b\rC: d", b"A: b\n",
        b"HTTP/1.1 200 OK"
    ]
    refuse_answers(c, [in_chunks(b"5\r\nhello\r\n0\r\n" + line + b"\r\n\r\n") for line in lines], partly=True)


@case
def VE10_hop_by_hop_fields_are_removed_backend(c):
    hop = [
        "Connection: X-Gone, keep-alive", "X-Gone: 1", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
        "TE: trailers", "Upgrade: h2c, websocket", "HTTP2-Settings: a", "Proxy-Authenticate: Basic",
        "Proxy-Authorization: x"
    ]
    (seen, ), _, _ = answer_each(c, [ok(b"hello", "A: b", *hop, "C: d")])
    expect("fields", plain(seen), [("A", "b"), ("C", "d")])
    expect("Connection", [one for one in seen.options() if one not in ("keep-alive", "")], [])


@case
def VE10_connection_strips_no_framing_backend(c):
    option = "Connection: Content-Length, Transfer-Encoding, Via"
    seen, _, _ = answer_each(c,
                             [ok(b"hello", option, "Via: 1.0 first"),
                              ok_chunks([b"hello"], option, "Via: 1.0 first")])
    for one, framing in zip(seen, ("length", "chunked")):
        expect("framing", (one.framing, one.body), (framing, b"hello"))
        expect("Via", ", ".join(one.all("Via")), "1.0 first, 1.1 lbproxy")


@case
def bad_connection_lists_backend(c):
    refuse_answers(c, [
        ok(b"hello", "Connection: " + ", ".join(f"x-{i}" for i in range(65))),
        ok(b"hello", "Connection: a b"),
        ok(b"hello", "Connection: \"close\""),
        ok(b"hello", "Connection: a/b")
    ])
