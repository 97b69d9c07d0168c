"""Templates of the two commands that come with every message: MESSAGE at a consumer, SEND_RECEIPT at a
producer.

Commands of one kind on one connection differ in a number or two. A template has the bytes around these
numbers, and their meaning. A reader cuts the next command at the same places. If the bytes around are equal,
only the numbers are left to decode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

from ..varint import read_varint

LONGEST_COMMAND = 64
"""Bytes of the longest command that has a template: more than any real one has.

A hostile peer may repeat fields to any length, and must not fill a decode cache with that.
"""

LONGEST_NUMBER = 4
"""Bytes of a number that may differ: two for `VALUE_OF_CONTINUED`, two for `VALUE_OF_SMALL`."""

DELIVERY_KEY = 6
"""First bytes of a MESSAGE command by which a decoder finds its template."""

RECEIPT_KEY = 3
"""First bytes of a SEND_RECEIPT by which a decoder finds its template: all before the sequence id."""

PiecesReader = Callable[[bytes, int], tuple[Any, ...]]


def split_number(length: int) -> tuple[int, int]:
    """Split a number of `length` bytes: the bytes of its low part, and those of its high part.

    Decoders look up the value of each part in a table.
    """
    low = 2 if length > 2 else 0
    return low, length - low


def pieces_reader(*lengths: int) -> PiecesReader:
    """Read pieces of these lengths that follow each other: called with data and position, it gives them."""
    return Struct("".join(f"{length}s" for length in lengths)).unpack_from


@dataclass(frozen=True, slots=True)
class DeliveryTemplate:
    """MESSAGE commands of one consumer and one ledger: they differ in the entry's number alone."""

    size: int
    read: PiecesReader
    """Reads: front, two lower bytes of the entry's number if it has more than two, the other bytes, back."""
    front: bytes
    back: bytes
    sizes: tuple[int, int, int]
    """The bytes of front, of the entry's number, and of back."""
    consumer_id: int
    ledger_id: int
    partition: int
    redelivery_count: int
    consumer_epoch: int | None


def delivery_template(
    data: bytes,
    start: int,
    entry: int,
    end: int,
    consumer_id: int,
    ledger_id: int,
    partition: int,
    redelivery_count: int,
    consumer_epoch: int | None,
) -> DeliveryTemplate | None:
    """Learn the template of the command at `data[start:end]`, whose entry's number begins at `entry`.

    Gives None for a command that is too long.
    """
    back = read_varint(data, entry)[1]
    if back - entry > LONGEST_NUMBER or end - start > LONGEST_COMMAND:
        return None
    return DeliveryTemplate(
        end - start,
        pieces_reader(entry - start, *split_number(back - entry), end - back),
        data[start:entry],
        data[back:end],
        (entry - start, back - entry, end - back),
        consumer_id,
        ledger_id,
        partition,
        redelivery_count,
        consumer_epoch,
    )


@dataclass(frozen=True, slots=True)
class ReceiptTemplate:
    """Receipts of one producer from one ledger: they differ in the sequence id and in the entry's number."""

    read: PiecesReader
    """Reads: front, sequence id in two parts, middle, entry in two parts, back."""
    front: bytes
    middle: bytes
    back: bytes
    producer_id: int
    ledger_id: int
    highest_sequence_id: int | None


def receipt_template(
    data: bytes,
    start: int,
    sequence: int,
    entry: int,
    end: int,
    producer_id: int,
    ledger_id: int,
    highest_sequence_id: int | None,
) -> ReceiptTemplate | None:
    """Learn the template of the receipt at `data[start:end]`; its two numbers begin at `sequence` and
    `entry`.

    Gives None for a receipt that is too long, or whose fields
    are not in the order of real brokers.
    """
    middle = read_varint(data, sequence)[1]
    back = read_varint(data, entry)[1]
    if (
        end - start > LONGEST_COMMAND
        or sequence != start + RECEIPT_KEY
        or middle - sequence > LONGEST_NUMBER
        or back - entry > LONGEST_NUMBER
        or middle > entry
    ):
        return None
    return ReceiptTemplate(
        pieces_reader(
            RECEIPT_KEY,
            *split_number(middle - sequence),
            entry - middle,
            *split_number(back - entry),
            end - back,
        ),
        data[start:sequence],
        data[middle:entry],
        data[back:end],
        producer_id,
        ledger_id,
        highest_sequence_id,
    )
