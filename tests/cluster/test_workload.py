"""The verdict of a scenario sees what it is there for: lost, reordered and repeated messages."""

import pytest

from tests.cluster.workload import Book, Verdict

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
    verdict = Verdict(confirmed, {"shared": lost}, {"failover": reordered}, {"shared": 3}, 1.0)
    assert verdict.holds is holds
