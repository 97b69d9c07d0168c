"""A violation as text: it names the rule, the side, the frame, and the connection where there are several."""

from pulsar_sansio.conformance import Side, Violation


def test_sides_are_each_others_other() -> None:
    assert (Side.CLIENT.other, Side.BROKER.other) == (Side.BROKER, Side.CLIENT)


def test_a_violation_as_text() -> None:
    one = Violation("INV-P6", Side.CLIENT, 7, "sequence id 3 after 5")
    assert str(one) == "INV-P6 broken by the client (frame 7): sequence id 3 after 5"
    other = one._replace(side=Side.BROKER, connection=2)
    assert str(other) == "INV-P6 broken by the broker (connection 2, frame 7): sequence id 3 after 5"
