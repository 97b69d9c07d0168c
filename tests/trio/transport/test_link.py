"""One socket: everything written arrives, in order, whatever the socket takes at a time."""

import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from pulsar_sansio import TlsError
from pulsar_trio.transport.link import LINGER, READ_SIZE, Link
from tests.patience import PATIENCE


@dataclass
class ClosedHandles:
    """A link on one end of a socket pair, and the other end."""

    link: Link
    other: trio.SocketStream
    to_write: deque[list[bytes]] = field(default_factory=deque)
    received: list[bytes] = field(default_factory=list)
    may_read: bool = True
    eof: trio.Event = field(default_factory=trio.Event)
    reason: str | TlsError | None = None
    ended: trio.Event = field(default_factory=trio.Event)

    async def run(self) -> None:
        with self.link.scope:
            self.reason = await self.link.run(self.received.append, self.eof.set)
        self.ended.set()


@asynccontextmanager
async def ends() -> AsyncIterator[ClosedHandles]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    pair = ClosedHandles(
        Link(
            memoryview(bytearray(READ_SIZE)),
            lambda: pair.to_write.popleft() if pair.to_write else [],
            lambda: pair.may_read,
        ),
        trio.SocketStream(trio.socket.from_stdlib_socket(theirs)),
    )
    pair.link.open(ours)
    async with pair.other, trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await trio.testing.wait_all_tasks_blocked()
        yield pair
        pair.link.abort()
    assert ours.fileno() == -1


async def read(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    with trio.fail_after(PATIENCE):
        while len(data) < count and (more := await stream.receive_some(100_000)):
            data += more
    return data


@pytest.mark.parametrize("directly", [True, False])
@pytest.mark.parametrize(
    "chunks",
    [
        [b"x" * 300_000],
        [b"%04d" % number for number in range(2000)],
        [b"%04d" % number * 2000 for number in range(150)],
        [b"", b"a"],
    ],
)
async def test_everything_arrives_in_order(chunks: list[bytes], directly: bool) -> None:
    async with ends() as pair:
        for _ in range(3):
            pair.to_write.append(chunks)
            if directly:
                pair.link.write_now()
            else:
                pair.link.transmit()
        expected = b"".join(chunks) * 3
        assert await read(pair.other, len(expected)) == expected
        assert pair.link.bytes_sent == len(expected)


async def test_nothing_is_taken_while_the_socket_is_full() -> None:
    """Bytes that the link has not taken tell their source how full the socket is."""
    async with ends() as pair:
        pair.to_write.extend([[b"x" * 1_000_000], [b"y"]])
        pair.link.transmit()
        pair.link.write_now()
        await trio.testing.wait_all_tasks_blocked()
        assert list(pair.to_write) == [[b"y"]]
        assert (await read(pair.other, 1_000_001)).endswith(b"xy")


class Sparing(socket.socket):
    """Takes five bytes of every write, as a TLS connection takes a few records; it is full after `room`."""

    room = 0
    taken = b""

    def send(self, data: bytes, /) -> int:  # type: ignore[override]
        size = min(5, len(data), self.room)
        if not size:
            raise BlockingIOError
        self.room -= size
        self.taken += bytes(data[:size])
        return size

    def sendmsg(self, chunks: list[bytes], /) -> int:  # type: ignore[override]
        return self.send(b"".join(chunks))


def test_a_write_goes_on_until_the_socket_is_full() -> None:
    """A turn of the event loop for every part would cost more than the writing."""
    to_write = [[b"twelve bytes", b", eight"], [b" and more"]]
    link = Link(memoryview(bytearray(10)), lambda: to_write.pop(0) if to_write else [])
    with Sparing() as sock:
        sock.room = 17
        link.open(sock)
        link.write_now()
        assert sock.taken == b"twelve bytes, eig"
        assert to_write == [[b" and more"]]


async def test_bytes_are_handed_over_as_they_come() -> None:
    async with ends() as pair:
        for data in (b"1", b"22" * 10, b"3"):
            await pair.other.send_all(data)
            await trio.testing.wait_all_tasks_blocked()
        assert pair.received == [b"1", b"22" * 10, b"3"]
        assert pair.link.bytes_received == 22


async def test_nothing_is_read_while_it_is_not_wanted() -> None:
    async with ends() as pair:
        pair.may_read = False
        await pair.other.send_all(b"the one that was waited for")
        await trio.testing.wait_all_tasks_blocked()
        await pair.other.send_all(b"later")
        await trio.testing.wait_all_tasks_blocked()
        assert len(pair.received) == 1
        pair.link.resume()
        await trio.testing.wait_all_tasks_blocked()
        assert len(pair.received) == 1
        pair.may_read = True
        pair.link.resume()
        await trio.testing.wait_all_tasks_blocked()
        assert pair.received[1:] == [b"later"]


async def test_finishing_writes_what_is_left_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_trio.transport.link.LINGER", PATIENCE)
    async with ends() as pair:
        pair.to_write.append([b"last ", b"x" * 500_000])
        pair.link.finish()
        pair.link.finish()
        assert len(await read(pair.other, 10**9)) == 500_005
        await pair.other.aclose()
        await pair.ended.wait()
        assert pair.reason == ""
        assert pair.received == []


async def test_finishing_does_not_reset_what_the_peer_has_not_read() -> None:
    """A close would become a reset if the link left bytes of the peer unread."""
    async with ends() as pair:
        pair.may_read = False
        await pair.other.send_all(b"x" * 1000)
        await trio.testing.wait_all_tasks_blocked()
        await pair.other.send_all(b"unread")
        pair.to_write.append([b"the answer"])
        pair.link.finish()
        assert await read(pair.other, 10**9) == b"the answer"


async def test_a_peer_that_reads_nothing_does_not_keep_an_ending_link(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with ends() as pair:
        pair.to_write.append([b"x" * 1_000_000])
        pair.link.finish()
        await pair.ended.wait()
        assert trio.current_time() == pytest.approx(LINGER)


async def test_the_end_of_the_peer_is_told_and_writing_goes_on() -> None:
    async with ends() as pair:
        await pair.other.send_eof()
        await pair.eof.wait()
        pair.to_write.append([b"still here"])
        pair.link.write_now()
        assert await read(pair.other, 10) == b"still here"


async def test_a_failure_is_a_reason_and_no_exception() -> None:
    """Rule PROD-57."""
    async with ends() as pair:
        await pair.other.aclose()
        pair.to_write.append([b"x" * 100_000])
        pair.link.transmit()
        with trio.fail_after(PATIENCE):
            await pair.ended.wait()
        assert pair.reason is not None
        assert "failed" in str(pair.reason)


async def test_a_failure_of_a_direct_write_is_met_by_the_writer() -> None:
    async with ends() as pair:
        await pair.other.aclose()
        pair.to_write.append([b"x" * 100_000])
        pair.link.write_now()
        with trio.fail_after(PATIENCE):
            await pair.ended.wait()
        assert "failed" in str(pair.reason)


async def test_a_link_that_is_finished_before_it_is_open_ends_its_scope() -> None:
    link = Link(memoryview(b""), list)
    with trio.fail_after(PATIENCE), link.scope:
        link.write_now()
        link.finish()
        await trio.sleep_forever()
    assert link.scope.cancelled_caught


async def test_a_link_that_is_finished_by_what_it_takes_loses_nothing_and_keeps_the_order() -> None:
    """A peer that reads makes room for more, and what follows from that may be its end."""
    async with ends() as pair:
        rest = deque([[b"first "], [b"second"]])

        def take() -> list[bytes]:
            chunks = rest.popleft() if rest else []
            if chunks:
                pair.link.finish()
            return chunks

        pair.link._take = take
        pair.link.transmit()
        assert await read(pair.other, 100) == b"first second"
