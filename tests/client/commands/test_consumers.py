"""`ConsumerCommands`: each command finds its consumer, or refuses without any effect."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import Deliverable, RequestDone
from pulsar_sansio.model.config import (
    BatchReceivePolicy,
    ConsumerSpec,
    DeadLetterPolicy,
    ProducerSpec,
    SubscriptionType,
)
from pulsar_sansio.model.errors import ClosedError, InvalidConfiguration, LocalProtocolError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.commands.unknown_number import refuse_unknown_number
from tests.client.letter_topics.letters_script import LettersScript
from tests.client.script import WALL, Script

ID = MessageId(1, 2)
MESSAGE = cast(Message, None)
SPEC = ConsumerSpec("demo", "s", SubscriptionType.SHARED)

COMMANDS: dict[str, Callable[[Client, int, int], Any]] = {
    "receive": lambda client, now, handle: client.receive(now, handle),
    "receiver": lambda client, now, handle: client.receiver(handle),
    "acknowledger": lambda client, now, handle: client.acknowledger(handle),
    "set_processing": lambda client, now, handle: client.set_processing(handle, cast(Any, None)),
    "take": lambda client, now, handle: client.take(now, handle, 1),
    "batch_receive": lambda client, now, handle: client.batch_receive(now, handle),
    "available": lambda client, now, handle: client.available(handle),
    "consumer_statistics": lambda client, now, handle: client.consumer_statistics(handle),
    "subscribed_topics": lambda client, now, handle: client.subscribed_topics(handle),
    "arrival_counters": lambda client, now, handle: client.arrival_counters(handle),
    "acknowledge": lambda client, now, handle: client.acknowledge(now, handle, ID),
    "acknowledge_cumulative": lambda client, now, handle: client.acknowledge_cumulative(now, handle, ID),
    "negative_acknowledge": lambda client, now, handle: client.negative_acknowledge(now, handle, ID),
    "pause": lambda client, now, handle: client.pause(now, handle),
    "resume": lambda client, now, handle: client.resume(now, handle),
    "reconsume_later": lambda client, now, handle: client.reconsume_later(now, handle, MESSAGE, 1.0, WALL),
    "dead_letter": lambda client, now, handle: client.dead_letter(now, handle, MESSAGE, WALL),
    "redeliver_unacknowledged": lambda client, now, handle: client.redeliver_unacknowledged(now, handle),
    "flush_acknowledgements": lambda client, now, handle: client.flush_acknowledgements(now, handle),
    "unsubscribe": lambda client, now, handle: client.unsubscribe(now, handle),
}
commands = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())


@commands
def test_a_number_that_was_never_given_is_refused_without_effect(
    command: Callable[[Client, int, int], Any],
) -> None:
    refuse_unknown_number(command, "consumer")


@commands
def test_a_producer_is_no_consumer(command: Callable[[Client, int, int], Any]) -> None:
    script = Script()
    producer = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    with pytest.raises(LocalProtocolError):
        command(script.client, script.now, producer)


@commands
def test_a_consumer_that_has_ended_is_closed(command: Callable[[Client, int, int], Any]) -> None:
    script = ConsumerScript()
    script.accept()
    script.message(0)
    script.receive()
    script.client.close(script.now, script.consumer)
    (close,) = [command for name, command in script.frames() if name == "CLOSE_CONSUMER"]
    script.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    if command is COMMANDS["consumer_statistics"]:
        assert command(script.client, script.now, script.consumer).messages_received == 1
        return
    with pytest.raises(ClosedError, match=f"consumer {script.consumer} is closed"):
        command(script.client, script.now, script.consumer)


class TestWhatIsLeft:
    """`Deliverable` is emitted again while messages are left."""

    def script(self, messages: int = 3) -> ConsumerScript:
        script = ConsumerScript()
        script.accept()
        for entry in range(messages):
            script.message(entry)
        script.outputs()
        return script

    def test_after_a_receive(self) -> None:
        script = self.script(2)
        script.receive()
        assert script.outputs() == [Deliverable(script.consumer)]
        script.receive()
        assert script.outputs() == []

    def test_after_a_take_of_some_and_once_for_many(self) -> None:
        script = self.script()
        for _ in range(2):
            script.client.take(script.now, script.consumer, 1)
        assert script.outputs() == [Deliverable(script.consumer)]
        script.client.take(script.now, script.consumer, 0)
        assert script.outputs() == []

    def test_not_after_a_receive_of_the_queue_itself(self) -> None:
        script = self.script()
        assert script.client.receiver(script.consumer).receive() is not None
        assert script.outputs() == []


@pytest.mark.parametrize("limit", [-1, True, 1.0, None, "1"])
def test_a_wrong_limit_is_refused(limit: object) -> None:
    script = ConsumerScript()
    with pytest.raises(LocalProtocolError, match="take: a whole number of messages, not"):
        script.client.take(script.now, script.consumer, cast(Any, limit))


@pytest.mark.parametrize("force", [None, 1, "yes"])
def test_force_is_true_or_false(force: object) -> None:
    script = ConsumerScript()
    with pytest.raises(LocalProtocolError, match="unsubscribe: force is True or False, not"):
        script.client.unsubscribe(script.now, script.consumer, cast(Any, force))


@pytest.mark.parametrize("spec", [None, "demo", ProducerSpec(topic="demo")])
def test_anything_but_a_consumer_spec_is_refused(spec: object) -> None:
    script = Script()
    with pytest.raises(InvalidConfiguration, match=f"a ConsumerSpec, not {type(spec).__name__}"):
        script.client.subscribe(script.now, cast(Any, spec))
    assert script.said() == []


@pytest.mark.parametrize(
    "options", [{"dead_letter": DeadLetterPolicy(2)}, {"retry": True}], ids=["dead_letter", "retry"]
)
def test_copies_need_the_wall_time(options: dict[str, Any]) -> None:
    """The publish time of a copy is the moment at which the consumer makes it."""
    script = Script()
    spec = ConsumerSpec("demo", "s", SubscriptionType.SHARED, **options)
    with pytest.raises(InvalidConfiguration, match="only with Client"):
        script.client.subscribe(script.now, spec)
    script.client.set_time(script.now, WALL)
    assert script.client.subscribe(script.now, spec) == 1


def test_a_consumer_without_a_policy_has_no_batch_receive() -> None:
    script = ConsumerScript()
    with pytest.raises(LocalProtocolError, match="has no batch_receive policy"):
        script.client.batch_receive(script.now, script.consumer)


def test_a_closed_client_subscribes_no_more() -> None:
    script = Script()
    script.client.close(script.now)
    with pytest.raises(ClosedError, match="the client is closed"):
        script.client.subscribe(script.now, SPEC)


class TestEachCommandReachesItsConsumer:
    """The command's moment is the client's from then on."""

    def script(self, **spec: Any) -> ConsumerScript:
        spec.setdefault("subscription_type", SubscriptionType.EXCLUSIVE)
        script = ConsumerScript(acknowledgement_group_time=0.0, negative_acknowledgement_delay=0.0, **spec)
        script.accept()
        script.frames()
        return script

    def test_a_cumulative_acknowledgement(self) -> None:
        script = self.script()
        script.message(0)
        message = script.receive()
        script.now += 5
        script.client.acknowledge_cumulative(script.now, script.consumer, message)
        assert script.client._context.now == script.now
        (ack,) = script.expect("ACK")
        assert ack.ack_type == proto.CommandAck.Cumulative

    def test_a_negative_acknowledgement(self) -> None:
        script = self.script(subscription_type=SubscriptionType.SHARED)
        script.message(3)
        script.negative_acknowledge(script.receive())
        script.pass_time(SECOND)
        (again,) = script.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert [each.entryId for each in again.message_ids] == [3]

    def test_a_redelivery_of_everything(self) -> None:
        script = self.script()
        script.message(0)
        script.receive()
        script.redeliver()
        assert script.frames()[0][0] == "REDELIVER_UNACKNOWLEDGED_MESSAGES"

    def test_a_flush_of_acknowledgements(self) -> None:
        script = self.script()
        request = script.flush()
        assert script.outputs()[-1] == RequestDone(request, None)

    def test_a_batch_receive(self) -> None:
        script = self.script(batch_receive=BatchReceivePolicy(max_messages=2))
        request = script.client.batch_receive(script.now, script.consumer)
        script.message(0)
        assert RequestDone(request, None) not in script.outputs()
        script.message(1)
        assert RequestDone(request, None) in script.outputs()

    def test_an_unsubscription(self) -> None:
        script = self.script()
        request = script.client.unsubscribe(script.now, script.consumer, force=True)
        (command,) = script.expect("UNSUBSCRIBE")
        assert command.force
        script.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        assert RequestDone(request, None) in script.outputs()

    def test_a_dead_letter_whose_publish_time_is_the_wall_time(self) -> None:
        script = self.script(subscription_type=SubscriptionType.SHARED, dead_letter=DeadLetterPolicy(2))
        script.message(0)
        wall = WALL + 60_000
        request = script.client.dead_letter(script.now, script.consumer, script.receive(), wall)
        assert request == script.consumer + 1
        assert script.client._services.wall_time() == wall


def test_a_copy_to_the_retry_topic_has_a_request_and_the_wall_time() -> None:
    script = LettersScript(retry=True)
    script.message(0)
    wall = WALL + 60_000
    request = script.client.reconsume_later(script.now, script.consumer, script.receive(), 1.0, wall)
    assert script.client._services.wall_time() == wall
    script.accept_producer()
    ((metadata, _),) = script.sends()
    assert metadata.publish_time == wall
    script.confirm(0)
    assert RequestDone(request, None) in script.outputs()


def test_a_delay_that_is_refused_leaves_the_wall_time_alone() -> None:
    script = ConsumerScript(subscription_type=SubscriptionType.SHARED, dead_letter=DeadLetterPolicy(2))
    script.accept()
    script.message(0)
    message = script.receive()
    before = script.client._services.wall_offset
    for delay in (-1.0, float("nan")):
        with pytest.raises(InvalidConfiguration, match="delay"):
            script.client.reconsume_later(script.now, script.consumer, message, delay, WALL * 2)
    assert script.client._services.wall_offset == before


def test_a_copy_that_the_consumer_refuses_leaves_the_wall_time_alone() -> None:
    script = ConsumerScript(subscription_type=SubscriptionType.SHARED)
    script.accept()
    script.message(0)
    message = script.receive()
    before = script.client._services.wall_offset
    with pytest.raises(LocalProtocolError, match="retry=True"):
        script.client.reconsume_later(script.now, script.consumer, message, 1.0, WALL * 2)
    with pytest.raises(LocalProtocolError, match="dead_letter"):
        script.client.dead_letter(script.now, script.consumer, message, WALL * 2)
    assert script.client._services.wall_offset == before


def test_the_counts_and_topics_of_an_open_consumer() -> None:
    script = ConsumerScript()
    script.accept()
    script.message(0)
    script.message(1)
    script.receive()
    assert script.client.available(script.consumer) == 1
    assert script.client.subscribed_topics(script.consumer) == ["persistent://public/default/t"]
    assert script.client.consumer_statistics(script.consumer).messages_received == 1
    assert script.client.acknowledger(script.consumer)(script.receive()) is True
