"""`Relay`: a proxy as Pulsar's own is one, for clients that reach none of the brokers.

A connection whose CONNECT names `proxy_to_broker_url` is tied to that broker. On every other connection
lookups are passed on to a broker: its redirects are followed, and the client gets the answer
`proxy_through_service_url`. The client's credentials are passed on as they are.
"""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import trio

from pulsar_sansio.wire import proto

STOPPED = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, EOFError)

Types = proto.BaseCommand


class Frames:
    """Reads whole frames without payload, as those of a connection for lookups are."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def next(self) -> Any:
        """Return the next command. Raises `EOFError` at the end of the stream."""
        buffer = self._buffer
        while len(buffer) < 4 or len(buffer) < 4 + int.from_bytes(buffer[:4], "big"):
            data = await self._stream.receive_some()
            if not data:
                raise EOFError
            buffer += data
        total = int.from_bytes(buffer[:4], "big")
        size = int.from_bytes(buffer[4:8], "big")
        command = proto.BaseCommand.FromString(bytes(buffer[8 : 8 + size]))
        del buffer[: 4 + total]
        return command

    def rest(self) -> bytes:
        """Return the bytes behind the frames that were taken."""
        return bytes(self._buffer)


def frame(command: Any) -> bytes:
    data: bytes = command.SerializeToString()
    return (len(data) + 4).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data


class Relay:
    """`addresses`: the brokers, as `host:port` of the protocol that the cluster speaks.

    `server`, `client`: the TLS contexts of the relay's own certificate, and for its connections to brokers;
    None for a plain cluster.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        server: ssl.SSLContext | None = None,
        client: ssl.SSLContext | None = None,
    ) -> None:
        self._addresses = list(addresses)
        self._server = server
        self._client = client
        self.url = ""
        self.tied = 0
        """The connections that were tied to a broker."""
        self.lookups = 0
        """The lookups that were passed on, those of redirects left out."""

    async def run(self, task_status: trio.TaskStatus["Relay"]) -> None:
        """Serve until cancelled: `relay = await nursery.start(Relay(…).run)`."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        scheme = "pulsar+ssl" if self._server else "pulsar"
        self.url = f"{scheme}://localhost:{listeners[0].socket.getsockname()[1]}"
        task_status.started(self)
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, accepted: trio.SocketStream) -> None:
        stream: trio.abc.Stream = accepted
        if self._server is not None:
            stream = trio.SSLStream(accepted, self._server, server_side=True, https_compatible=True)
        try:
            with suppress(*STOPPED):
                frames = Frames(stream)
                connect = await frames.next()
                named = connect.connect.proxy_to_broker_url
                if named:
                    await self._tie(stream, frames, connect, named)
                else:
                    await self._look_up(stream, frames, connect)
        finally:
            await trio.aclose_forcefully(stream)

    async def _open(self, address: str) -> trio.abc.Stream:
        host, _, port = address.rpartition(":")
        if address not in self._addresses:
            raise EOFError(f"{address} is no broker of this cluster")
        stream: trio.abc.Stream = await trio.open_tcp_stream(host, int(port))
        if self._client is not None:
            stream = trio.SSLStream(
                stream,
                self._client,
                server_hostname=host,
                https_compatible=True,
            )
        return stream

    async def _tie(self, stream: trio.abc.Stream, frames: Frames, connect: Any, address: str) -> None:
        self.tied += 1
        connect.connect.ClearField("proxy_to_broker_url")
        broker = await self._open(address)
        try:
            await broker.send_all(frame(connect) + frames.rest())
            await pump_both(stream, broker)
        finally:
            await trio.aclose_forcefully(broker)

    async def _look_up(self, stream: trio.abc.Stream, frames: Frames, connect: Any) -> None:
        broker = await self._open_any()
        asked: dict[int, Any] = {}

        async def answer() -> None:
            with suppress(*STOPPED):
                answers = Frames(broker)
                while True:
                    command = await answers.next()
                    if command.type == Types.LOOKUP_RESPONSE:
                        request = asked.pop(command.lookupTopicResponse.request_id)
                        command = await self._followed(connect, request, command)
                    await stream.send_all(frame(command))
            nursery.cancel_scope.cancel()

        async def ask() -> None:
            with suppress(*STOPPED):
                while True:
                    command = await frames.next()
                    if command.type == Types.LOOKUP:
                        self.lookups += 1
                        asked[command.lookupTopic.request_id] = command
                    await broker.send_all(frame(command))
            nursery.cancel_scope.cancel()

        try:
            await broker.send_all(frame(connect))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                nursery.start_soon(ask)
        finally:
            await trio.aclose_forcefully(broker)

    async def _open_any(self) -> trio.abc.Stream:
        for address in self._addresses:
            with suppress(OSError):
                return await self._open(address)
        raise EOFError("no broker is there")

    async def _followed(self, connect: Any, request: Any, command: Any) -> Any:
        """Return the last answer to a lookup, which the client has to take through this relay."""
        response = command.lookupTopicResponse
        while response.response == response.Redirect:
            url = response.brokerServiceUrlTls if self._client else response.brokerServiceUrl
            broker = await self._open(url.rpartition("//")[2])
            request.lookupTopic.authoritative = response.authoritative
            try:
                frames = Frames(broker)
                await broker.send_all(frame(connect))
                await frames.next()  # CONNECTED
                await broker.send_all(frame(request))
                command = await frames.next()
                response = command.lookupTopicResponse
            finally:
                await trio.aclose_forcefully(broker)
        if response.response == response.Connect:
            response.proxy_through_service_url = True
        return command


class SniRelay:
    """A proxy that routes by the server name of TLS and sees nothing else.

    The client's handshake is with the broker. `ports`: the server name -> the broker's port.
    """

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = ports
        self.url = ""
        self.routed: dict[str, int] = dict.fromkeys(ports, 0)
        """Server name -> its connections."""

    async def run(self, task_status: trio.TaskStatus["SniRelay"]) -> None:
        """Serve until cancelled: `relay = await nursery.start(SniRelay(…).run)`."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"pulsar+ssl://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        task_status.started(self)
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            with suppress(*STOPPED):
                name, hello = await _server_name(stream)
                async with await trio.open_tcp_stream("127.0.0.1", self._ports[name]) as broker:
                    self.routed[name] += 1
                    await broker.send_all(hello)
                    await pump_both(stream, broker)
        finally:
            await trio.aclose_forcefully(stream)


async def _server_name(stream: trio.SocketStream) -> tuple[str, bytes]:
    """Read until the ClientHello is there; return its server name and all that was read."""
    names: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: names.append(name)
    arriving, hello = ssl.MemoryBIO(), b""
    handshake = context.wrap_bio(arriving, ssl.MemoryBIO(), server_side=True)
    while not names:
        data = await stream.receive_some()
        if not data:
            raise EOFError
        hello += data
        arriving.write(data)
        with suppress(ssl.SSLError):  # it wants more, or has no certificate to go on with
            handshake.do_handshake()
    return names[0], hello


async def pump_both(one: trio.abc.Stream, other: trio.abc.Stream) -> None:
    """Forward in both directions until either side ends."""

    async def pump(source: trio.abc.Stream, target: trio.abc.Stream) -> None:
        with suppress(*STOPPED):
            while data := await source.receive_some():
                await target.send_all(data)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pump, one, other)
        nursery.start_soon(pump, other, one)
