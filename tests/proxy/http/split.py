"""split.py - a message cut in two at every position: what comes of it must not depend on how it was cut.

Many connections at a time: all send their first piece, and when the proxy has read them all, their second."""
from kernel import is_taken, patiently
from kit import Client

AT_ONCE = 48


def cuts(message, step=1):
    """The message whole, then in two at every position, or at every so many."""
    return [[message]] + [[message[:i], message[i:]] for i in range(1, len(message), step)]


def send_each(address, messages):
    """Sends each message, a list of pieces, on a connection of its own; yields the connections."""
    for i in range(0, len(messages), AT_ONCE):
        batch = [(Client(address), message) for message in messages[i:i + AT_ONCE]]
        for k in range(max(len(message) for _, message in batch)):
            due = [(client, message[k]) for client, message in batch if k < len(message)]
            patiently(lambda due=due: all(is_taken(client.sock) for client, _ in due), "lbproxy reads what was sent")
            for client, piece in due:
                try:
                    client.sock.sendall(piece)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # refused by its first piece; the answer is read as any other
        for client, message in batch:
            yield client, message
            client.close()


def try_each(address, messages, look):
    """look(client) for each message; names the message where that fails."""
    seen = []
    for client, message in send_each(address, messages):
        try:
            seen.append(look(client))
        except Exception as fault:
            raise AssertionError(f"sent as {message!r}: {type(fault).__name__}: {fault}") from None
    return seen
