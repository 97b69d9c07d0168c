"""`Session`: each connection is a conversation of its own, over one memory of the client."""

from pulsar_sansio.conformance import Session, Side
from pulsar_sansio.conformance import commands as c
from tests.conformance.script import command

CONNECT = command(c.CONNECT, client_version="x", protocol_version=19)


def test_connections_are_told_apart() -> None:
    session = Session()
    assert session.feed(1, Side.CLIENT, CONNECT) == []
    assert session.feed(2, Side.CLIENT, CONNECT) == [], "the first frame of another connection"
    (violation,) = session.feed(1, Side.CLIENT, CONNECT)
    assert (violation.connection, violation.side, violation.frame_number) == (1, Side.CLIENT, 1)


def test_a_number_may_be_given_to_another_connection() -> None:
    session = Session()
    session.feed(1, Side.CLIENT, CONNECT)
    session.end(1)
    session.end(1)
    assert session.conversations == {}
    assert session.feed(1, Side.CLIENT, CONNECT) == []


def test_a_conversation_stays_until_its_end() -> None:
    session = Session()
    first = session.conversation(3)
    assert session.conversation(3) is first
    session.end(3)
    assert session.conversation(3) is not first


def test_only_the_chosen_rules_are_checked() -> None:
    session = Session(["CONN-01"])
    session.feed(1, Side.CLIENT, CONNECT)
    assert session.feed(1, Side.CLIENT, CONNECT) == []
