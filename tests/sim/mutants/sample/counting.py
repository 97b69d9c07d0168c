"""Code to mutate: each statement is there for one fate."""

LIMIT = 10


class Sum:
    """Adds numbers up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self.refused = 0

    def add(self, number: int) -> bool:
        """Add a number; return whether there was room."""
        if self.total + number > self.limit:
            self.refused += 1
            return False
        self.total += number
        return True

    def halve(self) -> None:
        while self.total > self.limit // 2:
            self.total -= 1

    def never(self) -> None:
        self.total = 0


class Limitless(Sum):
    def __init__(self) -> None:
        super().__init__(1 << 62)
