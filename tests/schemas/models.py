"""Models that the tests of schemas share."""

from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal
from uuid import UUID

from pulsar_sansio.schemas import AvroType, Float32, Int32

Money = Annotated[Decimal, AvroType({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})]


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Line:
    item: str
    amount: Int32 = 1


@dataclass
class Note:
    text: str


@dataclass
class Node:
    value: int
    next: "Node | None" = None


@dataclass
class Order:
    """One field of every kind."""

    id: str
    at: datetime
    day: date
    clock: time
    key: UUID
    price: Money
    color: Color
    rate: Float32
    paid: bool
    photo: bytes
    lines: list[Line]
    pair: tuple[int, ...]
    weights: dict[str, float]
    extra: Line | Note | None
    kind: Literal["web", "shop"] = "web"
    comment: str | None = None
    tags: list[str] = field(default_factory=list)
    second: Color = Color.BLUE
    chain: Node | None = None
