"""Pages of tickets against a dictionary: whatever order they are settled in."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio import MessageId, TimedOut
from pulsar_trio.producing.receipts import MessageIds, Page, Receipt, Settled

FIRST, END = 100, 112


class AnyProducer:
    """A producer with just the attributes that a page uses."""

    topic = "t"

    def __init__(self) -> None:
        self._turn = 64


def page() -> Page:
    return Page(cast(Any, AnyProducer()), FIRST, END)


def receipt_of(subject: Page, ticket: int) -> Receipt:
    receipt = Receipt()
    receipt._page, receipt._ticket = subject, ticket
    return receipt


def ids(first: int, end: int) -> list[MessageId]:
    return [MessageId(0, ticket) for ticket in range(first, end)]


@st.composite
def partitions(draw: st.DrawFn) -> list[tuple[int, int, bool]]:
    """The page cut into ranges, each confirmed or failed, in any order."""
    cuts = sorted({FIRST, END, *draw(st.lists(st.integers(FIRST, END)))})
    parts = [(first, end, draw(st.booleans())) for first, end in pairwise(cuts)]
    return draw(st.permutations(parts))


@given(partitions())
def test_a_page_is_a_dictionary_of_tickets(parts: Sequence[tuple[int, int, bool]]) -> None:
    subject, model = page(), dict[int, MessageId | TimedOut]()
    for number, (first, end, confirmed) in enumerate(parts):
        error = None if confirmed else TimedOut("late")
        base = first - 3
        full = subject.settle(Settled(first, end, base, ids(base, end) if confirmed else (), error))
        model.update({ticket: error or MessageId(0, ticket) for ticket in range(first, end)})
        assert full == (number == len(parts) - 1)
        for ticket in range(FIRST, END):
            receipt = receipt_of(subject, ticket)
            assert receipt.done() == (ticket in model)
            match model.get(ticket):
                case None:
                    with pytest.raises(trio.WouldBlock):
                        receipt.result()
                case TimedOut():
                    with pytest.raises(TimedOut):
                        receipt.result()
                case message_id:
                    assert receipt.result() == message_id
        for start in range(FIRST, END):
            unsettled = subject.unsettled(range(start, END))
            expected = [ticket for ticket in range(start, END) if ticket not in model]
            assert (unsettled in expected) if expected else unsettled is None
    assert subject.prefix == END


@given(partitions(), st.integers(0, 5))
def test_the_rest_of_a_page_fails(parts: Sequence[tuple[int, int, bool]], count: int) -> None:
    subject = page()
    for first, end, _ in parts[:count]:
        subject.settle(Settled(first, end, first, ids(first, end), None))
    subject.fail_rest(TimedOut("all of it"))
    confirmed = {ticket for first, end, _ in parts[:count] for ticket in range(first, end)}
    for ticket in range(FIRST, END):
        receipt = receipt_of(subject, ticket)
        if ticket in confirmed:
            assert receipt.result() == MessageId(0, ticket)
        else:
            with pytest.raises(TimedOut):
                receipt.result()


@given(partitions(), st.integers(FIRST, END), st.integers(FIRST, END))
def test_message_ids_are_a_sequence_over_pages_and_ranges(
    parts: Sequence[tuple[int, int, bool]], start: int, stop: int
) -> None:
    subject = page()
    for first, end, _ in parts:
        subject.settle(Settled(first, end, first - 2, ids(first - 2, end + 2), None))
    expected = ids(start, stop)
    found = MessageIds([*subject.ranges(range(start, stop)), *subject.ranges(range(start, stop))])
    assert len(found) == 2 * len(expected)
    assert list(found) == expected * 2
    assert [found[index] for index in range(-len(found), len(found))] == expected * 4
    assert found[1:-1] == (expected * 2)[1:-1]


@pytest.mark.parametrize("ranges", [[(100, 112)], [(100, 101), (101, 112)], [(105, 112), (100, 105)]])
async def test_every_waiting_task_is_woken_once(ranges: list[tuple[int, int]]) -> None:
    subject = page()
    woken: list[int] = []

    async def wait(ticket: int) -> None:
        assert (await receipt_of(subject, ticket).wait()).entry_id == ticket
        woken.append(ticket)

    async with trio.open_nursery() as nursery:
        for ticket in [*range(FIRST, END), FIRST, END - 1]:
            nursery.start_soon(wait, ticket)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == []
        for first, end in ranges:
            subject.settle(Settled(first, end, first, ids(first, end), None))
            await trio.testing.wait_all_tasks_blocked()
            assert set(range(first, end)) <= set(woken)
    assert sorted(woken) == sorted([*range(FIRST, END), FIRST, END - 1])


async def test_one_error_may_be_raised_many_times() -> None:
    subject = page()
    subject.settle(Settled(FIRST, END, FIRST, (), TimedOut("late")))
    for ticket in (FIRST, FIRST, FIRST + 1):
        with pytest.raises(TimedOut) as raised:
            await receipt_of(subject, ticket).wait()
        assert len(raised.traceback) < 5
