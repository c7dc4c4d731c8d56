"""framing.py - where a request ends: Content-Length, Transfer-Encoding, chunks, trailers. Smuggling lives here."""
from checks import as_seen, expect_nothing_else, pass_on, refuse_each
from kit import case, echo, expect, expect_in
from wire import chunked, get, head, post, post_chunks, split_requests

BAD_LENGTHS = [
    b"", b"+5", b"-5", b"-0", b"0x5", b"5,", b",5", b"5, 5", b"5,5", b"5;", b"5 5", b"5.0", b"5e0", b"a", b"05a",
    b"\"5\"", b"9223372036854775808", b"18446744073709551615", b"18446744073709551621", b"99999999999999999999",
    b"00000000000000000005", b"5\x0b", b"\x005", b"\xb2"
]
BAD_CODINGS = [
    b"chunked, chunked", b"chunked,chunked", b",chunked", b"chunked,", b"xchunked", b"chunkedx", b"chunke", b"identity",
    b"gzip, chunked", b"chunked, gzip", b"gzip", b"chunked;a=b", b"chunked ;", b"\"chunked\"", b"'chunked'", b"",
    b"chunked\x0b", b"\x0bchunked", b"chunked\x0c", b"\xa0chunked", b"chunked\xa0", b"chunked\x00", b"\x00chunked",
    b"chun\tked", b"chunked chunked", b"chunked\r\n ", b"\r\n chunked", b"cow, chunked", b"identity, chunked",
    b"chun ked", b"\xefchunked"
]
BAD_SIZES = [
    b"", b"0x5", b"+5", b"-5", b"-0", b" 5", b"5 ", b"\t5", b"5\t", b"5 ;a=b", b"5\t;a", b"g", b"5g", b"5h5", b"0X5",
    b"5,", b"5.", b"\"5\"", b"00000000000000005", b"10000000000000005", b"fffffffffffffffff", b"5\x00", b"\x005",
    b"5\x0b", b"5\r", b"\r5", b"\xb5", b"_5", b"5_0", b"$5", b"5 5", b"x", b"\\x5", b"5\n", b"\n5"
]
BAD_EXTENSIONS = [
    b";a=\x00", b";\x00", b";a\rb", b";a\nb", b";\n", b";\r", b";a=\x7f", b";a=\x80", b";\x0b", b";a=\x01", b";\ta",
    b";a=b\r\r"
]


def posted(framing, body=b"", version=b"1.1"):
    return head(b"POST /p HTTP/" + version, [b"Host: test", *framing]) + body


def in_chunks(body):
    return posted([b"Transfer-Encoding: chunked"], body)


@case
def VE1_length_with_chunked_client(c):
    te, cl, body = b"Transfer-Encoding: chunked", b"Content-Length: 5", b"0\r\n\r\n"
    bads = [[te, cl], [cl, te], [te.lower(), cl.upper()], [te, b"Content-Length: 0"], [b"Content-Length: ", te],
            [te, b"A: b", cl], [cl, b"Transfer-Encoding: identity"], [cl, b"Transfer-Encoding: "],
            [cl, b"Transfer-Encoding: xchunked"]]
    refuse_each(c, [posted(bad, body) for bad in bads] + [posted([te, cl], body, b"1.0")])


@case
def VE1_length_or_chunked_client(c):
    _, proxy = c.start()
    seen = pass_on(c, proxy, post("/p", b"hello"))
    expect("body", (seen.framing, seen.body, seen.values["content-length"]), ("length", b"hello", ["5"]))
    seen = pass_on(c, proxy, post_chunks("/p", [b"hel", b"lo"]))
    expect("body", (seen.framing, seen.body, "content-length" in seen.values), ("chunked", b"hello", False))


@case
def VE2_one_length_client(c):
    backend, proxy = c.start()
    for value, body in ((b"5", b"hello"), (b"0", b""), (b"0000000000000000005", b"hello"), (b"00", b""), (b"  5 ",
                                                                                                          b"hello")):
        seen = pass_on(c, proxy, posted([b"Content-Length:" + value], body))
        expect("body", (seen.body, [int(one) for one in seen.values.get("content-length", ["0"])]), (body, [len(body)]))
    client = c.client()
    client.send(posted([b"Content-Length: 9223372036854775807"], b"x"))
    heads = len(backend.requests) + 1
    backend.wait_heads(heads)
    expect("the longest there is",
           [link.heads[-1].one("Content-Length") for link in backend.links if len(link.heads) > len(link.requests)],
           ["9223372036854775807"])
    client.close()


@case
def VE2_odd_lengths_client(c):
    refuse_each(c, [posted([b"Content-Length: " + value], b"hello") for value in BAD_LENGTHS])


@case
def VE2_several_lengths_client(c):
    twice = [[b"Content-Length: 5", b"Content-Length: 5"], [b"Content-Length: 5", b"Content-Length: 6"],
             [b"Content-Length: 0", b"content-length: 5"], [b"Content-Length: 5", b"CONTENT-LENGTH: 0"],
             [b"Content-Length: 5", b"A: b", b"Content-Length: 5"], [b"Content-Length: ", b"Content-Length: 5"],
             [b"Content-Length: 5", b"Content-Length:"], [b"Content-Length: 5"] * 3]
    refuse_each(c, [posted(fields, b"hello") for fields in twice])


@case
def VE4_exactly_chunked_client(c):
    _, proxy = c.start()
    for value in (b" chunked", b"chunked", b" CHUNKED", b" Chunked", b"  chunked "):
        seen = pass_on(c, proxy, posted([b"transfer-ENCODING:" + value], chunked([b"hello"])))
        expect("body", (seen.framing, seen.body, seen.values["transfer-encoding"]), ("chunked", b"hello", ["chunked"]))


@case
def VE4_tabs_around_the_framing_client(c):
    """Blanks around a value, which others may or may not take for a part of it: refused, or read as without them."""
    backend, proxy = c.start()
    for field in (b"Transfer-Encoding:\tchunked", b"Transfer-Encoding: chunked\t", b"Transfer-Encoding: chunked \t ",
                  b"Content-Length:\t15", b"Content-Length: 15\t", b"Content-Length: 15 \t"):
        client = c.client()
        answer = client.ask(posted([field], chunked([b"hello"])))
        if answer.status != 400:
            expect("body", len(as_seen(answer).body), 15 if field.startswith(b"C") else 5)
        client.close()
    c.end()
    expect(
        "framing that goes on", {
            framing
            for request in backend.requests
            for framing in request.all("Transfer-Encoding") + request.all("Content-Length")
        } <= {"chunked", "15"}, True)


@case
def VE4_other_codings_client(c):
    body = chunked([b"hello"])
    refuse_each(c, [posted([b"Transfer-Encoding: " + value], body) for value in BAD_CODINGS])
    te = b"Transfer-Encoding: "
    twice = [[te + b"chunked", te + b"chunked"], [te + b"chunked", te + b"identity"], [te + b"gzip", te + b"chunked"],
             [te + b"chunked", te.lower()], [te, te + b"chunked"], [b"Transfer-Encoding : chunked"]]
    refuse_each(c, [posted(fields, body) for fields in twice])


@case
def VE4_chunked_on_1_0_client(c):
    refuse_each(c, [
        posted([b"Transfer-Encoding: " + value, *more], chunked([b"hello"]), b"1.0")
        for value in (b"chunked", b"identity", b"") for more in ([], [b"Connection: keep-alive"])
    ])


@case
def VE5_chunks_client(c):
    _, proxy = c.start()
    longest = b"5;" + b"e" * 255 + b"\r\nhello\r\n0\r\n\r\n"
    goods = [
        b"5\r\nhello\r\n0\r\n\r\n", b"0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n",
        b"2\r\nhe\r\n3\r\nllo\r\n00\r\n\r\n", b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
        b"5;a=\"b c;d\"; e\r\nhello\r\n0\r\n\r\n", b"5;\r\nhello\r\n0\r\n\r\n",
        b"1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n", longest
    ]
    for body in goods:
        seen = pass_on(c, proxy, in_chunks(body))
        expect("body", (seen.body, seen.trailers), (b"hello", []))
    seen = pass_on(c, proxy, in_chunks(b"0\r\n\r\n"))
    expect("an empty body", (seen.framing, seen.body), ("chunked", b""))
    seen = pass_on(c, proxy, in_chunks(b"A\r\n0123456789\r\na\r\n\r\n0\r\n\r\nGET\r\n0\r\n\r\n"))
    expect("what looks like an end in a chunk", seen.body, b"0123456789\r\n0\r\n\r\nGET")


@case
def VE5_bad_sizes_client(c):
    refuse_each(c, [in_chunks(size + b"\r\nhello\r\n0\r\n\r\n") for size in BAD_SIZES], partly=True)
    refuse_each(c, [in_chunks(b"1\r\nx\r\n" + size + b"\r\nhello\r\n0\r\n\r\n") for size in BAD_SIZES], partly=True)


@case
def VE5_bad_ends_of_chunks_client(c):
    bodies = [
        b"5\nhello\r\n0\r\n\r\n", b"5\rhello\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n", b"5\r\nhello\r\r\n0\r\n\r\n", b"5\r\nhello\n\n0\r\n\r\n",
        b"5\r\nhello\r\n0\n\r\n", b"5\r\nhello\r\n0\r\r\n", b"5\r\nhello\r\n0\r\n\n", b"5\r\nhello\r\n0\r\n\rx",
        b"5\r\nhello\r\n\r\n0\r\n\r\n", b"4\r\nhello\r\n0\r\n\r\n", b"5\r\nhello 0\r\n\r\n", b"5;a\nhello\r\n0\r\n\r\n",
        b"5;a\rhello\r\n0\r\n\r\n", b"0\n\n", b"0\r\n\n", b"0\n\r\n", b"5\r\r\nhello\r\n0\r\n\r\n"
    ]
    refuse_each(c, map(in_chunks, bodies), partly=True)


@case
def VE5_bad_extensions_client(c):
    bads = [*BAD_EXTENSIONS, b";" + b"e" * 257, b";a=" + b"e" * 4000]
    refuse_each(c, [in_chunks(b"5" + bad + b"\r\nhello\r\n0\r\n\r\n") for bad in bads], partly=True)
    refuse_each(c, [in_chunks(b"5\r\nhello\r\n0" + bad + b"\r\n\r\n") for bad in bads], partly=True)


@case
def VE7_lengths_do_not_wrap_client(c):
    """Sizes at the edges of 8, 16, 32 and 64 bits are what they are: the message stays open, or is refused."""
    sizes = [b"%x" % (2**bits + more) for bits in (31, 32, 63)
             for more in (-1, 0, 5)] + [b"ffffffffffffffff", b"fffffffffffffffb"]
    backend, proxy = c.start()
    clients = []
    for size in sizes:
        clients.append(c.client())
        clients[-1].send(in_chunks(size + b"\r\n\r\n0\r\n\r\n") + get("/smuggled"))
        clients[-1].settle()
    for bits in (8, 16):
        seen = as_seen(c.ask(post("/long", b"x" * (2**bits + 5)), proxy=proxy))
        expect("bytes of a body", len(seen.body), 2**bits + 5)
        seen = as_seen(c.ask(post_chunks("/long", [b"x" * (2**bits + 5)]), proxy=proxy))
        expect("bytes of a body", len(seen.body), 2**bits + 5)
    for client in clients:
        client.close()
    c.end()
    expect("targets", backend.targets(), ["/long"] * 4)


@case
def VE7_long_names_and_values_client(c):
    _, proxy = c.start()
    for n in (127, 128, 255, 256, 257, 511, 512, 16383, 32767, 32768):
        field = ("N" * n, "v")
        expect("a long name", as_seen(c.ask(get("/", ": ".join(field)), proxy=proxy)).plain == [field], True)
        field = ("A", "v" * n)
        expect("a long value",
               as_seen(c.ask(get("/", ": ".join(field), "B: b"), proxy=proxy)).plain == [field, ("B", "b")], True)


@case
def trailers_client(c):
    backend, proxy = c.start()
    lines = [
        "T: 1", "t: 2", "X-Long: " + "v" * 100, "E:", "X-Forwarded-For: 6.6.6.6", "Via: 1.1 evil", "X-Request-Id: x",
        "X-Forwarded-Proto: https"
    ]
    seen = pass_on(c, proxy, post_chunks("/", [b"hello"], "Trailer: T", trailers=lines))
    expect("body and trailers", (seen.body, seen.trailers), (b"hello", [("T", "1"), ("t", "2"), ("X-Long", "v" * 100),
                                                                        ("E", "")]))
    expect("X-Forwarded-For", seen.values["x-forwarded-for"], ["127.0.0.1"])
    client = c.client()
    client.send(post_chunks("/1", [b"a"], trailers=["T: 1"]) + get("/2"))
    expect("targets", [as_seen(client.answer()).target for _ in range(2)], ["/1", "/2"])


@case
def bad_trailers_client(c):
    lines = [
        b"Content-Length: 5", b"content-length: 0", b"Transfer-Encoding: chunked", b"Host: other", b"Connection: close",
        b"TE: x", b"Keep-Alive: x", b"Upgrade: x", b"Proxy-Connection: x", b"Proxy-Authorization: x", b": a", b"A : b",
        b" A: b", b"A", b"A: b\n", b"A: b\rC: d", b"A: b\x00", b"A\x00: b", b"A: b\r\n c", b"A\x80: b", b"A: \x7f",
        b"\"A\": b", b"GET / HTTP/1.1"
    ]
    refuse_each(c, [in_chunks(b"5\r\nhello\r\n0\r\n" + line + b"\r\n\r\n") for line in lines], partly=True)
    refuse_each(c, [in_chunks(b"0\r\nT: a\r\n" + line + b"\r\n\r\n") for line in lines], partly=True)


@case
def a_body_on_trace_client(c):
    bads = [
        post("/", b"hello", method="TRACE"),
        post("/", b"", method="TRACE"),
        post_chunks("/", [b"hello"], method="TRACE"),
        post_chunks("/", [], method="TRACE")
    ]
    refuse_each(c, [bads[0], bads[2], bads[3]])
    backend, proxy = c.start()
    expect_in("status of a TRACE with Content-Length: 0", c.ask(bads[1], proxy=proxy).status, (200, 400))


@case
def bodies_on_other_methods_client(c):
    _, proxy = c.start()
    for method in ("GET", "DELETE", "OPTIONS", "PUT", "PATCH"):
        expect("body", pass_on(c, proxy, post("/", b"hello", method=method)).body, b"hello")
        expect("body", pass_on(c, proxy, post_chunks("/", [b"hello"], method=method)).body, b"hello")
    expect("status", c.ask(post("/", b"hello", method="HEAD"), proxy=proxy).status, 200)


@case
def a_request_without_framing_has_no_body_client(c):
    """Bytes behind a POST without a length are the next request: here none."""
    backend, proxy = c.start(echo)
    client = c.client()
    client.send(get("/p", method="POST") + b"hello" + get("/smuggled"))
    expect("body", (as_seen(client.answer()).framing), "none")
    client.refused((400, 501))
    c.end()
    expect("targets", backend.targets(), ["/p"])
    expect_nothing_else(backend)


@case
def what_is_refused_in_a_body_never_ends_client(c):
    """The request whose body is wrong stays open at the backend until its link is closed: no end is made up for it."""
    backend, proxy = c.start()
    client = c.client()
    client.send(in_chunks(b"5\r\nhello\r\n"), b"zz\r\nhello\r\n0\r\n\r\n")
    client.refused(400)
    proxy.expect_logged("/p", status=400, outcome="refused")
    c.end()
    expect("whole requests", backend.targets(), [])
    seen = bytes(next(link.got for link in backend.links if link.got))
    expect("what the backend saw is one open request", (split_requests(seen)[0], seen.endswith(b"5\r\nhello\r\n")),
           ([], True))
