"""Rules: what they apply to, when they fire, and which of them cannot be."""

from typing import Any

import pytest

from pulsar_sansio import FaultRule, InvalidConfiguration, ServerError
from pulsar_sansio.broker.broker import HANDLERS, REFUSALS
from pulsar_sansio.broker.faults.commands import FROM_BROKER, FROM_CLIENT, NOT_REFUSABLE
from pulsar_sansio.broker.faults.fault_rule import MAX_COUNTED
from pulsar_sansio.core.rng import Rng
from pulsar_sansio.wire import proto
from tests.broker.faults.conftest import AddRule
from tests.broker.peer import World

TYPES = dict(proto.BaseCommand.Type.items())

BETWEEN_BROKERS = {"END_TXN_ON_PARTITION", "END_TXN_ON_SUBSCRIPTION"}


def test_every_command_that_the_broker_handles_can_be_named() -> None:
    names = {name for name, number in TYPES.items() if number in HANDLERS}
    assert names - BETWEEN_BROKERS == set(FROM_CLIENT)


def test_every_command_of_clients_has_a_refusal_or_is_known_to_have_none() -> None:
    refused = {name for name, number in TYPES.items() if number in REFUSALS}
    assert refused == set(FROM_CLIENT) - set(NOT_REFUSABLE)


def test_every_other_command_is_one_of_brokers() -> None:
    others = {each for each in TYPES if each not in FROM_CLIENT} - BETWEEN_BROKERS
    answers = {"END_TXN_ON_PARTITION_RESPONSE", "END_TXN_ON_SUBSCRIPTION_RESPONSE"}
    assert others - answers == set(FROM_BROKER) - set(FROM_CLIENT)


@pytest.mark.parametrize(
    ("command", "fault", "options", "words"),
    [
        ("SENT", "drop", {}, "command: * or one of"),
        (["SEND"], "drop", {}, "command: * or one of"),
        ("SEND", "break", {}, "fault: one of"),
        ("SEND", "error", {}, "code: one of"),
        ("SEND", "error", {"code": "Nonsense"}, "code: one of"),
        ("SEND", "drop", {"code": "PersistenceError"}, "code: the fault drop has none"),
        ("SEND_RECEIPT", "error", {"code": "PersistenceError"}, "cannot answer SEND_RECEIPT"),
        ("FLOW", "error", {"code": "PersistenceError"}, "cannot answer FLOW"),
        ("*", "error", {"code": "PersistenceError"}, "cannot answer *"),
        ("SEND", "delay", {}, "seconds:"),
        ("SEND", "delay", {"seconds": 0}, "seconds:"),
        ("SEND", "delay", {"seconds": float("nan")}, "seconds:"),
        ("SEND", "delay", {"seconds": 86_401}, "seconds:"),
        ("SEND", "drop", {"seconds": 1.0}, "seconds: the fault drop has none"),
        ("SEND", "half frame", {}, "half frame"),
        ("*", "half frame", {}, "half frame"),
        ("ACK", "corrupt", {}, "corrupt"),
        ("CONNECT", "duplicate", {}, "duplicate"),
        ("PING", "drop", {}, "sent_by: 'client' or 'broker'"),
        ("SEND", "drop", {"sent_by": "broker"}, "sent_by: SEND is a command of the client"),
        ("SEND", "drop", {"sent_by": "me"}, "sent_by"),
        ("CONNECT", "drop", {"topic": "t"}, "topic: CONNECT names no topic"),
        ("SEND", "drop", {"topic": ""}, "topic"),
        ("SEND", "drop", {"topic": "a/b*"}, "topic"),
        ("SEND", "drop", {"after": -1}, "after"),
        ("SEND", "drop", {"times": 0}, "times"),
        ("SEND", "drop", {"times": True}, "times"),
        ("SEND", "drop", {"probability": 0}, "probability"),
        ("SEND", "drop", {"probability": 1.1}, "probability"),
        ("SEND", "error", {"code": "PersistenceError", "message": 5}, "message"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(
    add: AddRule, world: World, command: str, fault: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=words.replace("*", r"\*")):
        add(command, fault, **options)
    assert world.broker.faults.rules == ()


def decisions(add: AddRule, world: World, count: int, **options: Any) -> str:
    add("SEND", "drop", **options)
    decide = world.broker.faults.decide
    return "".join("x" if decide("client", "SEND", ()) else "." for _ in range(count))


def test_after_and_times(add: AddRule, world: World) -> None:
    assert decisions(add, world, 8, after=2, times=3) == "..xxx..."


def test_a_probability_is_drawn_from_the_seed(add: AddRule, world: World) -> None:
    found = decisions(add, world, 400, probability=0.25)
    assert 60 < found.count("x") < 140
    again = World()
    again.broker.faults.add(0, "SEND", "drop", probability=0.25)
    assert found == "".join(
        "x" if again.broker.faults.decide("client", "SEND", ()) else "." for _ in range(400)
    )


def test_the_first_rule_that_fires_decides_and_counting_rules_see_all(add: AddRule, world: World) -> None:
    first = add("SEND", "drop", times=1)
    second = add("SEND", "close")
    counting = add("*")
    decide = world.broker.faults.decide
    assert [decide("client", "SEND", ("t",)) for _ in range(2)] == [first, second]
    assert decide("broker", "MESSAGE", ("t",)) is None
    assert (first.fired, second.fired, counting.fired) == (1, 1, 3)
    assert counting.counts == {"SEND": {"t": 2}, "MESSAGE": {"t": 1}}


def test_a_code_may_be_a_server_error(add: AddRule) -> None:
    assert add("SEND", "error", code=ServerError.PersistenceError).code is ServerError.PersistenceError


def test_a_rule_of_another_broker_cannot_be_removed(add: AddRule, world: World) -> None:
    rule = add("SEND", "drop")
    with pytest.raises(InvalidConfiguration, match="one of this broker's"):
        World().broker.faults.remove(0, rule)
    world.broker.faults.remove(0, rule)
    assert world.broker.faults.rules == ()


def test_topics_beyond_the_limit_are_counted_together() -> None:
    rule = FaultRule(
        1,
        "LOOKUP",
        "count",
        topic="*",
        code=None,
        message="",
        seconds=None,
        sent_by=None,
        after=0,
        times=None,
        probability=1.0,
    )
    for number in range(MAX_COUNTED + 50):
        assert rule.fires(Rng(1))
        rule.count("LOOKUP", (f"t{number}",))
    assert len(rule.counts["LOOKUP"]) <= MAX_COUNTED + 1
    assert rule.counts["LOOKUP"]["*"] == 50
    assert sum(rule.counts["LOOKUP"].values()) == rule.fired == MAX_COUNTED + 50
