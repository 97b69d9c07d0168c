"""A line to a broker that can be cut: a forwarder between a client and the broker.

Both brokers of the suite ask a client that comes under another address than their own to go on through it, so
everything of a client goes over the line.
"""

from contextlib import suppress
from urllib.parse import urlsplit

import trio

from tests.suite.brokers import BrokerUnderTest


class Line:
    """`url` is where clients connect; `broker` is what is at the other end."""

    def __init__(self, broker: BrokerUnderTest) -> None:
        self.broker = broker
        self.url = ""
        self._connections: set[trio.CancelScope] = set()

    async def run(self, task_status: trio.TaskStatus["Line"]) -> None:
        """Forward until cancelled: `line = await nursery.start(Line(broker).run)`."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"pulsar://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        task_status.started(self)
        await trio.serve_listeners(self._forward, listeners)

    def cut(self) -> None:
        """End every connection at once, in both directions; new ones may come."""
        for scope in list(self._connections):
            scope.cancel()

    async def _forward(self, client: trio.SocketStream) -> None:
        port = urlsplit(self.broker.url).port
        assert port is not None
        with trio.CancelScope() as scope:
            self._connections.add(scope)
            try:
                broker = await trio.open_tcp_stream("127.0.0.1", port)
                async with broker, trio.open_nursery() as nursery:
                    nursery.start_soon(self._pump, client, broker, scope, True)
                    nursery.start_soon(self._pump, broker, client, scope, False)
            except OSError:  # no broker is there: it has been killed
                pass
            finally:
                self._connections.discard(scope)
        await trio.aclose_forcefully(client)

    async def _pump(
        self, source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope, from_client: bool
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in source:
                if self.passes(scope, from_client, bytes(data)):
                    await target.send_all(data)
        scope.cancel()

    def passes(self, connection: object, from_client: bool, data: bytes) -> bool:
        """Tell whether bytes of a connection get through; they do."""
        return True
