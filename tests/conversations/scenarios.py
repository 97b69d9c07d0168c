"""Helpers that all scenarios share: the recorded programs' options; playing a scenario and comparing it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pulsar_sansio.model.config import InitialPosition, SubscriptionType
from tests.conversations.recorded import Comparison
from tests.conversations.stage import PlayedConsumer, PlayedProducer, Stage

PUBLIC = "persistent://public/default/"
SHARED = SubscriptionType.SHARED
CONSUMER: dict[str, Any] = {
    "initial_position": InitialPosition.EARLIEST,
    "receiver_queue_size": 10,
    "acknowledgement_group_time": 0.0,
}

Scenario = Callable[[Stage, str], None]
"""The steps of a recorded program, over the topic of that name."""


def collector(scenarios: dict[str, Scenario]) -> Callable[[Scenario], Scenario]:
    """A decorator that puts a scenario under the name of its recording."""

    def collect(scenario: Scenario) -> Scenario:
        scenarios[scenario.__name__.replace("_", "-")] = scenario
        return scenario

    return collect


@contextmanager
def both(
    stage: Stage, topic: str, **consumer_options: Any
) -> Iterator[tuple[PlayedProducer, PlayedConsumer]]:
    """A producer without batching, then a consumer; the consumer is closed first. A scenario that fails
    closes neither."""
    producer = stage.producer(topic, batching=None)
    consumer = stage.consumer(topic, **CONSUMER, **consumer_options)
    yield producer, consumer
    consumer.close()
    producer.close()


def play(name: str, scenario: Scenario) -> Comparison:
    stage = Stage(transactions=name.startswith("transaction-"))
    scenario(stage, PUBLIC + name)
    stage.close()
    return Comparison(f"java-{name}", stage.frames)
