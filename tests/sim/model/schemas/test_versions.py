"""Brokers register what a strategy allows, and a version keeps its meaning."""

from collections.abc import Callable

import pytest

from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.schemas.definition import COLOURED, FOREIGN, MEASURED, PLAIN, SIZED, Definition
from pulsar_sim.model.schemas.versions import ANY, Versions

TOPIC = "persistent://public/default/t"


class Registry(Versions):
    """One topic, whose versions 0, 1, … are those of the given definitions."""

    def __init__(self, *definitions: Definition, strategy: str = "FULL") -> None:
        super().__init__()
        self.strategy = strategy
        for number, definition in enumerate(definitions):
            self.gets(definition, number)

    def gets(self, definition: Definition, number: int) -> None:
        self.try_out(TOPIC, definition)
        self.returned(TOPIC, number.to_bytes(8, "big"), definition, self.strategy)


def broken(call: Callable[[], None]) -> str:
    with pytest.raises(ViolationError) as caught:
        call()
    return caught.value.rule


def test_a_definition_keeps_its_version() -> None:
    """INV-S6"""
    registry = Registry(PLAIN, COLOURED)
    registry.gets(PLAIN, 0)
    assert broken(lambda: registry.gets(PLAIN, 2)) == "INV-S6"
    assert broken(lambda: registry.gets(SIZED, 1)) == "INV-S6"


def test_a_version_is_confirmed_long_after_it_was_registered() -> None:
    registry = Registry()
    registry.try_out(TOPIC, PLAIN)
    registry.gets(COLOURED, 1)
    registry.gets(PLAIN, 0)


def test_a_new_definition_does_not_get_an_earlier_version() -> None:
    """INV-S6"""
    registry = Registry()
    registry.gets(COLOURED, 1)
    assert broken(lambda: registry.gets(SIZED, 0)) == "INV-S6"


def test_a_deletion_begins_anew_with_other_numbers() -> None:
    """INV-S6"""
    registry = Registry(PLAIN, COLOURED)
    registry.delete(TOPIC, 5)
    assert broken(lambda: registry.gets(PLAIN, 1)) == "INV-S6"
    registry.gets(PLAIN, 3)
    registry.answers(TOPIC, bytes(8), None)


def test_a_broker_that_dies_may_forget_a_deletion() -> None:
    registry = Registry(PLAIN)
    registry.delete(TOPIC, 5)
    registry.may_be_forgotten(TOPIC)
    registry.gets(PLAIN, 0)


def test_a_version_is_answered_with_its_definition() -> None:
    """INV-S6"""
    registry = Registry(PLAIN)
    registry.answers(TOPIC, bytes(8), PLAIN)
    registry.answers(TOPIC, (9).to_bytes(8, "big"), None)
    assert broken(lambda: registry.answers(TOPIC, bytes(8), None)) == "INV-S6"
    assert broken(lambda: registry.answers(TOPIC, bytes(8), COLOURED)) == "INV-S6"


@pytest.mark.parametrize(
    ("strategy", "before", "follows", "allowed"),
    [
        ("FULL", (PLAIN,), COLOURED, True),
        ("FULL", (PLAIN,), MEASURED, False),
        ("BACKWARD", (PLAIN,), MEASURED, False),
        ("FORWARD", (PLAIN,), MEASURED, True),
        ("BACKWARD", (PLAIN, SIZED), MEASURED, True),
        ("BACKWARD_TRANSITIVE", (PLAIN, SIZED), MEASURED, False),
        ("FORWARD_TRANSITIVE", (PLAIN, SIZED), MEASURED, True),
        (ANY, (PLAIN,), FOREIGN, True),
        ("FORWARD", (PLAIN,), FOREIGN, False),
    ],
)
def test_a_definition_follows_as_the_strategy_says(
    strategy: str, before: tuple[Definition, ...], follows: Definition, allowed: bool
) -> None:
    """INV-S7"""
    registry = Registry(*before, strategy=strategy)
    if allowed:
        registry.gets(follows, len(before))
    else:
        assert broken(lambda: registry.gets(follows, len(before))) == "INV-S7"


def test_a_gap_may_hold_a_version_that_only_the_broker_knows() -> None:
    registry = Registry(PLAIN, strategy="BACKWARD")
    registry.gets(MEASURED, 2)


def test_what_fits_is_not_refused() -> None:
    """INV-S7"""
    registry = Registry(PLAIN)
    registry.try_out(TOPIC, COLOURED)
    assert broken(lambda: registry.refused(TOPIC, COLOURED)) == "INV-S7"
    assert broken(lambda: registry.refused(TOPIC, PLAIN)) == "INV-S7"
    registry.try_out(TOPIC, FOREIGN)
    registry.refused(TOPIC, FOREIGN)
    registry.refused(TOPIC, COLOURED)


def test_a_consumer_is_let_in_if_it_reads_something() -> None:
    """INV-S7"""
    registry = Registry(PLAIN)
    registry.lets_in(TOPIC, COLOURED, "FULL")
    registry.lets_in(TOPIC, FOREIGN, ANY)
    assert broken(lambda: registry.lets_in(TOPIC, FOREIGN, "FULL")) == "INV-S7"


def test_a_consumer_is_kept_out_if_it_does_not_read_all() -> None:
    """INV-S7"""
    registry = Registry(PLAIN)
    registry.keeps_out(TOPIC, MEASURED)
    assert broken(lambda: registry.keeps_out(TOPIC, COLOURED)) == "INV-S7"
    registry.delete(TOPIC, 5)
    registry.keeps_out(TOPIC, COLOURED)
