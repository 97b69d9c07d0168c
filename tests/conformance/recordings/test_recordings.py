"""Real clients and a real broker break no rule, however their bytes are cut."""

import pytest

from pulsar_sansio.conformance import Session
from tests.conformance.recordings.recorded import NAMES, judge, pieces


@pytest.mark.parametrize("name", NAMES)
def test_a_real_conversation_breaks_no_rule(name: str) -> None:
    assert judge(pieces(name)) == []


@pytest.mark.parametrize("name", ["java-reader", "java-access-fencing", "cpp-batches", "java-chunking"])
def test_pieces_need_not_be_frames(name: str) -> None:
    bytewise = [
        (connection, side, data[position : position + 1])
        for connection, side, data in pieces(name)
        for position in range(len(data))
    ]
    assert judge(bytewise) == []


def test_all_frames_are_read() -> None:
    """The checker has looked at something: the recordings hold 2,710 frames."""
    frames = 0
    for name in NAMES:
        session = Session()
        judge(pieces(name), session)
        frames += sum(conversation.frames for conversation in session.conversations.values())
    assert len(NAMES) == 70
    assert frames == 2710
