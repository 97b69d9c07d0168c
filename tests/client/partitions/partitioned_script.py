"""`PartitionedScript`: a producer of a partitioned topic, and its broker.

The broker answers what opening asks. It keeps SENDs by partition, and confirms them when the test says so, in
any order of the partitions.
"""

from collections.abc import Iterable
from typing import Any

from pulsar_sansio.client.outputs import Connect, Disconnect, Output, Receipts, SendFailed
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.wire import encode_command, proto, split_batch, unpack_payload
from tests.client.script import (
    URL,
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_partitions,
    frame_partitions_failed,
    frame_receipt,
    frame_send_error,
    frame_success,
)

TOPIC = "persistent://public/default/demo"


class PartitionedScript:
    """One client, one connection, one producer.

    `refuse`, `ignore`: indexes of partitions that the broker refuses to open, or does not answer. `queue`:
    indexes of partitions that have to wait. `asked`: the PRODUCER commands in their order. The broker answers
    CLOSE_PRODUCER while `answer_closes`.
    """

    def __init__(
        self, partitions: int = 3, *, seed: int = 1, script: Script | None = None, **spec: Any
    ) -> None:
        self.script = script or Script(seed=seed)
        self.partitions = partitions
        self.refuse: dict[int, int] = {}
        self.ignore: set[int] = set()
        self.queue: set[int] = set()
        self.answer_closes = True
        self.schema: proto.Schema | None = None
        """The latest definition of the topic."""
        self.metadata_error: int | None = None
        self.asked: list[Any] = []
        self.closed: list[int] = []
        self.index_of: dict[int, int] = {}
        """The partitions, by producer_id."""
        self.sends: dict[int, list[Any]] = {}
        """SENDs that are not confirmed, by partition."""
        self.stored: dict[int, list[bytes]] = {}
        """Payloads in the order of their arrival, by partition."""
        self.entries: dict[int, int] = {}
        self.metadata_questions = 0
        self.outputs: list[Output] = []
        self.handle = self.script.client.open_producer(
            self.script.now, ProducerSpec(**{"topic": "demo", "batching": None, **spec})
        )

    # --- the broker ---

    def answer(self) -> "PartitionedScript":
        """Answer everything until the client is quiet."""
        quiet = False
        while not quiet:
            quiet = True
            for output in self.script.said():
                self.outputs.append(output)
                if isinstance(output, Connect):
                    quiet = False
                    self.script.open(output.link)
            for link in self.script.client.links:
                for kind, command in self.script.commands(link):
                    quiet = False
                    self._answer(link, kind, command)
        return self

    def _answer(self, link: int, kind: int, command: Any) -> None:
        feed = self.script.feed
        match kind:
            case Command.CONNECT:
                feed(link, frame_connected())
            case Command.PARTITIONED_METADATA:
                self.metadata_questions += 1
                if self.metadata_error is None:
                    feed(link, frame_partitions(command.request_id, self.partitions))
                else:
                    feed(link, frame_partitions_failed(command.request_id, self.metadata_error))
            case Command.LOOKUP:
                feed(link, frame_lookup(command.request_id, URL))
            case Command.GET_SCHEMA:
                answer = proto.CommandGetSchemaResponse(request_id=command.request_id, schema=self.schema)
                feed(link, encode_command(Command.GET_SCHEMA_RESPONSE, answer))
            case Command.GET_OR_CREATE_SCHEMA:
                version = bytes([command.schema.type])
                registered = proto.CommandGetOrCreateSchemaResponse(
                    request_id=command.request_id, schema_version=version
                )
                feed(link, encode_command(Command.GET_OR_CREATE_SCHEMA_RESPONSE, registered))
            case Command.PRODUCER:
                self.asked.append(command)
                index = int(command.topic.rpartition("-")[2])
                self.index_of[command.producer_id] = index
                if index in self.refuse:
                    feed(link, frame_error(command.request_id, self.refuse[index]))
                elif index not in self.ignore:
                    self._open(link, command, index)
            case Command.CLOSE_PRODUCER:
                self.closed.append(self.index_of[command.producer_id])
                if self.answer_closes:
                    feed(link, frame_success(command.request_id))
            case Command.SEND:
                index = self.index_of[command.producer_id]
                self.sends.setdefault(index, []).append(command)
                self.stored.setdefault(index, []).extend(payloads(command))
            case Command.PING:
                feed(link, encode_command(Command.PONG, proto.CommandPong()))
            case _:
                raise AssertionError(f"unexpected command {kind}")

    def _open(self, link: int, command: Any, index: int) -> None:
        success = proto.CommandProducerSuccess(
            request_id=command.request_id,
            producer_name=command.producer_name or "p-1",
            last_sequence_id=index - 1,
            producer_ready=index not in self.queue,
        )
        self.script.feed(link, encode_command(Command.PRODUCER_SUCCESS, success))

    def confirm(self, index: int, entries: int = 1_000_000) -> None:
        """Confirm the oldest entries of a partition. Entry numbers count up; the ledger is 100 + index."""
        (link,) = self.script.client.links
        frames = []
        for send in self.sends.get(index, [])[:entries]:
            entry = self.entries.get(index, 0)
            self.entries[index] = entry + 1
            highest = send.highest_sequence_id
            frames.append(frame_receipt(send.sequence_id, 100 + index, entry, highest, send.producer_id))
        self.script.feed(link, *frames)
        self.sends[index] = self.sends.get(index, [])[entries:]

    def close_by_broker(self, index: int) -> None:
        """Send CLOSE_PRODUCER of one partition."""
        (link,) = self.script.client.links
        self.script.feed(link, frame_close_producer(self.producer_id(index)))

    def terminate(self, index: int) -> None:
        """Send a SEND_ERROR that ends a partition's producer for good."""
        (link,) = self.script.client.links
        self.script.feed(
            link, frame_send_error(0, proto.TopicTerminatedError, producer_id=self.producer_id(index))
        )

    def attached(self) -> list[int]:
        """Return the partitions with an open producer."""
        statistics = self.script.client.partition_statistics(self.handle)
        return [index for index, each in enumerate(statistics) if each.connected]

    def producer_id(self, index: int) -> int:
        """Return the id of the latest producer of a partition."""
        return max(key for key, value in self.index_of.items() if value == index)

    def open_after_all(self, *ignore: int) -> None:
        """Answer the latest PRODUCER, which was ignored. From now on the broker ignores none."""
        self.ignore = set(ignore)
        (link,) = self.script.client.links
        self._answer(link, int(Command.PRODUCER), self.asked.pop())
        self.answer()

    def pass_time(self, seconds: float) -> None:
        """Let time pass while the broker answers."""
        while seconds > 0:
            self.script.advance(min(seconds, 1.0))
            seconds -= 1.0
            self.answer()

    # --- the application ---

    def send(self, message: Any = b"x") -> int:
        return self.script.client.send(self.script.now, self.handle, message, WALL)

    def send_many(self, messages: Iterable[Any]) -> range:
        return self.script.client.send_many(self.script.now, self.handle, list(messages), WALL)

    def told(self) -> list[Output]:
        """Return the outputs for the application since the last call."""
        self.answer()
        outputs, self.outputs = self.outputs, []
        return [output for output in outputs if not isinstance(output, Connect | Disconnect)]

    def settled(self) -> dict[int, Any]:
        """Return the message id or error of each ticket, from the outputs since the last call. No other
        output is allowed."""
        found: dict[int, Any] = {}
        for output in self.told():
            assert isinstance(output, Receipts | SendFailed), output
            assert output.producer == self.handle
            if isinstance(output, Receipts):
                results: list[Any] = list(output.message_ids)
            else:
                results = [output.error] * output.count
            for ticket, result in enumerate(results, output.first):
                assert ticket not in found
                found[ticket] = result
        return found


def payloads(send: Any) -> list[bytes]:
    """Return the payloads in a SEND, of a batch or of a single message."""
    unpacked = unpack_payload(send.payload)
    if send.num_messages > 1:
        return list(split_batch(bytes(unpacked.payload), send.num_messages).payloads)
    return [bytes(unpacked.payload)]
