"""`PositionCommands`: each command finds its consumer, or refuses without any effect."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import Connect
from pulsar_sansio.model.config import ConsumerSpec, ReaderSpec, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, InvalidConfiguration, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST, MessageId
from tests.client.broker_script import ConsumerScript
from tests.client.commands.unknown_number import refuse_unknown_number
from tests.client.script import Script

COMMANDS: dict[str, Callable[[Client, int, int], Any]] = {
    "checkpoint": lambda client, now, handle: client.checkpoint(handle),
    "seek": lambda client, now, handle: client.seek(now, handle, EARLIEST),
    "last_message_id": lambda client, now, handle: client.last_message_id(now, handle),
    "last_position": lambda client, now, handle: client.last_position(now, handle),
    "has_message_available": lambda client, now, handle: client.has_message_available(now, handle),
}
commands = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())


@commands
def test_a_number_that_was_never_given_is_refused_without_effect(
    command: Callable[[Client, int, int], Any],
) -> None:
    refuse_unknown_number(command, "consumer")


@commands
def test_after_the_client_is_closed_the_consumer_is(command: Callable[[Client, int, int], Any]) -> None:
    script = Script()
    consumer = script.client.subscribe(script.now, ConsumerSpec("demo", "s", SubscriptionType.SHARED))
    script.client.close(script.now)
    script.said()
    with pytest.raises(ClosedError):
        command(script.client, script.now, consumer)


@pytest.mark.parametrize("name", ["seek", "last_message_id", "last_position", "has_message_available"])
def test_a_topic_that_keeps_nothing_has_no_positions(name: str) -> None:
    script = ConsumerScript(topic="non-persistent://public/default/demo")
    with pytest.raises(LocalProtocolError, match=r"non-persistent|not persistent"):
        COMMANDS[name](script.client, script.now, script.consumer)


@pytest.mark.parametrize("target", [None, "latest", 1.5, -1, True, object()])
def test_a_target_that_is_no_position_is_refused(target: object) -> None:
    script = ConsumerScript()
    script.accept()
    script.frames()
    with pytest.raises(LocalProtocolError):
        script.client.seek(script.now, script.consumer, cast(Any, target))
    assert script.frames() == []


def test_each_question_has_an_id_of_its_own() -> None:
    script = ConsumerScript()
    ids = [
        script.client.seek(script.now, script.consumer, MessageId(1, 1)),
        script.client.last_message_id(script.now, script.consumer),
        script.client.has_message_available(script.now, script.consumer),
    ]
    assert ids == [script.consumer + 1, script.consumer + 2, script.consumer + 3]


def test_a_reader_gets_a_subscription_of_its_own() -> None:
    script = Script()
    names = set()
    for _ in range(2):
        reader = script.client.open_reader(script.now, ReaderSpec("demo", EARLIEST))
        machine: Any = script.client._handles.consumers[reader]
        names.add(machine.spec.subscription)
        assert not machine.spec.durable
    assert len(names) == 2
    assert all(name.startswith("reader-") for name in names)
    assert isinstance(script.said()[0], Connect)


@pytest.mark.parametrize("spec", [None, "demo", ConsumerSpec("demo", "s", SubscriptionType.SHARED)])
def test_anything_but_a_reader_spec_is_refused(spec: object) -> None:
    script = Script()
    with pytest.raises(InvalidConfiguration, match=f"a ReaderSpec, not {type(spec).__name__}"):
        script.client.open_reader(script.now, cast(Any, spec))
    assert script.said() == []
