"""`Script` and `ConsumerScript`: a broker at the other end of a `Client`, written by the test.

`Script` drives one client through the public root and reads its frames. It answers CONNECT, partition
metadata and LOOKUP by itself. The test answers everything from PRODUCER or SUBSCRIBE on.
"""

from collections.abc import Sequence
from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.delivery.received_entries import Messages
from pulsar_sansio.client.outputs import NOTICES, Connect, Disconnect, Output, Transmit
from pulsar_sansio.model.config import ClientConfig, ConsumerSpec, SubscriptionType
from pulsar_sansio.wire import (
    FrameDecoder,
    MessageCommand,
    MessageMetadata,
    encode_batch_payloads,
    encode_command,
    encode_message_metadata,
    pack_payload,
    proto,
)

Command = proto.BaseCommand
SECOND = 1_000_000_000
MILLISECOND = 1_000_000
URL = "pulsar://broker:6650"
WALL = 1_700_000_000_000
"""Milliseconds since 1970 at the beginning of a test."""


def name_of(kind: int) -> str:
    return Command.Type.Name(Command.Type.ValueType(kind))


def entry_bytes(payload: bytes, **fields: Any) -> bytes:
    """Return the headers and payload of a stored entry."""
    sequence_id = fields.pop("sequence_id", 0)
    producer_name = fields.pop("producer_name", "standalone-0-1")
    publish_time = fields.pop("publish_time", 1_700_000_000_000)
    metadata = MessageMetadata(producer_name, sequence_id, publish_time, **fields)
    return b"".join(pack_payload(encode_message_metadata(metadata), payload))


def batch_bytes(payloads: Sequence[bytes], **fields: Any) -> bytes:
    """Return the headers and payload of a stored batch."""
    first = fields.get("sequence_id", 0)
    return entry_bytes(encode_batch_payloads(payloads, first), num_messages_in_batch=len(payloads), **fields)


class Script:
    """One client and its broker."""

    def __init__(self, protocol_version: int = 21, **config: Any) -> None:
        self.now = SECOND
        self.protocol_version = protocol_version
        self.client = Client(self.now, ClientConfig(service_url=URL, **config), seed=1, wall_time=WALL)
        self.link = 0
        self.answers_lookups = True
        self.answers_positions = True
        """Answer requests for the last message as a broker that does not know it."""
        self._unread = b""
        self._frames: list[tuple[str, Any]] = []
        self._outputs: list[Output] = []
        self.notices: list[Output] = []
        """The notices of the client."""

    # --- the world ---

    def pump(self) -> None:
        """Take all outputs and frames of the client, and answer those that every broker answers."""
        while (output := self.client.next_output()) is not None:
            match output:
                case Connect(link):
                    self.link = link
                    self._unread = b""
                    self.client.connected(self.now, link)
                case Transmit(link):
                    self._read(b"".join(self.client.data_to_send(link)))
                case Disconnect(link):
                    self._read(b"".join(self.client.data_to_send(link)))
                    self._outputs.append(output)
                case _ if type(output) in NOTICES:
                    self.notices.append(output)
                case _:
                    self._outputs.append(output)

    def _read(self, data: bytes) -> None:
        self._unread += data
        position = 0
        while (frame := FrameDecoder().decode(self._unread, position, 2**31)) is not None:
            kind, command, position = frame
            match name_of(kind):
                case "CONNECT":
                    self.reply(
                        "CONNECTED",
                        proto.CommandConnected(
                            server_version="script",
                            protocol_version=self.protocol_version,
                            max_message_size=5 * 1024 * 1024,
                        ),
                    )
                case "PARTITIONED_METADATA" if self.answers_lookups:
                    self.reply(
                        "PARTITIONED_METADATA_RESPONSE",
                        proto.CommandPartitionedTopicMetadataResponse(
                            request_id=command.request_id,
                            partitions=int(command.topic.endswith("/transaction_coordinator_assign")),
                            response=proto.CommandPartitionedTopicMetadataResponse.Success,
                        ),
                    )
                case "LOOKUP" if self.answers_lookups:
                    self.reply(
                        "LOOKUP_RESPONSE",
                        proto.CommandLookupTopicResponse(
                            brokerServiceUrl=URL,
                            request_id=command.request_id,
                            response=proto.CommandLookupTopicResponse.Connect,
                            authoritative=True,
                        ),
                    )
                case "GET_LAST_MESSAGE_ID" if self.answers_positions:
                    response = proto.CommandGetLastMessageIdResponse(request_id=command.request_id)
                    response.last_message_id.ledgerId = response.last_message_id.entryId = 2**64 - 1
                    self.reply("GET_LAST_MESSAGE_ID_RESPONSE", response)
                case name:
                    self._frames.append((name, command))
        self._unread = self._unread[position:]

    def reply(self, name: str, command: Any) -> None:
        """Send one simple frame from the broker, and take nothing from the client."""
        self.bytes(encode_command(Command.Type.Value(name), command))

    def bytes(self, data: bytes) -> None:
        self.client.receive_data(self.now, self.link, data)

    def say(self, name: str, command: Any) -> None:
        """Send one simple frame from the broker."""
        self.reply(name, command)
        self.pump()

    def lose(self, reason: str = "cut") -> None:
        """Lose the connection."""
        self.client.disconnected(self.now, self.link, reason)
        self.pump()

    def pass_time(self, nanoseconds: int) -> None:
        """Let time pass; every timer runs at its moment."""
        until = self.now + nanoseconds
        while (when := self.client.next_deadline()) is not None and when <= until:
            self.now = max(self.now, when)
            self.client.handle_deadline(self.now)
            self.pump()
        self.now = until

    # --- what was said ---

    def frames(self) -> list[tuple[str, Any]]:
        """Return the frames that the client sent since the last call, without PINGs."""
        self.pump()
        frames, self._frames = self._frames, []
        return [frame for frame in frames if frame[0] not in ("PING", "PONG")]

    def expect(self, *names: str) -> list[Any]:
        """Check that the client sent exactly these commands, and return them."""
        frames = self.frames()
        assert [name for name, _ in frames] == list(names)
        return [command for _, command in frames]

    def outputs(self) -> list[Output]:
        """Return the outputs for the application since the last call."""
        self.pump()
        outputs, self._outputs = self._outputs, []
        return outputs


class ConsumerScript(Script):
    """One client with one consumer, and its broker."""

    def __init__(self, *, protocol_version: int = 21, transactions: bool = False, **spec: Any) -> None:
        super().__init__(protocol_version, transactions=transactions)
        spec.setdefault("topic", "t")
        spec.setdefault("subscription", "s")
        spec.setdefault("subscription_type", SubscriptionType.EXCLUSIVE)
        self.spec = ConsumerSpec(**spec)
        self.consumer = self.client.subscribe(self.now, self.spec)
        self.pump()

    def accept(self) -> Any:
        """Accept the latest SUBSCRIBE, and return it."""
        name, command = self.frames()[-1]
        assert name == "SUBSCRIBE"
        self.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        return command

    def reconnect(self) -> Any:
        """Lose the connection; accept and return the new SUBSCRIBE."""
        self.lose()
        self.pass_time(SECOND)
        return self.accept()

    def close_by_broker(self) -> None:
        """Send CLOSE_CONSUMER: the topic is unloaded, and the connection stays."""
        self.say("CLOSE_CONSUMER", proto.CommandCloseConsumer(consumer_id=0, request_id=2**64 - 1))

    # --- the broker's deliveries ---

    def message(self, entry: int, payload: bytes = b"m", *, ledger: int = 1, **fields: Any) -> None:
        """Send MESSAGE with an entry of one message."""
        self.deliver(entry, entry_bytes(payload, sequence_id=entry), ledger=ledger, **fields)

    def batch(self, entry: int, size: int, *, ledger: int = 1, **fields: Any) -> None:
        """Send MESSAGE with a batch, its payloads `entry.index`."""
        payloads = [f"{entry}.{index}".encode() for index in range(size)]
        self.deliver(entry, batch_bytes(payloads), ledger=ledger, **fields)

    def deliver(self, entry: int, stored: bytes, *, ledger: int = 1, **fields: Any) -> None:
        command = MessageCommand(0, ledger, entry, payload=stored, **fields)
        self.bytes(command.encode())
        self.pump()

    @property
    def machine(self) -> Consumer:
        """The consumer's machine."""
        machine = self.client._handles.consumers[self.consumer]
        assert isinstance(machine, Consumer)
        return machine

    # --- the application ---

    def receive(self) -> Any:
        message = self.client.receive(self.now, self.consumer)
        self.pump()
        return message

    def take(self, limit: int = 1_000_000) -> list[Any]:
        return list(self.take_together(limit))

    def take_together(self, limit: int = 1_000_000) -> Messages:
        messages = self.client.take(self.now, self.consumer, limit)
        self.pump()
        return messages

    def acknowledge(self, what: Any) -> None:
        self.client.acknowledge(self.now, self.consumer, what)
        self.pump()

    def acknowledge_cumulative(self, what: Any) -> None:
        self.client.acknowledge_cumulative(self.now, self.consumer, what)
        self.pump()

    def negative_acknowledge(self, what: Any) -> None:
        self.client.negative_acknowledge(self.now, self.consumer, what)
        self.pump()

    def redeliver(self) -> None:
        self.client.redeliver_unacknowledged(self.now, self.consumer)
        self.pump()

    def flush(self) -> int:
        request = self.client.flush_acknowledgements(self.now, self.consumer)
        self.pump()
        return request

    def close(self) -> int:
        request = self.client.close(self.now, self.consumer)
        self.pump()
        return request
