# SPDX-License-Identifier: LicenseRef-Undeclared
"""A simulated network: forwards a port of loopback to another one, with a delay in each direction. It can be cut, and then
forwards nothing until it is mended. Standard library; a process of its own, so that traffic does not wait for a test.
Usage: relay.py TARGET_PORT DELAY_MS; prints its port; a line `cut` or `mend` on stdin is done once it is printed again."""

import asyncio
import contextlib
import socket
import subprocess
import sys

CHUNKS = 64  # of 64 KiB that are under way in one direction


class Relay:
    def __init__(self, target, delay_ms=0):
        self.process = subprocess.Popen([sys.executable, __file__, str(target), str(delay_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.port = int(self.process.stdout.readline())

    def send_word(self, word):
        self.process.stdin.write(word + "\n")
        assert self.process.stdout.readline() == word + "\n"

    def cut(self):
        self.send_word("cut")

    def mend(self):
        self.send_word("mend")

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Carrier:
    def __init__(self, target, delay_ms):
        self.target, self.delay, self.whole = target, delay_ms / 1000, asyncio.Event()
        self.whole.set()

    async def accept(self, reader, writer):
        await self.whole.wait()
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ways = [self.way(reader, there_writer), self.way(there_reader, writer)]
        await asyncio.gather(*ways)

    async def way(self, reader, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        carried = asyncio.Queue(CHUNKS)
        sender = asyncio.ensure_future(self.send(carried, writer))
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await carried.put((asyncio.get_running_loop().time() + self.delay, data))
        await carried.put((asyncio.get_running_loop().time() + self.delay, b""))
        await sender

    async def send(self, carried, writer):
        """What failed is read on, so that the other side does not wait."""
        while True:
            due, data = await carried.get()
            await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()))
            await self.whole.wait()
            with contextlib.suppress(OSError):
                if not data:
                    writer.close()
                    return
                if not writer.is_closing():
                    writer.write(data)
                    await writer.drain()

    async def run(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while word := (await lines.readline()).decode().strip():
            (self.whole.clear if word == "cut" else self.whole.set)()
            print(word, flush=True)


if __name__ == "__main__":
    carrier = Carrier(int(sys.argv[1]), float(sys.argv[2]))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(carrier.run())
