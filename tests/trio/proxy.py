"""A TCP proxy for tests: holds bytes back, lets them go, cuts connections."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from pulsar_trio import EmbeddedBroker, open_broker


class Proxy:
    """A proxy before a broker: `broker.url` leads through it, and the broker sends no client around it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.broker: EmbeddedBroker
        self.connections = 0
        self.tamper: Callable[[bytes], bytes] = lambda data: data
        """The change that the proxy makes to bytes on their way to the client."""
        self._scopes: set[trio.CancelScope] = set()
        self._gate = trio.Event()
        self._gate.set()

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    def hold(self) -> None:
        """From now on nothing passes, in either direction."""
        self._gate = trio.Event()

    def release(self) -> None:
        self._gate.set()

    def cut(self) -> None:
        """Reset all connections."""
        for scope in self._scopes:
            scope.cancel()

    async def _handle(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            behind = await trio.open_tcp_stream("127.0.0.1", self.broker.port)
            async with stream, behind, trio.open_nursery() as nursery:
                nursery.start_soon(self._copy, stream, behind, False)
                nursery.start_soon(self._copy, behind, stream, True)
        self._scopes.discard(scope)

    async def _copy(self, source: trio.SocketStream, target: trio.SocketStream, to_client: bool) -> None:
        try:
            async for data in source:
                await self._gate.wait()
                await target.send_all(self.tamper(bytes(data)) if to_client else data)
            await target.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


@asynccontextmanager
async def open_proxy(**options: object) -> AsyncIterator[Proxy]:
    """A broker behind a proxy; `options` are the broker's."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = Proxy(listeners[0].socket.getsockname()[1])
    async with (
        open_broker(service_url=proxy.url, **options) as proxy.broker,  # type: ignore[arg-type]
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(trio.serve_listeners, proxy._handle, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
