"""server.py - python's http.server, as it is (HTTP/1.0), or with HTTP/1.1, POST that is answered with what came, and PUT.

Usage: server.py 1.0|1.1 FOLDER    says "listening on ADDR"
"""
import functools
import http.server
import sys


class Plain(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Full(Plain):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def take(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def tell(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.tell(200, self.take())

    def do_PUT(self):
        with open(self.translate_path(self.path), "wb") as file:
            file.write(self.take())
        self.tell(201, b"")


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


handler = functools.partial(Full if sys.argv[1] == "1.1" else Plain, directory=sys.argv[2])
server = Server(("127.0.0.1", 0), handler)
print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
