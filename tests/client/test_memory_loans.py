"""`MemoryLimit` lends memory to open batches, and calls it back for other producers."""

from pulsar_sansio.client.memory import MemoryLimit


class Borrower:
    """A borrower that counts how often it was asked to return its bytes."""

    def __init__(self, limit: MemoryLimit, size: int) -> None:
        self.limit = limit
        self.unused = limit.lend(self, size)
        self.asked = 0

    def give_back(self) -> None:
        self.asked += 1
        unused, self.unused = self.unused, 0
        self.limit.returned(self, unused)


def test_what_is_lent_and_not_used_is_called_back_for_several_messages() -> None:
    limit = MemoryLimit(100)
    borrower = Borrower(limit, 80)
    assert limit.fitting(1, [bytes(15)]) == 1
    assert borrower.asked == 0
    assert limit.fitting(1, [bytes(30), bytes(50), bytes(30)]) == 2
    assert borrower.unused == 0


def test_a_borrower_that_has_returned_everything_is_not_asked_again() -> None:
    limit = MemoryLimit(100)
    borrower = Borrower(limit, 80)
    borrower.give_back()
    other = Borrower(limit, 80)
    assert limit.take(1, 100, lambda: None)
    assert (borrower.asked, other.asked) == (1, 1)
