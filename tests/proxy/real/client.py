"""client.py - python's http.client: one connection, requests of each kind, each answer compared with what it must be.

Usage: client.py ADDR FOLDER ROUNDS [echo] [put]    a round asks for each file of the folder; says how many it asked

echo: POST is answered with what was sent. put: PUT keeps it. Both are sent by length and in chunks.
"""
import hashlib
import http.client
import os
import sys

address, folder, rounds = sys.argv[1:4]
connection = http.client.HTTPConnection(address, timeout=20)
asked = 0
kept = None  # the connection's own address, as long as no answer has said that it ends


def ask(method, path, body=None, **options):
    global asked, kept
    asked += 1
    connection.request(method, path, body, **options)
    assert kept in (None, connection.sock.getsockname()), "another connection than before"
    kept = connection.sock.getsockname()
    answer = connection.getresponse()
    if answer.will_close:  # a server may answer before it has all of a body
        assert body is not None, f"{method} {path}: the connection ends with it"
        kept = None
    return answer, answer.read()


def same(what, got, wanted):
    assert hashlib.sha256(got).digest() == hashlib.sha256(wanted).digest(), \
        f"{what}: {len(got)} bytes, not the {len(wanted)} that it must be"


def in_pieces(body):
    for at in range(0, len(body), 7000):
        yield body[at:at + 7000]


for turn in range(int(rounds)):
    for name in ("small", "text", "large"):
        with open(os.path.join(folder, name), "rb") as file:
            wanted = file.read()
        answer, got = ask("GET", f"/{name}?{turn}")
        assert answer.status == 200, f"GET {name}: {answer.status}"
        same(f"GET {name}", got, wanted)
        answer, got = ask("HEAD", f"/{name}")
        assert answer.status == 200 and got == b"" and int(answer.headers["Content-Length"]) == len(wanted), "HEAD"
        for method in [m for m, word in (("POST", "echo"), ("PUT", "put")) if word in sys.argv]:
            for chunked in (False, True):
                body = in_pieces(wanted) if chunked else wanted
                answer, got = ask(method, f"/{'echo' if method == 'POST' else 'put'}/kept", body,
                                  encode_chunked=chunked,
                                  headers={"Transfer-Encoding": "chunked"} if chunked else {})
                assert answer.status in (200, 201, 204), f"{method}: {answer.status}"
                if method == "PUT":
                    answer, got = ask("GET", "/put/kept")
                same(f"{method} {name}", got, wanted)
    answer, got = ask("GET", "/none")
    assert answer.status == 404, f"GET of what is not there: {answer.status}"
print(asked)
