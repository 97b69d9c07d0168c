"""The queue of a consumer: one class for each feature that its spec asks for, and no other."""

from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.ack_timeout import TrackedQueue
from pulsar_sansio.client.consuming.interceptors import InterceptedQueue
from pulsar_sansio.client.delivery.batch_receive import BatchReceiveQueue
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.client.delivery.scaled_queue import ScaledPermits, ScaledQueue
from pulsar_sansio.client.delivery.zero_queue import ZeroQueue, ZeroQueuePermits
from pulsar_sansio.model.config import BatchReceivePolicy
from pulsar_sansio.model.interceptors import ConsumerInterceptor
from tests.client.broker_script import ConsumerScript


class Passing(ConsumerInterceptor):
    """An interceptor that changes nothing."""


FEATURES: dict[str, tuple[dict[str, Any], type[ReceiverQueue], type[Permits]]] = {
    "a timeout": ({"acknowledgement_timeout": 5.0}, TrackedQueue, Permits),
    "no queue": ({"receiver_queue_size": 0}, ZeroQueue, ZeroQueuePermits),
    "a scaled queue": ({"auto_scaled_receiver_queue_size": True}, ScaledQueue, ScaledPermits),
    "batch receive": ({"batch_receive": BatchReceivePolicy()}, BatchReceiveQueue, Permits),
    "an interceptor": ({"interceptors": (Passing(),)}, InterceptedQueue, Permits),
}


def kinds(script: ConsumerScript) -> set[type]:
    """Return the features of the consumer's queue."""
    every = {feature for _, feature, _ in FEATURES.values()}
    return every & set(type(script.machine.queue).__mro__)


def test_without_features_it_is_the_receiver_queue_itself() -> None:
    script = ConsumerScript()
    assert type(script.machine.queue) is ReceiverQueue
    assert type(script.machine.permits) is Permits


@pytest.mark.parametrize(("spec", "queue", "permits"), FEATURES.values(), ids=FEATURES.keys())
def test_each_feature_adds_its_class_only(
    spec: dict[str, Any], queue: type[ReceiverQueue], permits: type[Permits]
) -> None:
    script = ConsumerScript(**spec)
    assert kinds(script) == {queue}
    assert type(script.machine.permits) is permits


def test_features_are_combined_and_one_combination_is_one_class() -> None:
    spec: dict[str, Any] = {
        "acknowledgement_timeout": 5.0,
        "batch_receive": BatchReceivePolicy(max_messages=2),
        "interceptors": (Passing(),),
    }
    first, second = ConsumerScript(**spec), ConsumerScript(**spec)
    assert kinds(first) == {TrackedQueue, BatchReceiveQueue, InterceptedQueue}
    assert type(first.machine.queue) is type(second.machine.queue)


def test_a_consumer_that_starts_paused_grants_nothing() -> None:
    script = ConsumerScript(start_paused=True)
    assert script.machine.permits.paused
    script.accept()
    assert script.frames() == []
    script.client.resume(script.now, script.consumer)
    script.expect("FLOW")


def test_a_scaled_queue_leaves_room_for_a_batch_receive() -> None:
    """Half a queue of permits less one may wait here: a batch receive has to fit into the rest."""
    script = ConsumerScript(
        receiver_queue_size=1000,
        auto_scaled_receiver_queue_size=True,
        batch_receive=BatchReceivePolicy(max_messages=40),
    )
    script.accept()
    (flow,) = script.expect("FLOW")
    assert flow.message_permits >= 78
