"""A broker that sends anything at any time, and a world that breaks links: nothing is raised, and everything
ends.

Well-formed commands with plausible ids reach much further than random bytes. They answer requests with the
wrong command, confirm what was not sent, and close what is opening. After every run the test closes the
client. Then every ticket and request must have been settled exactly once, and no link and no timer may be
left.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.client.outputs import (
    Closed,
    Connect,
    ConsumerFailed,
    ConsumerReady,
    Disconnect,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
)
from pulsar_sansio.model.config import (
    BatchingPolicy,
    ConsumerSpec,
    OutgoingMessage,
    ProducerSpec,
    SubscriptionType,
)
from pulsar_sansio.model.errors import LocalProtocolError, ServerError
from pulsar_sansio.wire import (
    MessageCommand,
    MessageMetadata,
    encode_batch_payloads,
    encode_command,
    encode_message_metadata,
    encode_ping,
    encode_pong,
    pack_payload,
    proto,
)
from tests.client.script import (
    URL,
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_lookup_failed,
    frame_partitions,
    frame_partitions_failed,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
    frame_success,
)

pytestmark = pytest.mark.breaks("WIRE-21", why="the version in CONNECTED is a lie")

CODES = st.sampled_from([int(code) for code in ServerError])
REQUESTS = st.integers(0, 12)
SEQUENCES = st.integers(0, 12) | st.just(2**64 - 1)
URLS = st.sampled_from([URL, "pulsar://other:1", "nonsense", ""])

SINGLE = b"".join(pack_payload(encode_message_metadata(MessageMetadata("p", 0, WALL)), b"payload"))
BATCH = b"".join(
    pack_payload(
        encode_message_metadata(MessageMetadata("p", 0, WALL, num_messages_in_batch=3)),
        encode_batch_payloads([b"a", b"b", b"c"], 0),
    )
)
BROKEN = b"".join(
    pack_payload(encode_message_metadata(MessageMetadata("p", 0, WALL, num_messages_in_batch=3)), b"x")
)


def frame_message(consumer: int, entry: int, redelivered: int, ack_set: int | None, payload: bytes) -> bytes:
    command = MessageCommand(
        consumer, 1, entry, redelivery_count=redelivered, ack_set=ack_set, payload=payload
    )
    return command.encode()


MISCHIEF = st.one_of(
    st.builds(frame_connected, st.integers(0, 30), st.sampled_from([0, 1024, 5 * 1024 * 1024])),
    st.builds(frame_partitions, REQUESTS, st.sampled_from([0, 0, 0, 3])),
    st.builds(frame_partitions_failed, REQUESTS, CODES),
    st.builds(frame_lookup, REQUESTS, URLS, redirect=st.booleans(), proxy=st.booleans()),
    st.builds(frame_lookup_failed, REQUESTS, CODES),
    st.builds(frame_producer_success, REQUESTS, st.sampled_from(["p", ""]), st.integers(-5, 5)),
    st.builds(frame_success, REQUESTS),
    st.builds(frame_receipt, SEQUENCES, highest=st.none() | SEQUENCES, producer_id=st.integers(0, 1)),
)
"""Send bytes that mostly end the link."""

FRAMES = st.one_of(
    MISCHIEF,
    st.builds(frame_error, REQUESTS | st.just(2**64 - 1), CODES),
    st.builds(frame_send_error, st.integers(0, 9), CODES, producer_id=st.integers(0, 1)),
    st.builds(frame_close_producer, st.integers(0, 1), st.none() | URLS),
    st.builds(
        lambda consumer: encode_command(
            Command.CLOSE_CONSUMER, proto.CommandCloseConsumer(consumer_id=consumer, request_id=2**64 - 1)
        ),
        st.integers(0, 1),
    ),
    st.builds(
        lambda active: encode_command(
            Command.ACTIVE_CONSUMER_CHANGE, proto.CommandActiveConsumerChange(consumer_id=0, is_active=active)
        ),
        st.booleans(),
    ),
    st.just(encode_command(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=0))),
    st.builds(
        lambda request: encode_command(
            Command.ACK_RESPONSE, proto.CommandAckResponse(consumer_id=0, request_id=request)
        ),
        st.integers(6, 40),
    ),
    st.just(encode_ping()),
    st.just(encode_pong()),
)

MESSAGES = st.builds(
    frame_message,
    st.sampled_from([0, 0, 0, 1]),
    st.integers(0, 9),
    st.integers(0, 3),
    st.sampled_from([None, None, None, 0, 3, 6]),
    st.sampled_from([SINGLE, BATCH, BATCH, BROKEN, SINGLE[:-1], b""]),
)

LINKS = st.sampled_from([0, 0, 0, 1])
APPLICATION = st.tuples(st.just("application"), st.integers(0, 12), st.integers(0, 4))
ANSWER = st.tuples(st.just("answer"), LINKS, st.booleans())

STEPS = st.one_of(
    APPLICATION,
    APPLICATION,
    APPLICATION,
    ANSWER,
    ANSWER,
    ANSWER,
    st.tuples(st.just("frame"), LINKS, FRAMES),
    st.tuples(st.just("frame"), LINKS, MESSAGES),
    st.tuples(st.just("advance"), LINKS, st.sampled_from([0.001, 0.001, 0.11, 0.11, 1.0, 31.0])),
    st.tuples(st.just("break"), LINKS, st.booleans()),
)


class Chaos:
    """One client with one producer and one consumer, and the tickets and requests of both."""

    def __init__(self, kind: SubscriptionType, batched: bool) -> None:
        self.script = Script(operation_timeout=20.0, connect_timeout=5.0)
        client, now = self.script.client, self.script.now
        self.client = client
        self.producer = client.open_producer(
            now,
            ProducerSpec(
                topic="demo",
                max_pending_messages=8,
                batching=BatchingPolicy(max_messages=3) if batched else None,
            ),
        )
        self.consumer = client.subscribe(
            now,
            ConsumerSpec(
                topic="demo",
                subscription="s",
                subscription_type=kind,
                receiver_queue_size=4,
                acknowledgement_receipts=True,
            ),
        )
        self.tickets = 0
        self.requests: list[int] = []
        self.received: list[Any] = []
        self.pending: dict[int, list[tuple[int, Any]]] = {}
        self.dead: set[int] = set()
        self.follow()

    def links(self) -> list[int]:
        return list(self.client.links)

    def follow(self) -> None:
        """Open the links that the client asks for, and keep its bytes for `answer`."""
        while True:
            self.script.drain()
            connects = [output for output in self.script.outputs if isinstance(output, Connect)]
            self.dead |= {output.link for output in self.script.outputs if isinstance(output, Disconnect)}
            self.script.outputs = []
            for link in list(self.script.written):
                self.pending.setdefault(link, []).extend(self.script.commands(link))
            if not connects:
                return
            for connect in connects:
                self.client.connected(self.script.now, connect.link)

    def answer(self, link: int) -> None:
        """Answer the oldest unanswered command as an honest broker."""
        while self.pending.get(link):
            kind, command = self.pending[link].pop(0)
            match kind:
                case Command.CONNECT:
                    self.script.feed(link, frame_connected())
                case Command.PARTITIONED_METADATA:
                    self.script.feed(link, frame_partitions(command.request_id))
                case Command.LOOKUP:
                    self.script.feed(link, frame_lookup(command.request_id, URL))
                case Command.PRODUCER:
                    self.script.feed(link, frame_producer_success(command.request_id))
                case (
                    Command.SUBSCRIBE | Command.CLOSE_PRODUCER | Command.CLOSE_CONSUMER | Command.UNSUBSCRIBE
                ):
                    self.script.feed(link, frame_success(command.request_id))
                case Command.SEND:
                    self.script.feed(
                        link, frame_receipt(command.sequence_id, highest=command.highest_sequence_id)
                    )
                case _:
                    continue
            return

    def application(self, what: int, count: int) -> None:
        client, now = self.client, self.script.now
        try:
            match what:
                case 0 | 1 | 2:
                    client.send(now, self.producer, b"x" * count, WALL)
                    self.tickets += 1
                case 3:
                    self.tickets += len(client.send_many(now, self.producer, [b"y"] * count, WALL))
                case 4:
                    client.send(now, self.producer, OutgoingMessage(None, deliver_at=count or None), WALL)
                    self.tickets += 1
                case 5:
                    self.requests.append(client.flush(now, self.producer))
                case 6 | 7:
                    self.received += client.take(now, self.consumer, count)
                case 8:
                    client.acknowledge(now, self.consumer, self.received[:count])
                case 9:
                    client.negative_acknowledge(now, self.consumer, self.received[-count:])
                case 10:
                    client.redeliver_unacknowledged(now, self.consumer)
                case 11:
                    self.requests.append(client.flush_acknowledgements(now, self.consumer))
                case _:
                    target = self.producer if count % 2 else self.consumer
                    self.requests.append(client.close(now, target) if count < 3 else self.unsubscribe())
        except LocalProtocolError:
            pass  # a mistake in this state changes nothing, as the end of the run shows

    def unsubscribe(self) -> int:
        return self.client.unsubscribe(self.script.now, self.consumer)

    def end(self) -> None:
        """Close the client. A broker that answers nothing more cannot keep the client open."""
        self.requests.append(self.client.close(self.script.now))
        for _ in range(5):
            self.follow()
            self.script.advance(30)
        self.follow()
        self.check(self.script.history)

    def check(self, history: list[Any]) -> None:
        assert self.client.links == ()
        assert self.client.next_deadline() is None
        tickets: list[int] = []
        requests: list[int] = []
        beginnings: list[int] = []
        ends: list[int] = []
        for output in history:
            match output:
                case Receipts(_, first, message_ids):
                    tickets += range(first, first + len(message_ids))
                case SendFailed(_, first, failed, _):
                    tickets += range(first, first + failed)
                case RequestDone(request, _) | RequestFailed(request, _):
                    requests.append(request)
                case ProducerReady(handle) | ConsumerReady(handle):
                    beginnings.append(handle)
                case Closed(handle, _):
                    assert handle in beginnings
                    ends.append(handle)
                case ProducerFailed(handle, _) | ConsumerFailed(handle, _):
                    assert handle not in beginnings
                    ends.append(handle)
                case _:
                    pass
        assert sorted(tickets) == list(range(self.tickets))
        assert sorted(requests) == sorted(self.requests)
        assert sorted(ends) == sorted([self.producer, self.consumer])
        connects = [output.link for output in history if isinstance(output, Connect)]
        gone = [output.link for output in history if isinstance(output, Disconnect)]
        assert len(set(connects)) == len(connects)
        assert set(gone) <= set(connects)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.sampled_from([0, 3, 12, 12, 12]),
    st.lists(STEPS, min_size=20, max_size=80),
    st.sampled_from([SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.FAILOVER]),
    st.booleans(),
)
def test_whatever_the_broker_says_everything_ends(
    honest: int, steps: list[tuple[str, int, Any]], kind: SubscriptionType, batched: bool
) -> None:
    chaos = Chaos(kind, batched)
    script = chaos.script
    for _ in range(honest):  # the first answers are right: 12 attach both
        chaos.answer(1)
        chaos.follow()
    for what, number, detail in steps:
        links = chaos.links()
        link = links[number % len(links)] if links else 0
        match what:
            case "frame":
                if link:
                    script.feed(link, detail)
            case "answer":
                if link:
                    chaos.answer(link)
            case "advance":
                script.advance(detail)
            case "break":
                if link and detail:
                    script.lose(link)
                elif link:
                    script.client.receive_eof(script.now, link)
            case _:
                chaos.application(number, detail)
        chaos.follow()
    chaos.end()
