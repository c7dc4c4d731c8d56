"""websocket.py - a WebSocket server that echoes, and a client that says so many messages and hears them all, in order.

Usage: websocket.py serve                              says "listening on ADDR", then a line for each end of a client
       websocket.py ask ADDR CONNECTIONS MESSAGES      exit status 0: all came back, and every end was in order
"""
import asyncio
import random
import sys

import websockets


async def echo(socket):
    heard = 0
    async for message in socket:
        heard += 1
        await socket.send(message)
    print(f"closed {socket.close_code} after {heard}", flush=True)


async def serve():
    async with websockets.serve(echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print("listening on 127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


def make_messages(number, count):
    """Text and bytes, empty to 70,000: past each of the three lengths that a frame may have."""
    draw = random.Random(number)
    sizes = [0, 1, 125, 126, 65535, 65536]
    for i in range(count):
        size = sizes[i] if i < len(sizes) else int(70000 ** draw.random())
        data = draw.randbytes(size)
        yield data.hex()[:size] if i % 2 else data


async def ask(address, number, count):
    async with websockets.connect(f"ws://{address}/echo?{number}", compression=None, max_size=None) as socket:
        messages = list(make_messages(number, count))

        async def say():
            for message in messages:
                await socket.send(message)

        saying = asyncio.create_task(say())
        for i, message in enumerate(messages):
            assert await socket.recv() == message, f"message {i} is another"
        await saying
        await (await socket.ping())
        await socket.close(1000, "done")
        assert socket.close_code == 1000, f"closed with {socket.close_code}"


async def ask_all(address, connections, count):
    await asyncio.gather(*(ask(address, number, count) for number in range(connections)))


if sys.argv[1] == "serve":
    asyncio.run(serve())
else:
    asyncio.run(asyncio.wait_for(ask_all(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])), 60))
