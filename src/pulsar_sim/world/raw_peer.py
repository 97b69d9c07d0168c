"""`RawPeer`: a client that is bytes alone, for conversations with a broker that has no other client.

Owns the link, the frames that arrived, and the requests' numbers. It shares no code with the client's
machines. A frame that does not come as expected breaks INV-A2.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_sansio.wire import (
    INDIVIDUAL,
    FrameDecoder,
    MessageCommand,
    MessageMetadata,
    encode_ack,
    encode_command,
    encode_flow,
    encode_message_metadata,
    encode_send,
    max_frame_size,
    pack_payload,
    proto,
    unpack_payload,
)

from ..engine.failures import ViolationError

if TYPE_CHECKING:
    from pulsar_sansio.broker.broker import Broker

T = proto.BaseCommand.Type
SubType = proto.CommandSubscribe.SubType

FIRST_LINK = 1 << 40
"""The number of the first link of a raw peer: no client of a world has it."""

LIMIT = max_frame_size()


class RawPeer:
    """One connection to a broker. `settle`: lets the broker's driver obey all outputs."""

    def __init__(self, broker: "Broker", link: int, now: int, settle: Callable[[], None]) -> None:
        self._broker = broker
        self._settle = settle
        self._bytes = b""
        self._request = 0
        self.link = link
        self.now = now
        self.is_silent = False
        """The peer answers no PING."""
        self.closed: str | None = None
        """The reason for which the broker has ended the link."""
        self.inbox: deque[tuple[int, Any]] = deque()

    def connect(self, version: int = 21) -> None:
        self._broker.accepted(self.now, self.link, f"raw:{self.link}")
        self.send(
            T.CONNECT,
            proto.CommandConnect(client_version="raw", protocol_version=version, auth_method_name="none"),
        )
        self.expect(T.CONNECTED)

    def drop(self) -> None:
        """Break the connection."""
        self._broker.disconnected(self.now, self.link, "the raw peer has gone")
        self._settle()

    # --- frames ---

    def feed(self, data: bytes) -> None:
        self._broker.receive_data(self.now, self.link, data)
        self._settle()

    def send(self, kind: int, command: Any) -> None:
        self.feed(encode_command(kind, command))

    def take(self, data: bytes) -> None:
        """Take bytes that the broker has written."""
        self._bytes += data
        position = 0
        while (frame := FrameDecoder().decode(self._bytes, position, LIMIT)) is not None:
            kind, command, position = frame
            self.inbox.append((kind, command))
        self._bytes = self._bytes[position:]

    def expect(self, kind: int) -> Any:
        """Return the next frame. Raises `ViolationError` unless it is of that kind."""
        if kind != T.PING:
            self.answer_pings()
        found, command = self.inbox.popleft() if self.inbox else (-1, self.closed)
        if found != kind:
            name = T.Name(found) if found >= 0 else "nothing"
            self.fail(f"{T.Name(kind)} is expected, and {name} comes: {command}")
        return command

    def answer_pings(self) -> None:
        """Answer each PING that has arrived."""
        pings = [each for each in self.inbox if each[0] == T.PING]
        for each in pings:
            self.inbox.remove(each)
            self.send(T.PONG, proto.CommandPong())

    def refused(self, code: str) -> None:
        """Expect ERROR with this code."""
        error = self.expect(T.ERROR)
        if proto.ServerError.Name(error.error) != code or error.request_id != self._request:
            self.fail(f"{code} of request {self._request} is expected, and {error} comes")

    def nothing(self) -> None:
        """Expect that no frame is left."""
        self.answer_pings()
        if self.inbox or self.closed is not None:
            self.fail(f"nothing is expected, and {[*self.inbox]} comes; {self.closed}")

    def fail(self, text: str) -> None:
        raise ViolationError("INV-A2", f"link {self.link}: {text}")

    def request(self) -> int:
        self._request += 1
        return self._request

    # --- commands ---

    def subscribe(
        self, topic: str, subscription: str, kind: SubType, consumer_id: int, **fields: Any
    ) -> None:
        """Send SUBSCRIBE from the beginning of the topic."""
        command = proto.CommandSubscribe(
            topic=topic,
            subscription=subscription,
            subType=kind,
            consumer_id=consumer_id,
            request_id=self.request(),
            initialPosition=proto.CommandSubscribe.Earliest,
            consumer_name=f"raw-{consumer_id}",
            **fields,
        )
        self.send(T.SUBSCRIBE, command)

    def flow(self, consumer_id: int, permits: int) -> None:
        self.feed(encode_flow(consumer_id, permits))

    def open_producer(self, topic: str, producer_id: int, name: str, **fields: Any) -> None:
        """Send PRODUCER."""
        command = proto.CommandProducer(
            topic=topic, producer_id=producer_id, request_id=self.request(), producer_name=name, **fields
        )
        self.send(T.PRODUCER, command)

    def publish(self, producer_id: int, name: str, sequence_id: int, payload: bytes, at: int) -> None:
        """Send one message. `at`: its publish time, in milliseconds since 1970."""
        metadata = encode_message_metadata(MessageMetadata(name, sequence_id, at))
        packed = pack_payload(metadata, payload)
        frame = encode_send(producer_id, sequence_id, 1, None, packed, sum(map(len, packed)))
        self.feed(frame if isinstance(frame, bytes) else b"".join(frame))

    def receipt(self, sequence_id: int) -> tuple[int, int]:
        """Expect the receipt of a message, and return its position."""
        receipt = self.expect(T.SEND_RECEIPT)
        if receipt.sequence_id != sequence_id:
            self.fail(f"the receipt of {sequence_id} is expected, and {receipt} comes")
        return receipt.ledger_id, receipt.entry_id

    def message(self, consumer_id: int, payload: bytes, position: tuple[int, int], redeliveries: int) -> None:
        """Expect one message."""
        found: MessageCommand = self.expect(T.MESSAGE)
        unpacked = unpack_payload(found.payload)
        got = (found.consumer_id, bytes(unpacked.payload), (found.ledger_id, found.entry_id))
        if got != (consumer_id, payload, position) or (found.redelivery_count or 0) != redeliveries:
            self.fail(f"{payload!r} at {position} for {consumer_id} is expected, and {found} comes")

    def acknowledge(self, consumer_id: int, *positions: tuple[int, int]) -> None:
        """Send ACK, and expect that the broker confirms it."""
        ids = [(*position, None) for position in positions]
        request_id = self.request()
        self.feed(encode_ack(consumer_id, INDIVIDUAL, ids, request_id=request_id))
        answer = self.expect(T.ACK_RESPONSE)
        if answer.request_id != request_id or answer.HasField("error"):
            self.fail(f"an acknowledgement is answered by {answer}")

    def pong(self) -> None:
        """Answer the PING by which the broker looks for life."""
        self.expect(T.PING)
        self.send(T.PONG, proto.CommandPong())
