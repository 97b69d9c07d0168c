"""The cursor, compared with the set of integers that it represents."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker.storage.cursor import Cursor

MESSAGES = 5
"""The number of messages in each batch of the model."""

actions = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.integers(0, 40)),
        st.tuples(st.just("up to"), st.integers(-1, 40)),
        st.tuples(st.just("partly"), st.integers(0, 40), st.integers(0, 2**7 - 1)),
        st.tuples(st.just("reset"), st.integers(-1, 40)),
    ),
    max_size=60,
)


class Model:
    """The unacknowledged messages of each entry, as a set of bits."""

    def __init__(self) -> None:
        self.open = {offset: set(range(MESSAGES)) for offset in range(60)}

    def acknowledged(self, offset: int) -> bool:
        return not self.open.get(offset, set())


@given(actions)
@settings(max_examples=150)
def test_a_cursor_is_a_set_of_acknowledged_messages(steps: list[tuple[object, ...]]) -> None:
    cursor, model = Cursor(-1), Model()
    for step in steps:
        match step:
            case ("one", int(offset)):
                news = not model.acknowledged(offset)
                assert cursor.acknowledge(offset) == news
                model.open[offset] = set()
            case ("up to", int(offset)):
                cursor.acknowledge_up_to(offset)
                for each in range(offset + 1):
                    model.open[each] = set()
            case ("partly", int(offset), int(bits)):
                before = len(model.open[offset])
                model.open[offset] &= {bit for bit in range(7) if bits >> bit & 1}
                fresh = cursor.acknowledge_partly(offset, bits, MESSAGES)
                assert fresh == before - len(model.open[offset])
            case ("reset", int(mark)):
                cursor.reset(mark)
                model = Model()
                for each in range(mark + 1):
                    model.open[each] = set()
        _compare(cursor, model)


def _compare(cursor: Cursor, model: Model) -> None:
    for offset in range(60):
        assert cursor.acknowledged(offset) == model.acknowledged(offset), offset
        if not model.acknowledged(offset):
            bits = cursor.partly.get(offset, 2**MESSAGES - 1)
            assert {bit for bit in range(MESSAGES) if bits >> bit & 1} == model.open[offset]
    first_open = next(offset for offset in range(60) if not model.acknowledged(offset))
    assert cursor.mark_delete == first_open - 1, "mark-delete is as far as it can be"
    assert cursor.next_unacknowledged(0) == first_open
    assert cursor.backlog(60) == sum(not model.acknowledged(offset) for offset in range(60))
    assert all(offset > cursor.mark_delete for offset in cursor.partly), "nothing is kept below mark-delete"
    assert not any(cursor.acknowledged(offset) for offset in cursor.partly), "nor of what is acknowledged"


def test_given_sets_may_hold_bits_cleared_long_ago() -> None:
    """Seen: java-batch-index-ack. Of entry 213 only some bits remain; the client's sets start again from all
    bits."""
    cursor = Cursor(-1)
    cursor.acknowledge_partly(0, 213, 8)
    for given_set in (254, 250, 234, 170):
        cursor.acknowledge_partly(0, given_set, 8)
    assert not cursor.acknowledged(0)
    cursor.acknowledge_partly(0, 42, 8)
    assert cursor.acknowledged(0), "the last set still has bits, the state has none"


def test_the_mark_moves_over_the_next_range_whatever_comes_behind_it() -> None:
    cursor = Cursor(-1)
    for offset in (1, 2, 4, 6):
        cursor.acknowledge(offset)
    cursor.acknowledge(0)
    assert (cursor.mark_delete, list(cursor.ranges)) == (2, [(4, 4), (6, 6)])
    cursor.acknowledge_up_to(3)
    assert (cursor.mark_delete, list(cursor.ranges)) == (4, [(6, 6)])
