"""Peers that ask for a second handshake of TLS 1.2: their connection ends, and others are served."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio

from pulsar_trio import Client, TlsConfig, open_broker, open_client
from tests.patience import PATIENCE
from tests.security.certificates import Authority
from tests.security.renegotiating_peer import RenegotiatingPeer

CONNECT = b"\0\0\0\x0d\0\0\0\x09\x08\x02\x12\x05\x0a\x01c\x20\x15"
CONNECTED = b"\0\0\0\x0d\0\0\0\x09\x08\x03\x1a\x05\x0a\x01s\x10\x15"

FRAME = b"\0\0"
"""The first bytes of a frame: it is shorter than 64 KiB."""

SEED = 0
"""By this seed the client asks the second host of a service URL first."""

PART = 64 * 1024
"""Bytes of one read."""

TOPIC = "persistent://public/default/t"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class Encrypted:
    """A stream between a peer and the side under test."""

    def __init__(self, stream: trio.SocketStream, peer: RenegotiatingPeer) -> None:
        self._stream = stream
        self._peer = peer

    async def shake_hands(self) -> None:
        while not self._peer.shake_hands():
            await self._meet()
        await self._stream.send_all(self._peer.outgoing())

    async def write(self, data: bytes) -> None:
        self._peer.write(data)
        await self._stream.send_all(self._peer.outgoing())

    async def read(self) -> bytes:
        """Return the next bytes of the application."""
        while not (found := self._peer.read()):
            await self._meet()
        return found

    async def is_refused(self) -> bool:
        """Ask to renegotiate; True when the other side has refused."""
        self._peer.ask_to_renegotiate()
        while not (self._peer.refused or self._peer.renegotiated):
            await self._meet()
            self._peer.read()
        await self._stream.send_all(self._peer.outgoing())
        return self._peer.refused

    async def ended(self) -> None:
        """Wait for the end of the other side."""
        with suppress(trio.BrokenResourceError):
            while await self._stream.receive_some(PART):
                pass

    async def _meet(self) -> None:
        await self._stream.send_all(self._peer.outgoing())
        data = await self._stream.receive_some(PART)
        assert data, "the other side has ended the connection"
        self._peer.receive(data)


async def exchange(client: Client) -> None:
    """Send a message and receive it."""
    async with client.subscribe(TOPIC, "s") as consumer, client.create_producer(TOPIC) as producer:
        await producer.send(b"x")
        message = await consumer.receive()
        assert message.value == b"x"
        consumer.acknowledge(message)


async def test_a_client_that_asks_the_broker_to_renegotiate(authority: Authority) -> None:
    """The broker ends its connection, and serves the others."""
    tls = TlsConfig(trust=authority.file)
    with trio.fail_after(PATIENCE):
        async with (
            open_broker(tls=authority.server(), tls_port=0) as broker,
            open_client(str(broker.tls_url), tls=tls) as client,
        ):
            await exchange(client)
            port = int(str(broker.tls_url).rpartition(":")[2])
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                hostile = Encrypted(stream, RenegotiatingPeer(None))
                await hostile.shake_hands()
                await hostile.write(CONNECT)
                assert (await hostile.read()).startswith(FRAME)
                assert await hostile.is_refused()
                await hostile.ended()
            await exchange(client)


async def test_a_server_that_asks_a_client_to_renegotiate(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """The client loses the connection, says why, and goes on with the other host of its service URL."""
    files = authority.issue("127.0.0.1")
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]

    async def serve_one() -> None:
        stream = await listener.accept()
        await listener.aclose()
        async with stream:
            hostile = Encrypted(stream, RenegotiatingPeer(files))
            await hostile.shake_hands()
            assert (await hostile.read()).startswith(FRAME)
            await hostile.write(CONNECTED)
            assert await hostile.is_refused()
            await hostile.ended()

    with trio.fail_after(PATIENCE):
        async with open_broker(tls=authority.server(), tls_port=0) as broker, trio.open_nursery() as nursery:
            nursery.start_soon(serve_one)
            url, tls = f"{broker.tls_url},127.0.0.1:{port}", TlsConfig(trust=authority.file)
            async with open_client(url, tls=tls, seed=SEED) as client:
                await exchange(client)
    [record] = [record for record in caplog.records if "TLS" in record.getMessage()]
    text = f"ended: TLS with 127.0.0.1:{port} failed: SSLV3_ALERT_HANDSHAKE_FAILURE; next attempt"
    assert text in record.getMessage()
