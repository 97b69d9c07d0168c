"""The outcome of a scenario sees what it is there for: lost, reordered and repeated messages."""

import pytest
import trio
import trio.testing

from tests.cluster.workload import Book, Outcome

DELIVERIES = [
    # delivered, confirmed up to, lost, out of order, again
    ("0 1 2", 2, 0, 0, 0),
    ("0 1 2", 4, 2, 0, 0),  # 3 and 4 never came
    ("0 2", 2, 1, 0, 0),  # 1 never came
    ("0 2 1", 2, 0, 1, 0),
    ("0 2 1 1", 2, 0, 1, 1),
    ("0 1 2 1 2 3", 3, 0, 0, 2),  # redelivered from 1 on
    ("0 3", 1, 1, 0, 0),  # 2 was never confirmed
    ("", 0, 1, 0, 0),
]


@pytest.mark.parametrize(("delivered", "confirmed", "lost", "reordered", "again"), DELIVERIES)
async def test_a_book(delivered: str, confirmed: int, lost: int, reordered: int, again: int) -> None:
    book = Book("failover")
    for number in delivered.split():
        book.note(f"key:{number}".encode())
    assert (book.lacks({"key": confirmed}), book.reordered, book.again) == (lost, reordered, again)


async def test_keys_have_orders_of_their_own() -> None:
    book = Book("key_shared")
    for value in (b"a:1", b"b:0", b"a:2", b"b:1"):
        book.note(value)
    assert book.reordered == 0
    assert book.lacks({"a": 2, "b": 1}) == 1


@pytest.mark.parametrize(
    ("confirmed", "lost", "reordered", "holds"),
    [(10, 0, 0, True), (0, 0, 0, False), (10, 1, 0, False), (10, 0, 1, False)],
)
def test_what_holds(confirmed: int, lost: int, reordered: int, holds: bool) -> None:
    outcome = Outcome(confirmed, {"shared": lost}, {"failover": reordered}, {})
    assert outcome.holds is holds


async def test_pauses_are_those_of_new_messages_since_the_fault_began(
    autojump_clock: trio.testing.MockClock,
) -> None:
    book = Book("shared")
    for value, after in ((b"a:0", 1.0), (b"b:0", 7.0), (b"a:1", 1.0)):
        await trio.sleep(after)
        book.note(value)
    assert (book.longest, book.longest_of_a_key) == (7.0, 8.0)
    book.begin()
    for value, after in ((b"b:0", 2.0), (b"b:1", 1.0), (b"a:2", 1.0)):
        await trio.sleep(after)
        book.note(value)
    assert book.again == 1
    assert (book.longest, book.longest_of_a_key) == (3.0, 4.0)
