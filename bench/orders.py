"""The values of typed rows: an order, whose Avro is about as large as the payloads of other rows."""

from dataclasses import dataclass


@dataclass
class Line:
    """A line of an order, a record within it."""

    article: str
    count: int
    price: float


@dataclass
class Order:
    """Text, numbers, an optional field, and a list of records."""

    id: str
    customer: str
    express: bool
    total: float
    note: str | None
    lines: list[Line]


LINES = {100: 1, 1000: 25}
"""Lines of an order, by the size of the payload in other rows."""


def order(size: int) -> Order:
    """Return the order that stands for a payload of `size` bytes."""
    lines = [Line(f"article-{number:03}", number, number * 1.5) for number in range(LINES[size])]
    return Order("order-0000017", "customer-0000004", True, 117.25, "leave it at the door", lines)
