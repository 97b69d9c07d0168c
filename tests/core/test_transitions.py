"""A transition table says what is legal, and nothing else is."""

from enum import Enum, auto

import pytest

from pulsar_sansio.core.transitions import IllegalMove, Transitions


class Off: ...


class On: ...


class Press(Enum):
    UP = auto()
    DOWN = auto()


TABLE = Transitions("lamp", {(Off, Press.UP): On, (On, Press.DOWN): Off})


def test_what_the_table_has_is_allowed() -> None:
    assert TABLE.allows(Off(), Press.UP)
    TABLE.check(Off(), Press.UP, On())
    assert TABLE.states == {Off, On}


@pytest.mark.parametrize(
    ("state", "event", "following"),
    [(Off(), Press.DOWN, Off()), (Off(), Press.UP, Off()), (On(), Press.UP, On())],
)
def test_anything_else_raises(state: object, event: Press, following: object) -> None:
    with pytest.raises(IllegalMove, match=f"lamp: {event.name} in {type(state).__name__}"):
        TABLE.check(state, event, following)
