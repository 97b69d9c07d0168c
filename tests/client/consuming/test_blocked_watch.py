"""`BlockedWatch`: a consumer that waits in vain asks its broker whether it is blocked."""

from typing import Any

import pytest

from pulsar_sansio.client.consuming.blocked_watch import QUIET, WORTH_ASKING
from pulsar_sansio.client.outputs import ConsumerBlocked, Detached
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.topics_script import TopicsScript

TOPIC = "persistent://public/default/t"


class BlockedScript(ConsumerScript):
    """A consumer that was delivered many messages and has acknowledged none."""

    def __init__(self, messages: int = WORTH_ASKING, **spec: Any) -> None:
        spec.setdefault("subscription_type", SubscriptionType.SHARED)
        spec.setdefault("receiver_queue_size", 20)
        super().__init__(**spec)
        self.accept()
        self.entry = 0
        self.frames()
        self.deliver_and_take(messages)

    def deliver_and_take(self, messages: int) -> list[Any]:
        taken = []
        for _ in range(messages):
            self.message(self.entry)
            self.entry += 1
            taken += self.take()
        self.frames()
        return taken

    def wait(self, times: int) -> None:
        """Let `times` periods of `QUIET` pass, in each of which the broker answers the PING."""
        for _ in range(times):
            self.pass_time(QUIET)
            self.say("PONG", proto.CommandPong())

    def answer(self, unacknowledged: int, blocked: bool = True) -> None:
        """The broker answers the only question that came."""
        (asked,) = self.expect("CONSUMER_STATS")
        assert asked.consumer_id == 0
        self.say(
            "CONSUMER_STATS_RESPONSE",
            proto.CommandConsumerStatsResponse(
                request_id=asked.request_id,
                unackedMessages=unacknowledged,
                blockedConsumerOnUnackedMsgs=blocked,
            ),
        )


def test_it_asks_when_nothing_has_come_for_a_while_and_tells_what_the_broker_says() -> None:
    s = BlockedScript()
    s.pass_time(QUIET - 1)
    s.expect()
    s.pass_time(1)
    s.answer(50_000)
    assert s.notices == [ConsumerBlocked(s.consumer, TOPIC, 50_000)]
    s.pass_time(3 * SECOND)
    text = s.client.explain(s.now, s.consumer)
    assert "blocked: the broker said 3.0 s ago that 50000 messages are unacknowledged" in text


def test_a_broker_that_says_no_makes_no_notice() -> None:
    s = BlockedScript()
    s.pass_time(QUIET)
    s.answer(100, blocked=False)
    assert s.notices == []
    assert "blocked" not in s.client.explain(s.now, s.consumer)


def test_it_asks_once_until_enough_was_redelivered() -> None:
    s = BlockedScript()
    s.pass_time(QUIET)
    s.answer(100)
    s.wait(100)
    s.expect()
    s.deliver_and_take(WORTH_ASKING - 10)
    s.wait(100)
    s.expect()
    s.deliver_and_take(20)
    s.wait(2)
    s.answer(200)
    assert len(s.notices) == 2


def test_what_the_broker_said_counts_until_messages_are_redelivered() -> None:
    s = BlockedScript()
    s.pass_time(QUIET)
    s.answer(100)
    s.deliver_and_take(20)
    assert "blocked" not in s.client.explain(s.now, s.consumer)


def test_few_messages_are_not_worth_a_question() -> None:
    s = BlockedScript(WORTH_ASKING // 2)
    s.wait(100)
    s.expect()


def test_messages_in_the_receiver_queue_are_the_applications_affair() -> None:
    s = BlockedScript()
    s.message(s.entry)
    s.wait(10)
    s.expect()
    s.take()
    s.wait(2)
    s.expect("CONSUMER_STATS")


def test_a_paused_consumer_without_permits_does_not_ask() -> None:
    s = BlockedScript()
    s.client.pause(s.now, s.consumer)
    s.deliver_and_take(s.machine.permits.at_broker)
    assert s.machine.permits.at_broker == 0
    s.wait(10)
    s.expect()


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
def test_brokers_do_not_block_other_subscriptions(kind: SubscriptionType) -> None:
    s = BlockedScript(subscription_type=kind)
    s.wait(10)
    s.expect()


def test_key_shared_is_blocked_too() -> None:
    s = BlockedScript(subscription_type=SubscriptionType.KEY_SHARED)
    s.pass_time(QUIET)
    s.answer(100)
    assert len(s.notices) == 1


def test_a_lost_connection_ends_the_question() -> None:
    s = BlockedScript()
    s.pass_time(QUIET)
    s.expect("CONSUMER_STATS")
    s.lose()
    assert [type(output) for output in s.outputs() if isinstance(output, Detached)] == [Detached]
    s.pass_time(SECOND)
    s.accept()
    s.frames()
    s.wait(10)
    s.expect()


def test_a_broker_that_refuses_the_question_is_not_asked_again_for_these() -> None:
    s = BlockedScript()
    s.pass_time(QUIET)
    (asked,) = s.expect("CONSUMER_STATS")
    s.say("ERROR", proto.CommandError(request_id=asked.request_id, error=proto.UnknownError, message="?"))
    s.wait(10)
    s.expect()
    assert s.notices == []


def test_after_closing_nothing_is_asked() -> None:
    s = BlockedScript()
    s.client.close(s.now, s.consumer)
    s.frames()
    s.wait(2)
    s.expect()


def test_of_several_topics_each_asks_for_itself() -> None:
    world = TopicsScript(("a", "b"), subscription_type=SubscriptionType.SHARED)
    world.answer()
    text = world.script.client.explain(world.script.now, world.handle)
    assert text.count("at most 0 messages are delivered and not acknowledged") == 2
