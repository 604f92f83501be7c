"""What lies between the agent and a server: it loses answers and cuts connections."""

import asyncio
import contextlib
import random
import threading
import time


class Proxy(threading.Thread):
    """Between the agent and the server, on a port of its own."""

    def __init__(self, seed, share):
        super().__init__(daemon=True)
        # One answer in so many is lost, anywhere among them.
        self.target, self.every = None, round(1 / share) if share > 0 else 0
        self.slowest = 0.02
        self.chance = random.Random(f"{seed}-proxy")
        self.next_lost = self.chance.randint(1, self.every) if self.every else 0
        self.port, self.lost, self.answers = None, 0, 0
        self.is_closed = False
        self.connections = set()
        self.started = threading.Event()
        self.start()
        self.started.wait()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        self.loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.started.set()
        await server.serve_forever()

    async def connect(self, reader, writer):
        if self.is_closed:
            return writer.transport.abort()
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return writer.transport.abort()
        pair = (writer, there_writer)
        self.connections.add(pair)
        # Only where something was asked is an answer lost: a server's greeting is none.
        asked = [0]
        ways = [
            asyncio.create_task(self.forward(reader, there_writer, asked)),
            asyncio.create_task(self.answer(there_reader, writer, asked)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.connections.discard(pair)
            for way in ways:
                way.cancel()
            for end in pair:
                end.transport.abort()

    async def forward(self, source, target, asked):
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                asked[0] += len(data)
                target.write(data)
                await target.drain()

    async def answer(self, source, target, asked):
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                # More is under way when something is killed than without a distance between the two.
                await asyncio.sleep(self.chance.uniform(0, self.slowest))
                if asked[0] > 1000:
                    self.answers += 1
                    if self.answers == self.next_lost:
                        self.lost += 1
                        self.next_lost = self.lost * self.every + self.chance.randint(1, self.every)
                        return
                target.write(data)
                await target.drain()

    def calm(self):
        """From now on nothing is lost or late."""
        self.next_lost, self.slowest = 0, 0

    def cut(self, seconds):
        """Cuts all connections and takes none for a while."""
        self.is_closed = True

        def abort():
            for pair in list(self.connections):
                for end in pair:
                    end.transport.abort()

        self.loop.call_soon_threadsafe(abort)
        time.sleep(seconds)
        self.is_closed = False
