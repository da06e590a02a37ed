"""TCP links that can be cut in either direction: the network between one process and one server.

What is held while a link is cut arrives when it heals, unless its connection died before: as in a network.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from typing import Self

UP, DOWN = "up", "down"
"""Towards the server: commands do not arrive. From the server: they run, and their answers do not arrive."""


class Network:
    """Runs every link in one thread."""

    def __enter__(self) -> Self:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="bench-network", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)

    def link(self, port: int) -> "Link":
        """Return a new link to the server on `port` of this machine."""
        link = Link(self.loop, port)
        asyncio.run_coroutine_threadsafe(link.open(), self.loop).result(5)
        return link


class Link:
    """A port of this machine that leads to a server's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: int) -> None:
        self._loop, self._target = loop, target
        self._ends: set[_End] = set()
        self._held: frozenset[str] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await self._loop.create_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self, *directions: str) -> None:
        self._loop.call_soon_threadsafe(self._hold, frozenset(directions))

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._hold, frozenset())

    def reset(self) -> None:
        """Reset every connection that is open."""
        self._loop.call_soon_threadsafe(lambda: [end.reset() for end in tuple(self._ends)])

    def holds(self, direction: str) -> bool:
        return direction in self._held

    def _hold(self, directions: frozenset[str]) -> None:
        self._held = directions
        for end in tuple(self._ends):
            end.flow()

    def _accept(self) -> "_End":
        client = _End(self, UP)
        task = self._loop.create_task(self._connect(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return client

    async def _connect(self, client: "_End") -> None:
        try:
            _transport, server = await self._loop.create_connection(
                lambda: _End(self, DOWN), "127.0.0.1", self._target
            )
        except OSError:
            client.reset()
            return
        client.join(server)
        server.join(client)


class _End(asyncio.Protocol):
    """One end of a connection: what arrives here goes out at the other end."""

    def __init__(self, link: Link, direction: str) -> None:
        self._link, self._direction = link, direction
        self._transport: asyncio.Transport | None = None
        self._other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._link._ends.add(self)
        self.flow()

    def join(self, other: "_End") -> None:
        self._other = other
        self.flow()

    def flow(self) -> None:
        """Read if there is somewhere to write it, and the network carries it."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._other is None or self._link.holds(self._direction):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None
        if self._other._transport is not None:
            self._other._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link._ends.discard(self)
        if self._other is not None and self._other._transport is not None:
            self._other._transport.close()

    def reset(self) -> None:
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
