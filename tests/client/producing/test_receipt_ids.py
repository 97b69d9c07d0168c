"""Message ids of receipts, made on access."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.producing.receipt_ids import ReceiptIds
from pulsar_sansio.model.message_id import MessageId


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)), max_size=8),
    st.integers(-1, 2),
)
def test_like_the_list_of_all_ids(entries: list[tuple[int, int, int]], partition: int) -> None:
    """Rule BATCH-12."""
    ids = ReceiptIds(partition)
    expected: list[MessageId] = []
    for ledger_id, entry_id, count in entries:
        ids.add(ledger_id, entry_id, count)
        if count == 1:
            expected.append(MessageId(ledger_id, entry_id, partition))
        else:
            expected += [MessageId(ledger_id, entry_id, partition, index, count) for index in range(count)]
    assert len(ids) == len(expected)
    assert list(ids) == expected
    assert [ids[index] for index in range(len(ids))] == expected
    for start in range(len(ids)):
        for stop in range(start, len(ids) + 1):
            assert ids[start:stop] == expected[start:stop]
    assert ids[::-1] == expected[::-1]
    assert [found.batch_size for found in ids] == [found.batch_size for found in expected]
    for index in (len(ids), -len(ids) - 1):
        with pytest.raises(IndexError):
            ids[index]


def test_it_says_what_it_is() -> None:
    ids = ReceiptIds(-1)
    ids.add(7, 0, 1000)
    assert repr(ids) == "<ReceiptIds 1000 in 1 entries>"
    assert ids[-1] == MessageId(7, 0, -1, 999)
