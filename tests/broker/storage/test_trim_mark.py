"""`TrimMark`, compared with the positions of all cursors."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.storage.trim_mark import NEVER, TrimMark

OFFSETS = st.integers(-1, 6)


def test_the_last_cursor_that_reaches_the_mark_says_so() -> None:
    mark = TrimMark()
    mark.place(5, [-1, 3, 5])
    assert not mark.cursor_moved(-1, 5)
    assert not mark.cursor_moved(3, 4)
    assert mark.cursor_moved(4, 5)
    assert not mark.cursor_moved(5, 9)


def test_a_cursor_that_moves_back_is_waited_for_again() -> None:
    mark = TrimMark()
    mark.place(5, [5, 7])
    assert not mark.cursor_moved(7, 2)
    assert not mark.cursor_moved(5, 6)
    assert mark.cursor_moved(2, 5)


def test_a_new_cursor_is_waited_for_and_a_deleted_one_is_not() -> None:
    mark = TrimMark()
    mark.place(5, [3])
    mark.cursor_added(0)
    mark.cursor_added(5)
    assert not mark.cursor_moved(3, 8)
    assert not mark.cursor_deleted(5)
    assert mark.cursor_deleted(0)


def test_one_ledger_is_never_removed() -> None:
    mark = TrimMark()
    mark.place(NEVER, [0])
    assert not mark.cursor_moved(0, 2**62)


@given(
    st.lists(OFFSETS, max_size=3), OFFSETS, st.lists(st.tuples(st.sampled_from("amd"), OFFSETS), max_size=12)
)
def test_it_is_due_exactly_when_the_last_cursor_passes_the_mark(
    cursors: list[int], position: int, steps: list[tuple[str, int]]
) -> None:
    mark = TrimMark()
    mark.place(position, cursors)
    for step, offset in steps:
        waited = any(each < position for each in cursors)
        if step == "a":
            mark.cursor_added(offset)
            cursors.append(offset)
            due = False
        elif not cursors:
            continue
        else:
            before = cursors.pop(0)
            if step == "m":
                due = mark.cursor_moved(before, offset)
                cursors.append(offset)
            else:
                due = mark.cursor_deleted(before)
        assert due == (waited and step != "a" and all(each >= position for each in cursors))
