"""Key-based batching: a batch for each key, sent in the order of the highest ids (java-produce-key-batch)."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import Receipts, RequestDone, RequestFailed, SendFailed
from pulsar_sansio.client.producing.key_batches import KeyBatches, runs
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import PulsarError, TimedOut
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import unpack_payload
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.producing.sender import Sender, tickets
from tests.client.producing.test_open_batch import members
from tests.client.script import WALL, frame_receipt

POLICY = BatchingPolicy(max_messages=9, max_bytes=1000, max_delay=0.05, by_key=True)
SPEC = ProducerSpec(topic="demo", batching=POLICY)


def keyed(number: int, keys: int = 3) -> OutgoingMessage:
    return OutgoingMessage(b"m%d" % number, key=f"k{number % keys}")


def told(*outputs: Any) -> dict[int, MessageId | PulsarError]:
    """Return the outcome of each ticket; assert that no ticket has two."""
    found: dict[int, MessageId | PulsarError] = {}
    for output in outputs:
        match output:
            case Receipts(_, first, message_ids):
                new: dict[int, Any] = dict(enumerate(message_ids, first))
            case SendFailed(_, first, count, error):
                new = dict.fromkeys(range(first, first + count), error)
            case _:
                continue
        assert not found.keys() & new.keys()
        found |= new
    return found


def ids(send: Any) -> tuple[int, int, int | None]:
    return send.sequence_id, send.num_messages, send.highest_sequence_id


def test_batches_may_be_as_large_together_as_an_entry() -> None:
    """BATCH-04: the metadata of the members count, and no byte more."""
    batches = KeyBatches()
    batches.limit(9, 1000, 100)
    batches.add(b"", b"", 40, 10, 0, 0, WALL)
    assert batches.has_room_for(30, 20, 1)
    assert not batches.has_room_for(30, 21, 1)


def test_nine_messages_of_three_keys_are_three_entries_known_by_their_highest_ids() -> None:
    """INV-P6: java-produce-key-batch, byte for byte but for the times."""
    sender = Sender(spec=SPEC)
    for number in range(9):
        assert sender.send(keyed(number), WALL + number) == number
    sends = sender.sent()
    assert [ids(send) for send in sends] == [(6, 3, 6), (7, 3, 7), (8, 3, 8)]
    assert [members(send) for send in sends] == [
        [(0, b"m0"), (3, b"m3"), (6, b"m6")],
        [(1, b"m1"), (4, b"m4"), (7, b"m7")],
        [(2, b"m2"), (5, b"m5"), (8, b"m8")],
    ]
    for number, send in enumerate(sends):
        assert unpack_payload(send.payload).metadata.__dict__ == {
            "producer_name": "p-1",
            "sequence_id": 6 + number,
            "publish_time": WALL + number,
            "partition_key": f"k{number}",
            "partition_key_b64_encoded": False,
            "num_messages_in_batch": 3,
            "highest_sequence_id": 6 + number,
        }
    first_payload = bytes.fromhex(
        "0000000a12026b301802300040006d300000000a12026b301802300040036d330000000a12026b301802300040066d36"
    )
    assert unpack_payload(sends[0].payload).payload == first_payload


def test_each_message_gets_the_id_of_its_place_in_its_batch() -> None:
    sender = Sender(spec=SPEC)
    for number in range(9):
        sender.send(keyed(number))
    sender.script.feed(
        sender.link, frame_receipt(6, 9, 2, 6), frame_receipt(7, 9, 3, 7), frame_receipt(8, 9, 4, 8)
    )
    assert told(*sender.script.said()) == {
        number: MessageId(9, 2 + number % 3, -1, number // 3, 3) for number in range(9)
    }


def test_messages_of_one_key_that_follow_one_another_are_told_together() -> None:
    sender = Sender(spec=SPEC)
    for key in "aaabba":
        sender.send(OutgoingMessage(b"", key=key))
    sender.script.advance(0.06)
    assert [ids(send)[0] for send in sender.sent()] == [4, 5]
    sender.script.feed(sender.link, frame_receipt(4, 9, 0, 4), frame_receipt(5, 9, 1, 5))
    said = sender.script.said()
    assert [tickets(output) for output in said] == [[3, 4], [0, 1, 2], [5]]


def test_a_key_with_one_message_is_an_ordinary_message() -> None:
    sender = Sender(spec=SPEC)
    sender.send(keyed(0))
    sender.send(keyed(1))
    sender.script.client.push(sender.script.now, sender.handle)
    sends = sender.sent()
    assert [(send.sequence_id, send.num_messages, send.highest_sequence_id) for send in sends] == [
        (0, 1, None),
        (1, 1, None),
    ]
    assert unpack_payload(sends[0].payload).metadata.num_messages_in_batch is None


def test_the_ordering_key_counts_where_there_is_one_and_no_key_is_one_key() -> None:
    sender = Sender(spec=SPEC)
    for message in (
        b"bare",
        OutgoingMessage(b"no key"),
        OutgoingMessage(b"o1", key="a", ordering_key=b"o"),
        OutgoingMessage(b"o2", key="b", ordering_key=b"o"),
        OutgoingMessage(b"text", key="AP8="),
        OutgoingMessage(b"bytes", key=b"\x00\xff"),
    ):
        sender.send(message)
    sender.script.client.push(sender.script.now, sender.handle)
    sends = sender.sent()
    assert [[payload for _, payload in members(send)] for send in sends] == [
        [b"bare", b"no key"],
        [b"o1", b"o2"],
        [b"text"],
        [b"bytes"],
    ]


@pytest.mark.parametrize(
    ("policy", "payload", "before"),
    [
        (BatchingPolicy(max_messages=4, by_key=True), b"", 4),
        (BatchingPolicy(max_bytes=40, by_key=True), bytes(10), 4),
        (BatchingPolicy(max_bytes=41, by_key=True), bytes(10), 4),
    ],
)
def test_the_limits_count_for_all_open_batches_together(
    policy: BatchingPolicy, payload: bytes, before: int
) -> None:
    """Rules BATCH-04, BATCH-05."""
    sender = Sender(spec=ProducerSpec(topic="demo", batching=policy))
    sent = 0
    while not (sends := sender.sent()):
        sender.send(OutgoingMessage(payload, key=f"k{sent % 2}"))
        sent += 1
    assert sum(send.num_messages for send in sends) == before


def test_an_unbatched_message_goes_after_what_came_before_it() -> None:
    sender = Sender(spec=SPEC)
    sender.send(keyed(0))
    sender.send(keyed(1))
    sender.send(OutgoingMessage(b"later", key="k0", deliver_at=WALL + 1))
    assert [send.sequence_id for send in sender.sent()] == [0, 1, 2]


def test_an_id_of_the_applications_that_goes_back_closes_the_batches() -> None:
    sender = Sender(spec=SPEC)
    sender.send(OutgoingMessage(b"", key="a", sequence_id=7))
    sender.send(OutgoingMessage(b"", key="b", sequence_id=8))
    assert sender.sent() == []
    sender.send(OutgoingMessage(b"", key="b", sequence_id=8))
    assert [send.sequence_id for send in sender.sent()] == [7, 8]


def test_a_flush_waits_for_the_whole_round() -> None:
    sender = Sender(spec=SPEC)
    for number in range(4):
        sender.send(keyed(number, 2))
    client, script = sender.script.client, sender.script
    request = client.flush(script.now, sender.handle)
    assert [send.sequence_id for send in sender.sent()] == [2, 3]
    script.feed(sender.link, frame_receipt(2, 9, 0, 2))
    assert not [output for output in script.said() if isinstance(output, RequestDone)]
    script.feed(sender.link, frame_receipt(3, 9, 1, 3))
    assert RequestDone(request, None) in script.said()


def test_after_a_reconnect_the_same_bytes_go_again_in_the_same_order() -> None:
    """INV-P6."""
    sender = Sender(spec=SPEC)
    for number in range(9):
        sender.send(keyed(number))
    before = [(ids(send), bytes(send.payload)) for send in sender.sent()]
    sender.reattach()
    assert [(ids(send), bytes(send.payload)) for send in sender.sent()] == before


def test_a_timeout_fails_every_ticket_once_in_their_order() -> None:
    sender = Sender(spec=ProducerSpec(topic="demo", batching=POLICY, send_timeout=1.0))
    for number in range(9):
        sender.send(keyed(number))
    sender.send(keyed(9))
    request = sender.script.client.flush(sender.script.now, sender.handle)
    sender.send(keyed(10))
    sender.script.advance(1.1)
    said = sender.script.said()
    assert tickets(said[0]) == list(range(9))
    settled = told(*said)
    assert sorted(settled) == list(range(11))
    assert all(isinstance(error, TimedOut) for error in settled.values())
    assert any(isinstance(output, RequestFailed) and output.request == request for output in said)
    assert sender.script.client.memory_held == 0


def test_a_batch_that_cannot_be_sealed_fails_alone() -> None:
    """Rule BATCH-07."""
    sender = Sender(spec=ProducerSpec(topic="demo", compression=CompressionType.ZLIB, batching=POLICY))
    sender.send(OutgoingMessage(b"1", key="a"))
    sender.send(OutgoingMessage(b"2", key="b"))
    sender.send(OutgoingMessage(b"3", key="a"))
    producer = sender.script.client._handles.producers[sender.handle]
    assert isinstance(producer, Producer)
    entry_builder = producer.admission.entry_builder
    entry_builder.encoder = Refusing(entry_builder.encoder)  # type: ignore[assignment]
    sender.script.client.push(sender.script.now, sender.handle)
    said = sender.script.said()
    assert [tickets(output) for output in said] == [[0], [2]]
    assert [send.sequence_id for send in sender.sent()] == [1]
    assert sender.script.client.memory_held == 1


class Refusing:
    """An encoder that cannot make batches."""

    def __init__(self, encoder: Any) -> None:
        self.single = encoder.single

    def batch(self, *_: object) -> bytes:
        raise PulsarError("it cannot be compressed")


def test_over_partitions_tickets_stay_one_row() -> None:
    """Each partition seals a round; the tickets of a batch are consecutive neither there nor for the
    application."""
    world = PartitionedScript(2, batching=BatchingPolicy(max_messages=100, max_delay=0.01, by_key=True))
    world.answer()
    given = [world.send(OutgoingMessage(b"%d" % number, key=f"k{number % 5}")) for number in range(40)]
    assert given == list(range(40))
    world.pass_time(0.02)
    stored = {
        payload: MessageId(100 + partition, 0, partition, 0, 0)
        for partition, payloads in world.stored.items()
        for payload in payloads
    }
    assert len(stored) == 40
    world.confirm(1)
    world.confirm(0)
    settled = told(*world.told())
    assert sorted(settled) == given
    for number in given:
        message_id = settled[number]
        assert isinstance(message_id, MessageId)
        assert message_id.partition == stored[b"%d" % number].partition
        assert (message_id.batch_index, message_id.batch_size) == (number // 5, 8)
    assert [each.pending for each in world.script.client.partition_statistics(world.handle)] == [0, 0]


def test_runs() -> None:
    assert runs([]) == []
    assert runs([3]) == [(3, 1)]
    assert runs([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 1), (7, 2)]
