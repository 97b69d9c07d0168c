"""`MessageId`: order, equality and text."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId, is_message_id

numbers = st.integers(-1, 2**63 - 1)
ids = st.builds(MessageId, numbers, numbers, st.integers(-1, 9), st.integers(-1, 9), st.integers(0, 9))


@given(ids, ids)
def test_order_is_by_ledger_entry_partition_and_batch_index(a: MessageId, b: MessageId) -> None:
    key_a, key_b = tuple(a)[:4], tuple(b)[:4]
    assert (a < b, a <= b, a > b, a >= b) == (key_a < key_b, key_a <= key_b, key_a > key_b, key_a >= key_b)
    assert (a == b) == (key_a == key_b) != (a != b)
    if a == b:
        assert hash(a) == hash(b)


def test_equality_ignores_the_batch_size() -> None:
    assert MessageId(1, 2, -1, 0, 10) == MessageId(1, 2, -1, 0)
    assert len({MessageId(1, 2, -1, 0, 10), MessageId(1, 2, -1, 0)}) == 1


def test_an_id_is_no_plain_tuple() -> None:
    assert MessageId(1, 2) != (1, 2, -1, -1, 0)


def test_text_is_ledger_entry_partition_and_index_in_a_batch() -> None:
    assert str(MessageId(12, 3)) == "12:3:-1"
    assert str(MessageId(12, 3, 5, 2, 10)) == "12:3:5:2"


def test_entry_drops_the_batch_part() -> None:
    assert MessageId(12, 3, 5, 2, 10).entry == MessageId(12, 3, 5)


@given(ids)
def test_every_id_lies_between_earliest_and_latest(message_id: MessageId) -> None:
    assert EARLIEST <= message_id.entry <= LATEST or message_id.partition >= 0


@given(ids)
def test_pickle_keeps_everything(message_id: MessageId) -> None:
    assert tuple(pickle.loads(pickle.dumps(message_id))) == tuple(message_id)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        (1, 2),
        MessageId("1", 2),  # type: ignore[arg-type]
        MessageId(1, None),  # type: ignore[arg-type]
        MessageId(1.0, 2),  # type: ignore[arg-type]
        MessageId(True, 2),
        MessageId(2**63, 2),
        MessageId(1, 2, -1, "0", 2),  # type: ignore[arg-type]
        MessageId(1, 2, -1, 0, -1),
        MessageId(1, 2, -1, 0, 2**40),
        MessageId(1, 2, first_chunk="12"),  # type: ignore[arg-type]
        MessageId(1, 2, first_chunk=(1, None)),  # type: ignore[arg-type]
    ],
)
def test_what_no_broker_gives_is_no_message_id(wrong: object) -> None:
    assert not is_message_id(wrong)


@given(ids)
def test_what_a_broker_gives_is_one(message_id: MessageId) -> None:
    assert is_message_id(message_id)
    assert is_message_id(message_id._replace(first_chunk=(1, 2)))
