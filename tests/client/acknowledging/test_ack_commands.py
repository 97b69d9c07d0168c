"""The application's acknowledgement commands and their effects."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from pulsar_sansio.model.message_id import MessageId, TopicMessageId
from tests.client.broker_script import SECOND, ConsumerScript

SHARED = SubscriptionType.SHARED


def started(**spec: Any) -> ConsumerScript:
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def test_what_is_no_message() -> None:
    s = started()
    for what in (None, 5, "text", b"bytes", ["text"], [None], [1]):
        with pytest.raises(LocalProtocolError):
            s.acknowledge(what)
        with pytest.raises(LocalProtocolError):
            s.negative_acknowledge(what)
    with pytest.raises(LocalProtocolError):
        s.acknowledge_cumulative([])


@pytest.mark.parametrize(
    "wrong",
    [
        MessageId("1", 2),  # type: ignore[arg-type]
        MessageId(1, 2**70),
        MessageId(1, 2, None),  # type: ignore[arg-type]
        MessageId(1, 2, -1, 0, 2**40),
        MessageId(1, 2, first_chunk="x"),  # type: ignore[arg-type]
    ],
)
def test_an_id_that_no_broker_gives(wrong: MessageId) -> None:
    """The id could not be sent, nor be put in order among others, when its time comes."""
    s = started()
    for what in (wrong, TopicMessageId("t", wrong)):
        for call in (s.acknowledge, s.acknowledge_cumulative, s.negative_acknowledge):
            with pytest.raises(LocalProtocolError, match="whole numbers"):
                call(what)
    with pytest.raises(LocalProtocolError, match="whole numbers"):
        s.acknowledge([MessageId(1, 1), wrong])
    s.close()
    s.expect("CLOSE_CONSUMER")


def test_a_message_of_another_topic() -> None:
    s, other = started(), started(topic="other")
    s.message(0)
    other.message(0)
    mine, foreign = s.receive(), other.receive()
    for call in (s.acknowledge, s.acknowledge_cumulative, s.negative_acknowledge):
        with pytest.raises(LocalProtocolError, match=r"is from .*other"):
            call(foreign)
    with pytest.raises(LocalProtocolError):
        s.acknowledge([mine, foreign])
    s.close()
    s.expect("CLOSE_CONSUMER")  # nothing was acknowledged by the call that raised


def test_an_id_of_another_partition() -> None:
    s = started(topic="t-partition-1")
    with pytest.raises(LocalProtocolError, match="partition"):
        s.acknowledge(MessageId(1, 0, 2))
    s.acknowledge(MessageId(1, 0, 1))


def test_a_message_out_of_a_pickle_is_acknowledged_by_its_id() -> None:
    s = started()
    s.batch(0, 2)
    first, second = s.take()
    s.acknowledge(pickle.loads(pickle.dumps(first)))
    s.acknowledge([pickle.loads(pickle.dumps(second))])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


@pytest.mark.breaks("INV-C4", why="an application may acknowledge any id it has")
def test_a_message_of_another_consumer_of_the_topic() -> None:
    """Any consumer of a shared subscription may acknowledge what another got."""
    s, other = started(subscription_type=SHARED), started(subscription_type=SHARED)
    other.message(5)
    s.acknowledge(other.receive())
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 5, None)]


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.KEY_SHARED])
def test_cumulative_needs_one_consumer(kind: SubscriptionType) -> None:
    s = started(subscription_type=kind)
    s.message(0)
    with pytest.raises(LocalProtocolError, match="cumulative"):
        s.acknowledge_cumulative(s.receive())  # ACK-02


def test_cumulative_inside_of_a_batch() -> None:
    """Rule ACK-20."""
    s = started(acknowledgement_group_time=0.0)
    s.batch(4, 3)
    messages = s.take()
    s.acknowledge_cumulative(messages[0])
    s.acknowledge_cumulative(messages[1])
    s.acknowledge_cumulative(messages[2].message_id)
    acks = s.expect("ACK", "ACK")
    assert [ack.message_ids for ack in acks] == [[(1, 3, None)], [(1, 4, None)]]  # ACK-06


@pytest.mark.breaks("INV-C4", why="the broker delivers another batch in the place of the first")
def test_cumulative_beyond_a_batch_that_has_shrunk() -> None:
    """Found by a broker that lies: hostile rounds, client:910395."""
    s = started(batch_index_acknowledgement=True)
    s.batch(4, 3)
    last = s.take()[2]
    s.batch(4, 2)
    s.acknowledge_cumulative(pickle.loads(pickle.dumps(last)))
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 4, None)]


def test_the_sets_of_a_recorded_consumer() -> None:
    """java-batch-index-ack: 253, 245 and 213 of a batch of 8."""
    s = started(subscription_type=SHARED, batch_index_acknowledgement=True, acknowledgement_group_time=0.0)
    s.batch(0, 8)
    messages = s.take()
    for index in (1, 3, 5):
        s.acknowledge(messages[index])
    acks = s.expect("ACK", "ACK", "ACK")
    assert [ack.message_ids for ack in acks] == [[(1, 0, 253)], [(1, 0, 245)], [(1, 0, 213)]]


def test_the_sets_of_a_recorded_cumulative_consumer() -> None:
    """java-batch-index-ack-cumulative: 240 of a batch of 8."""
    s = started(batch_index_acknowledgement=True)
    s.batch(0, 8)
    s.acknowledge_cumulative(s.take()[3])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert (ack.ack_type, ack.message_ids) == (1, [(1, 0, 240)])


def test_any_mixture_of_messages_and_ids() -> None:
    s = started()
    s.batch(0, 3)
    s.message(1)
    messages = s.take()
    s.acknowledge(message.message_id for message in messages[:2])
    s.acknowledge((messages[2], messages[3].message_id))
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None), (1, 1, None)]


@pytest.mark.parametrize(
    ("indexes", "left"),
    [([0, 2], 0b1010), ([0, 0], 0b1110), ([1, 2], 0b1001), ([2, 1, 0], 0b1000), ([0, 1, 2], 0b1000)],
)
def test_a_list_of_some_messages_of_a_batch(indexes: list[int], left: int) -> None:
    s = started(batch_index_acknowledgement=True)
    s.batch(0, 4)
    messages = s.take()
    s.acknowledge([messages[index] for index in indexes])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, left)]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_batch_in_two_lists(cut: int) -> None:
    s = started()
    s.batch(0, 4)
    messages = s.take()
    s.acknowledge(messages[:cut])
    s.pass_time(SECOND)
    s.expect()
    s.acknowledge(messages[cut:])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


def test_a_list_from_another_consumer_of_the_topic() -> None:
    s, other = started(subscription_type=SHARED), started(subscription_type=SHARED)
    for script in (s, other):
        script.batch(0, 2)
    s.acknowledge(other.take())
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]
    assert all(message.entry.acknowledgement.in_order == 0 for message in other.take())
    other.close()
    other.expect("CLOSE_CONSUMER")


def test_ids_and_messages_in_one_list_are_sent_in_time() -> None:
    s = started()
    s.batch(0, 2)
    s.message(1)
    first, _, single = s.take()
    s.acknowledge([single.message_id, first])
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 1, None)]


def test_one_wrong_id_in_a_list_and_nothing_is_acknowledged() -> None:
    s = started()
    with pytest.raises(LocalProtocolError):
        s.acknowledge([MessageId(1, 0), MessageId(1, 1, -1, 7, 3)])
    with pytest.raises(LocalProtocolError):
        s.negative_acknowledge([MessageId(1, 0), MessageId(1, 1, 5)])
    s.close()
    s.expect("CLOSE_CONSUMER")


def test_nothing_at_all() -> None:
    s = started()
    s.acknowledge([])
    s.negative_acknowledge([])
    s.pass_time(SECOND)
    s.expect()


SIZES = [4, 0, 1, 0, 0, 3]
"""Entry i is a batch of SIZES[i], 0: an entry of one message."""

ALL = [(entry, index) for entry, size in enumerate(SIZES) for index in (range(size) if size else [-1])]


@given(
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from(["each", "list", "ids", "mixed"]),
            st.lists(st.integers(0, len(ALL) - 1), max_size=6) | st.slices(len(ALL)),
        ),
        max_size=8,
    ),
)
def test_however_they_are_grouped_the_same_messages_are_acknowledged(
    index_acknowledgement: bool, calls: list[tuple[str, Any]]
) -> None:
    s = started(
        subscription_type=SHARED,
        batch_index_acknowledgement=index_acknowledgement,
        acknowledgement_group_time=3600.0,
        receiver_queue_size=100,
    )
    for entry, size in enumerate(SIZES):
        if size:
            s.batch(entry, size)
        else:
            s.message(entry)
    messages = dict(zip(ALL, s.take(), strict=True))
    acknowledged: set[tuple[int, int]] = set()
    for how, which in calls:
        places = ALL[which] if isinstance(which, slice) else [ALL[number] for number in which]
        chosen = [messages[place] for place in places]
        acknowledged.update(places)
        if how == "each":
            for message in chosen:
                s.acknowledge(message)
        elif how == "list":
            s.acknowledge(chosen)
        elif how == "ids":
            s.acknowledge([message.message_id for message in chosen])
        else:
            s.acknowledge(m.message_id if number % 2 else m for number, m in enumerate(chosen))
    s.close()
    told = {}
    for name, command in s.frames():
        if name == "ACK":
            told.update({entry: bits for _, entry, bits in command.message_ids})
    for entry, size in enumerate(SIZES):
        left = {index for index in range(size) if (entry, index) not in acknowledged}
        if (size and not left) or (entry, -1) in acknowledged:
            assert told[entry] is None
        elif index_acknowledgement and size and len(left) < size:
            assert told[entry] == sum(1 << index for index in left)
        else:
            assert entry not in told


def test_messages_that_were_taken_together_cannot_be_acknowledged_once_it_is_closing() -> None:
    s = started()
    for entry in range(3):
        s.message(entry)
    messages = s.take_together()
    s.close()
    s.expect("CLOSE_CONSUMER")
    with pytest.raises(ClosedError):
        s.acknowledge(messages)
    s.expect()


def test_the_short_way_says_whether_anything_follows() -> None:
    """The first acknowledgement of a group sets its time, and so does the first one after it was sent."""
    s = started(acknowledgement_group_time=1.0, acknowledgement_group_size=4)
    for entry in range(6):
        s.message(entry)
    messages = s.take()
    acknowledge = s.client.acknowledger(s.consumer)
    assert [acknowledge(message) for message in messages] == [True, False, False, True, True, False]
    (ack,) = s.expect("ACK")
    assert len(ack.message_ids) == 4
