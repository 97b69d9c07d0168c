"""Recordings of real peers, spoilt in one place each: the checker names the rule and the side."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from pulsar_sansio.conformance import Session, Side
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import FrameDecoder
from tests.conformance.recordings.recorded import NAMES, Piece, frames, judge

SPOILT = 5
"""Places spoilt in one recording, each by itself; the first ones."""

Mutation = Callable[[tuple[Piece, ...]], Iterator[tuple[list[Piece], Side]]]


def kind_of(piece: Piece) -> int:
    decoded = FrameDecoder().decode(piece[2], 0, 1 << 30)
    assert decoded is not None
    return decoded[0]


def repeated(*kinds: int, side: Side) -> Mutation:
    """Each frame of these kinds comes twice, where that side sent it."""

    def mutate(conversation: tuple[Piece, ...]) -> Iterator[tuple[list[Piece], Side]]:
        for index, piece in enumerate(conversation):
            if piece[1] is side and kind_of(piece) in kinds:
                yield [*conversation[: index + 1], piece], side

    return mutate


def left_out(kind: int, before: int, side: Side) -> Mutation:
    """Every frame of one kind is left out, and the first one of another kind ends the conversation."""

    def mutate(conversation: tuple[Piece, ...]) -> Iterator[tuple[list[Piece], Side]]:
        kept = [piece for piece in conversation if kind_of(piece) != kind]
        for index, piece in enumerate(kept):
            if kind_of(piece) == before:
                if len(kept) < len(conversation):
                    yield kept[: index + 1], side
                return

    return mutate


def damaged(*kinds: int) -> Mutation:
    """The last byte of each frame of these kinds is another."""

    def mutate(conversation: tuple[Piece, ...]) -> Iterator[tuple[list[Piece], Side]]:
        for index, (connection, side, data) in enumerate(conversation):
            if kind_of((connection, side, data)) in kinds:
                spoilt = data[:-1] + bytes([data[-1] ^ 1])
                yield [*conversation[:index], (connection, side, spoilt)], side

    return mutate


_PLAIN_ANSWERS = c.ANSWER_KINDS - {c.PRODUCER_SUCCESS}

MUTATIONS: dict[str, tuple[str, Mutation]] = {
    # what: (rule, mutation)
    "answers come twice": ("CONN-18", repeated(*_PLAIN_ANSWERS, side=Side.BROKER)),
    "CONNECTED comes twice": ("CONN-04", repeated(c.CONNECTED, side=Side.BROKER)),
    "the client closes twice": ("CHECK-62", repeated(c.CLOSE_CONSUMER, side=Side.CLIENT)),
    "the broker closes twice": ("CHECK-60", repeated(c.CLOSE_CONSUMER, side=Side.BROKER)),
    "payloads are damaged": ("GAP-02", damaged(c.SEND, c.MESSAGE)),
    "there is no CONNECT": ("CONN-01", left_out(c.CONNECT, c.PARTITIONED_METADATA, Side.CLIENT)),
    "there is no CONNECTED": ("CHECK-01", left_out(c.CONNECTED, c.PARTITIONED_METADATA, Side.CLIENT)),
    "there is no PRODUCER_SUCCESS": ("INV-P10", left_out(c.PRODUCER_SUCCESS, c.SEND, Side.CLIENT)),
    "there is no PRODUCER": ("CONN-07", left_out(c.PRODUCER, c.PRODUCER_SUCCESS, Side.BROKER)),
    "there is no SUBSCRIBE": ("CHECK-57", left_out(c.SUBSCRIBE, c.FLOW, Side.CLIENT)),
    "there is no FLOW": ("BROKER-30", left_out(c.FLOW, c.MESSAGE, Side.BROKER)),
    "there is no SEND": ("CHECK-34", left_out(c.SEND, c.SEND_RECEIPT, Side.BROKER)),
    "no coordinator knows the client": (
        "CHECK-91",
        left_out(c.TC_CLIENT_CONNECT_RESPONSE, c.NEW_TXN, Side.CLIENT),
    ),
    "there is no NEW_TXN": (
        "CHECK-75",
        left_out(c.NEW_TXN_RESPONSE, c.ADD_PARTITION_TO_TXN, Side.CLIENT),
    ),
    "there is no MESSAGE": ("INV-C4", left_out(c.MESSAGE, c.ACK, Side.CLIENT)),
}


def test_receipts_that_come_twice() -> None:
    """The chunks of a message share their sequence id; there the position tells."""
    spoilt = False
    for name in NAMES:
        for conversation, side in islice(repeated(c.SEND_RECEIPT, side=Side.BROKER)(frames(name)), SPOILT):
            found = judge(conversation, Session(["CHECK-34", "INV-P9"]))
            assert {violation.side for violation in found} == {side}, name
            spoilt = True
    assert spoilt


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_recording_spoilt_in_one_place(what: str) -> None:
    rule_id, mutation = MUTATIONS[what]
    spoilt = False
    for name in NAMES:
        for conversation, side in islice(mutation(frames(name)), SPOILT):
            found = judge(conversation, Session([rule_id]))
            assert {violation.rule_id for violation in found} == {rule_id}, name
            assert found[-1].side is side
            spoilt = True
    assert spoilt, "no recording can be spoilt in this way"
