"""lines.py - a server of lines with a login, as examples/lineproto_core.h describes it, in a thread of the test."""

import socket
import threading


class Lines:
    """What it heard is in `heard`, a list for each connection. `answers`: a line's first word to what is said to it,
    bytes as they go; None: it closes the connection; a list: one after the other, the last for ever. By default each line is answered with
    +OK and itself."""

    def __init__(self, answers=None, limit=60):
        self.answers, self.heard = answers or {}, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(limit)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.heard.append([])
            try:
                self.serve(client, self.heard[-1])
            except ConnectionError:
                pass
            client.close()

    def serve(self, client, heard):
        for line in client.makefile("rb"):
            line = line.decode().rstrip("\r\n")
            heard.append(line)
            answer = self.answers.get(line.split(" ")[0], b"+OK %s\r\n" % line.encode())
            if isinstance(answer, list):  # one after the other
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
            if answer is None:
                return
            client.sendall(answer)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)  # ends the accepting
        self.socket.close()
        self.thread.join()
