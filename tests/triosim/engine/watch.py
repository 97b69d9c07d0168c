"""Watch the bytes at the machines: each byte written arrives in order and unchanged, and keeps the rules.

The machines of client and broker are watched where they meet the adapter. So the checks also cover what the
adapter does to bytes on their way to the socket.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from pulsar_sansio import Broker, Client, TlsError
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.conformance import Session, Side, TopicMemory

CLIENT: ContextVar[str] = ContextVar("client")
"""The name of the client that a task belongs to."""


class Watch:
    """All conversations of a run. `fail` is told what is wrong."""

    def __init__(self, fail: Callable[[str, str], None]) -> None:
        self._fail = fail
        self._topics = {Side.CLIENT: TopicMemory(), Side.BROKER: TopicMemory()}
        self._sessions: dict[tuple[Side, str], Session] = {}
        self._given: dict[tuple[int, Side], bytearray] = {}
        self._arrived: dict[tuple[int, Side], int] = {}
        self.connected_wire = 0
        """The wire of the connection that was opened last."""
        self.messages = 0

    def gives(self, side: Side, client: str, wire: int, data: bytes) -> None:
        """A machine gives bytes to be written."""
        self._given.setdefault((wire, side), bytearray()).extend(data)
        self._judge(side, side, client, wire, data)

    def writes(self, side: Side, wire: int, data: bytes) -> None:
        """A side without a machine writes bytes, which need not keep the rules."""
        self._given.setdefault((wire, side), bytearray()).extend(data)

    def gets(self, side: Side, client: str, wire: int, data: bytes) -> None:
        """A machine gets bytes that the other side has written."""
        key = wire, side.other
        start = self._arrived.get(key, 0)
        end = self._arrived[key] = start + len(data)
        if self._given.get(key, b"")[start:end] != data:
            self._fail("BYTES", f"wire {wire}: the {side} got other bytes than the {side.other} gave out")
        self._judge(side, side.other, client, wire, data)

    def is_told(self, side: Side, reason: str) -> None:
        """A machine is told that a link is gone; what the socket has said has to be in the reason."""
        if not reason or reason == "the link ended":
            self._fail(
                "REASON", f"the {side} is told {reason!r} of a lost link, and not what the socket said"
            )

    def _judge(self, side: Side, author: Side, client: str, wire: int, data: bytes) -> None:
        session = self._sessions.get((side, client))
        if session is None:
            session = self._sessions[side, client] = Session(topics=self._topics[side])
        for violation in session.feed(wire, author, data):
            if violation.side is side:
                self._fail(violation.rule_id, f"{client}: {violation}")


def watched_client(watch: Watch) -> type[Client]:
    class WatchedClient(Client):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._name = CLIENT.get()
            self._wires: dict[int, int] = {}
            self.attached: set[int] = set()
            """Handles of endpoints that are attached, by what the machine has said."""
            self.ended: set[int] = set()
            """Handles of those that the machine has said to be closed."""

        def next_output(self) -> Any:
            output = super().next_output()
            match output:
                case (
                    outputs.Attached(handle)
                    | outputs.ProducerReady(handle)
                    | outputs.ConsumerReady(handle)
                    | outputs.TableViewReady(handle)
                ):
                    self.attached.add(handle)
                case outputs.Detached(handle):
                    self.attached.discard(handle)
                case outputs.Closed(handle):
                    self.attached.discard(handle)
                    self.ended.add(handle)
            return output

        def connected(self, now: int, link: int) -> None:
            self._wires[link] = watch.connected_wire
            super().connected(now, link)

        def disconnected(self, now: int, link: int, reason: str | TlsError) -> None:
            watch.is_told(Side.CLIENT, str(reason))
            super().disconnected(now, link, reason)

        def receive_data(self, now: int, link: int, data: bytes | bytearray | memoryview) -> None:
            watch.gets(Side.CLIENT, self._name, self._wires[link], bytes(data))
            super().receive_data(now, link, data)

        def data_to_send(self, link: int) -> list[bytes]:
            chunks = super().data_to_send(link)
            if chunks:
                watch.gives(Side.CLIENT, self._name, self._wires[link], b"".join(chunks))
            return chunks

    return WatchedClient


def watched_broker(watch: Watch) -> type[Broker]:
    class WatchedBroker(Broker):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._wires: dict[int, tuple[str, int]] = {}

        def accepted(self, now: int, link: int, peer: str, certificate_role: str | None = None) -> None:
            client, _, wire = peer.partition("/")
            self._wires[link] = client, int(wire)
            super().accepted(now, link, peer, certificate_role)

        def disconnected(self, now: int, link: int, reason: str | TlsError) -> None:
            watch.is_told(Side.BROKER, str(reason))
            super().disconnected(now, link, reason)

        def receive_data(self, now: int, link: int, data: bytes) -> None:
            watch.gets(Side.BROKER, *self._wires[link], data)
            super().receive_data(now, link, data)

        def data_to_send(self, link: int) -> Sequence[bytes]:
            chunks = super().data_to_send(link)
            if chunks:
                watch.gives(Side.BROKER, *self._wires[link], b"".join(chunks))
            return chunks

    return WatchedBroker
