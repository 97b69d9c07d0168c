"""`Script`: plays the world and the broker to a `Client`, line by line.

The wire package decodes the client's bytes and encodes the broker's commands, so that a test reads as a
conversation. The test writes every answer, except those of the openings that most tests need (`ready_link`,
`ready_producer`).
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar, cast

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.outputs import (
    NOTICES,
    Connect,
    Disconnect,
    Output,
    ProducerReady,
    Transmit,
)
from pulsar_sansio.model.config import ClientConfig, ProducerSpec
from pulsar_sansio.wire import (
    FrameDecoder,
    encode_command,
    encode_send_receipt,
    max_frame_size,
    proto,
)

Command = proto.BaseCommand
SECOND = 1_000_000_000
MILLISECOND = 1_000_000
WALL = 1_700_000_000_000
"""A publish time, in milliseconds since 1970."""
URL = "pulsar://broker:6650"

OutputT = TypeVar("OutputT")


def name_of(kind: int) -> str:
    return Command.Type.Name(kind)


class Script:
    """One client and the world around it. `now` begins at an arbitrary moment."""

    def __init__(self, *, seed: int = 1, chop: bool = False, **config: Any) -> None:
        self.now = 5_000 * SECOND
        self.config = ClientConfig(**{"service_url": URL, **config})
        self.client = Client(self.now, self.config, seed=seed, entropy=Random(seed).randbytes)
        self.outputs: list[Output] = []
        """Outputs that the test has not taken. `Transmit` is carried out at once."""
        self.notices: list[Output] = []
        """The notices."""
        self.written: dict[int, bytes] = {}
        """Bytes that the test has not taken, by link."""
        self.history: list[Output] = []
        """All outputs of the client."""
        self.chop = chop
        """Feed every byte by itself."""

    # --- the client's side ---

    def drain(self) -> None:
        while (output := self.client.next_output()) is not None:
            self.history.append(output)
            if isinstance(output, Transmit):
                self.pull(output.link)
                continue
            if isinstance(output, Disconnect):
                self.pull(output.link)
            if type(output) in NOTICES:
                self.notices.append(output)
                continue
            self.outputs.append(output)

    def pull(self, link: int) -> None:
        self.written[link] = self.written.get(link, b"") + b"".join(self.client.data_to_send(link))

    def said(self) -> list[Output]:
        """Return the outputs since the last call."""
        self.drain()
        outputs, self.outputs = self.outputs, []
        return outputs

    def expect(self, *expected: Output) -> None:
        assert self.said() == list(expected)

    def expect_one(self, kind: type[OutputT]) -> OutputT:
        """Check that there is one output, of this kind, and return it."""
        outputs = self.said()
        assert [type(output) for output in outputs] == [kind], outputs
        found = outputs[0]
        assert isinstance(found, kind)
        return found

    def commands(self, link: int) -> list[tuple[int, Any]]:
        """Return the commands that the client wrote to the link since the last call; all frames must be
        whole."""
        self.drain()
        data = self.written.pop(link, b"")
        found = []
        position = 0
        while position < len(data):
            frame = FrameDecoder().decode(data, position, max_frame_size(64 * 1024 * 1024))
            assert frame is not None, "the client left half a frame"
            kind, command, position = frame
            found.append((kind, command))
        return found

    def sent(self, link: int, *kinds: int) -> Any:
        """Check that the client wrote exactly these kinds of commands. Return them; a single one by
        itself."""
        found = self.commands(link)
        assert [name_of(kind) for kind, _ in found] == [name_of(kind) for kind in kinds]
        commands = [command for _, command in found]
        return commands[0] if len(commands) == 1 else commands

    def advance(self, seconds: float) -> None:
        """Let time pass, and run each timer when it is due."""
        end = self.now + round(seconds * SECOND)
        while (deadline := self.client.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.client.handle_deadline(self.now)
            self.drain()
        self.now = end

    def connection(self, link: int) -> Connection:
        """Return the connection to a broker over this link."""
        found = self.client._links.open[link]
        assert isinstance(found, Connection)
        return found

    # --- the broker's side ---

    def feed(self, link: int, *frames: bytes) -> None:
        """Feed bytes of the broker."""
        data = b"".join(frames)
        if self.chop:
            for position in range(len(data)):
                self.client.receive_data(self.now, link, data[position : position + 1])
        else:
            self.client.receive_data(self.now, link, data)
        self.drain()

    def open(self, link: int) -> None:
        self.client.connected(self.now, link)
        self.drain()

    def lose(self, link: int, reason: str = "reset by peer") -> None:
        self.client.disconnected(self.now, link, reason)
        self.drain()

    # --- openings ---

    def ready_link(self, address: str = "broker", **connected: Any) -> int:
        """Open the link that the client asks for, and shake hands."""
        connect = self.expect_one(Connect)
        assert connect.address.host == address
        self.open(connect.link)
        self.sent(connect.link, Command.CONNECT)
        self.feed(connect.link, frame_connected(**connected))
        return connect.link

    def find_topic(self, link: int, url: str = URL, **response: Any) -> None:
        """Answer a LOOKUP."""
        lookup = self.sent(link, Command.LOOKUP)
        self.feed(link, frame_lookup(lookup.request_id, url, **response))

    def check_partitions(self, link: int, partitions: int = 0) -> None:
        """Answer a PARTITIONED_METADATA."""
        asked = self.sent(link, Command.PARTITIONED_METADATA)
        self.feed(link, frame_partitions(asked.request_id, partitions))

    def ready_producer(
        self, spec: ProducerSpec | None = None, *, link: int | None = None, name: str = "p-1", **options: Any
    ) -> tuple[int, int]:
        """Open a producer; return its handle and its link."""
        spec = replace(spec or ProducerSpec(topic="demo"), **options)
        producer = self.client.open_producer(self.now, spec)
        if link is None:
            link = self.ready_link()
        self.check_partitions(link)
        self.find_topic(link)
        asked = self.sent(link, Command.PRODUCER)
        self.feed(link, frame_producer_success(asked.request_id, spec.name or name))
        assert isinstance(self.said()[-1], ProducerReady)
        return producer, link


# --- frames of the broker ----------------------------------------------------------------------------


def frame_connected(version: int = 21, max_message_size: int = 5 * 1024 * 1024, **flags: bool) -> bytes:
    return encode_command(
        Command.CONNECTED,
        proto.CommandConnected(
            server_version="test",
            protocol_version=version,
            max_message_size=max_message_size,
            feature_flags=proto.FeatureFlags(**flags),
        ),
    )


def frame_partitions(request_id: int, partitions: int = 0) -> bytes:
    return encode_command(
        Command.PARTITIONED_METADATA_RESPONSE,
        proto.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            partitions=partitions,
            response=proto.CommandPartitionedTopicMetadataResponse.Success,
        ),
    )


def frame_lookup(
    request_id: int,
    url: str,
    *,
    redirect: bool = False,
    authoritative: bool = True,
    proxy: bool = False,
    tls_url: str = "",
) -> bytes:
    kinds = proto.CommandLookupTopicResponse
    return encode_command(
        Command.LOOKUP_RESPONSE,
        proto.CommandLookupTopicResponse(
            request_id=request_id,
            brokerServiceUrl=url,
            brokerServiceUrlTls=tls_url,
            response=kinds.Redirect if redirect else kinds.Connect,
            authoritative=authoritative,
            proxy_through_service_url=proxy,
        ),
    )


def frame_lookup_failed(request_id: int, error: int, message: str = "no") -> bytes:
    return encode_command(
        Command.LOOKUP_RESPONSE,
        proto.CommandLookupTopicResponse(
            request_id=request_id,
            response=proto.CommandLookupTopicResponse.Failed,
            error=cast(Any, error),
            message=message,
        ),
    )


def frame_partitions_failed(request_id: int, error: int, message: str = "no") -> bytes:
    return encode_command(
        Command.PARTITIONED_METADATA_RESPONSE,
        proto.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            response=proto.CommandPartitionedTopicMetadataResponse.Failed,
            error=cast(Any, error),
            message=message,
        ),
    )


def frame_producer_success(
    request_id: int,
    name: str = "p-1",
    last_sequence_id: int = -1,
    ready: bool = True,
    topic_epoch: int | None = None,
    schema_version: bytes = b"",
) -> bytes:
    return encode_command(
        Command.PRODUCER_SUCCESS,
        proto.CommandProducerSuccess(
            request_id=request_id,
            producer_name=name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version,
            producer_ready=ready,
            topic_epoch=topic_epoch,
        ),
    )


def frame_success(request_id: int) -> bytes:
    return encode_command(Command.SUCCESS, proto.CommandSuccess(request_id=request_id))


def frame_error(request_id: int, error: int, message: str = "no") -> bytes:
    return encode_command(
        Command.ERROR,
        proto.CommandError(request_id=request_id, error=cast(Any, error), message=message),
    )


def frame_receipt(
    sequence_id: int, ledger_id: int = 7, entry_id: int = 0, highest: int | None = None, producer_id: int = 0
) -> bytes:
    return encode_send_receipt(producer_id, sequence_id, ledger_id, entry_id, highest)


def frame_send_error(sequence_id: int, error: int, message: str = "no", producer_id: int = 0) -> bytes:
    return encode_command(
        Command.SEND_ERROR,
        proto.CommandSendError(
            producer_id=producer_id,
            sequence_id=sequence_id,
            error=cast(Any, error),
            message=message,
        ),
    )


def frame_close_producer(producer_id: int = 0, url: str = "", *, tls_url: str = "") -> bytes:
    command = proto.CommandCloseProducer(
        producer_id=producer_id,
        request_id=2**64 - 1,
        assignedBrokerServiceUrl=url,
        assignedBrokerServiceUrlTls=tls_url,
    )
    return encode_command(Command.CLOSE_PRODUCER, command)


def kinds(outputs: Sequence[Output]) -> list[str]:
    return [type(output).__name__ for output in outputs]
