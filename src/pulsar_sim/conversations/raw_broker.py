"""`RawBroker`: a broker that is bytes alone, at the other end of one client.

Owns the links, the frames that arrived with their moments, and the outputs for the application. It answers
CONNECT, LOOKUP and PARTITIONED_METADATA; a conversation answers everything else. It shares no code with the
broker's machines. A frame or an output that does not come as expected breaks INV-A3.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import NOTICES, Connect, Disconnect, Output, Transmit
from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.wire import (
    FrameDecoder,
    MessageCommand,
    MessageMetadata,
    encode_batch_payloads,
    encode_command,
    encode_message_metadata,
    encode_send_receipt,
    max_frame_size,
    pack_payload,
    proto,
)

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.leftovers.inputs import check_moment
from ..engine.leftovers.outputs import check_output

T = proto.BaseCommand.Type
OutputT = TypeVar("OutputT")

URL = "pulsar://raw:6650"
WALL = 1_700_000_000_000
"""A publish time, in milliseconds since 1970."""
LIMIT = max_frame_size()
NOBODY = 2**64 - 1
"""The request id in a command of the broker that answers no request."""


def entry_bytes(payload: bytes, sequence_id: int = 0, **fields: Any) -> bytes:
    """Return the headers and payload of a stored entry."""
    metadata = MessageMetadata("raw", sequence_id, WALL, **fields)
    return b"".join(pack_payload(encode_message_metadata(metadata), payload))


def batch_bytes(payloads: Sequence[bytes], sequence_id: int = 0, **fields: Any) -> bytes:
    """Return the headers and payload of a stored batch."""
    encoded = encode_batch_payloads(payloads, sequence_id)
    return entry_bytes(encoded, sequence_id, num_messages_in_batch=len(payloads), **fields)


class RawBroker:
    """One client, and all brokers that it knows."""

    def __init__(self, now: int, seed: int, *, partitions: int = 0, **config: Any) -> None:
        """`partitions`: of every topic. `config`: of the client."""
        self.now = now
        self.partitions = partitions
        self.config = ClientConfig(service_url=URL, **config)
        self.client = Client(now, self.config, seed=seed, wall_time=WALL)
        self.link = 0
        """The link that was opened last."""
        self.closed: str | None = None
        """The reason for which the client has ended that link."""
        self.frames: deque[tuple[int, int, Any]] = deque()
        """The moment, the kind and the content of each frame that was not expected yet."""
        self.outputs: deque[Output] = deque()
        self.notices: deque[Output] = deque()
        self._bytes = b""

    # --- the client's driver ---

    def settle(self) -> None:
        """Obey all outputs of the client."""
        client = self.client
        check_moment("a client with a raw broker", client._context, self.now)
        while (output := client.next_output()) is not None:
            check_output("a client with a raw broker", output)
            if isinstance(output, Connect):
                self.link, self.closed, self._bytes = output.link, None, b""
                client.connected(self.now, self.link)
            elif isinstance(output, Transmit | Disconnect):
                self._take(b"".join(client.data_to_send(output.link)))
                if isinstance(output, Disconnect) and output.link == self.link:
                    self.closed = output.reason
            elif type(output) in NOTICES:
                self.notices.append(output)
            else:
                self.outputs.append(output)

    def until(self, moment: int) -> None:
        """Let time pass; every timer fires at its moment."""
        while (due := self.client.next_deadline()) is not None and due <= moment:
            self.now = max(self.now, due)
            self.client.handle_deadline(self.now)
            self.settle()
        self.now = max(self.now, moment)

    def pass_time(self, seconds: float) -> None:
        self.until(self.now + round(seconds * SECOND))

    def call(self, command: Any, *arguments: Any, **more: Any) -> Any:
        """Give the client a command, which takes the present moment, and obey its outputs."""
        result = command(self.now, *arguments, **more)
        self.settle()
        return result

    def lose(self) -> None:
        """Break the connection."""
        self.call(self.client.disconnected, self.link, "the raw broker has gone")

    # --- frames ---

    def feed(self, data: bytes) -> None:
        self.call(self.client.receive_data, self.link, data)

    def send(self, kind: int, command: Any) -> None:
        self.feed(encode_command(kind, command))

    def _take(self, data: bytes) -> None:
        self._bytes += data
        position = 0
        while (frame := FrameDecoder().decode(self._bytes, position, LIMIT)) is not None:
            kind, command, position = frame
            if not self._answers(kind, command):
                self.frames.append((self.now, kind, command))
        self._bytes = self._bytes[position:]

    def _answers(self, kind: int, command: Any) -> bool:
        """Answer what every broker answers in one way. The client takes the answer after this output."""
        if kind == T.CONNECT:
            answer: Any = proto.CommandConnected(server_version="raw", protocol_version=21)
            reply = T.CONNECTED
        elif kind == T.PARTITIONED_METADATA:
            reply = T.PARTITIONED_METADATA_RESPONSE
            answer = proto.CommandPartitionedTopicMetadataResponse(
                request_id=command.request_id,
                partitions=self.partitions,
                response=proto.CommandPartitionedTopicMetadataResponse.Success,
            )
        elif kind == T.LOOKUP:
            reply = T.LOOKUP_RESPONSE
            answer = proto.CommandLookupTopicResponse(
                brokerServiceUrl=URL,
                request_id=command.request_id,
                response=proto.CommandLookupTopicResponse.Connect,
                authoritative=True,
            )
        elif kind == T.PING:
            reply, answer = T.PONG, proto.CommandPong()
        else:
            return kind == T.PONG
        self.client.receive_data(self.now, self.link, encode_command(reply, answer))
        return True

    def expect(self, kind: int, at: int | None = None) -> Any:
        """Return the next frame. Raises `ViolationError` unless it is of that kind, and was written at that
        moment."""
        when, found, command = self.frames.popleft() if self.frames else (self.now, -1, self.closed)
        if found != kind:
            name = T.Name(T.ValueType(found)) if found >= 0 else "nothing"
            self.fail(f"{T.Name(T.ValueType(kind))} is expected, and {name} comes: {command}")
        if at is not None and when != at:
            self.fail(f"{T.Name(T.ValueType(kind))} comes {when - at} ns late: {command}")
        return command

    def taken(self, kind: int) -> list[Any]:
        """Remove all frames of that kind, and return them."""
        found = [command for _, each, command in self.frames if each == kind]
        self.frames = deque(each for each in self.frames if each[1] != kind)
        return found

    def nothing(self) -> None:
        """Expect that no frame and no output is left."""
        if self.frames or self.outputs or self.closed is not None:
            self.fail(f"nothing is expected: {[*self.frames]}, {[*self.outputs]}, {self.closed}")

    def output(self, kind: type[OutputT]) -> OutputT:
        """Return the next output. Raises `ViolationError` unless it is of that kind."""
        found = self.outputs.popleft() if self.outputs else None
        if not isinstance(found, kind):
            self.fail(f"{kind.__name__} is expected, and {found} comes")
        return found

    def said(self, *expected: Output) -> None:
        """Expect exactly these outputs, and no others."""
        found = list(self.outputs)
        self.outputs.clear()
        if found != list(expected):
            self.fail(f"{expected} is expected, and {found} comes")

    def agree(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.fail(f"{what}: {found} found, {expected} expected")

    def fail(self, text: str) -> NoReturn:
        raise ViolationError("INV-A3", f"a client with a raw broker: {text}")

    # --- answers ---

    def succeed(self, command: Any) -> None:
        """Answer a request by SUCCESS."""
        self.send(T.SUCCESS, proto.CommandSuccess(request_id=command.request_id))

    def refuse(self, command: Any, code: Any, text: str = "raw") -> None:
        """Answer a request by ERROR."""
        self.send(T.ERROR, proto.CommandError(request_id=command.request_id, error=code, message=text))

    def open_producer(self, command: Any, last_sequence_id: int = -1) -> None:
        """Answer PRODUCER."""
        answer = proto.CommandProducerSuccess(
            request_id=command.request_id,
            producer_name=command.producer_name or f"raw-{command.producer_id}",
            last_sequence_id=last_sequence_id,
            producer_ready=True,
        )
        self.send(T.PRODUCER_SUCCESS, answer)

    def receipt(self, producer_id: int, sequence_id: int, highest: int, entry: int, ledger: int = 1) -> None:
        """Confirm the entry of a producer."""
        self.feed(encode_send_receipt(producer_id, sequence_id, ledger, entry, highest))

    def message(self, consumer_id: int, entry: int, stored: bytes, ledger: int = 1, **fields: Any) -> None:
        """Deliver an entry."""
        self.feed(MessageCommand(consumer_id, ledger, entry, payload=stored, **fields).encode())
