"""The official client and a broker with its data on disk, which is killed and started again as a process."""

from pathlib import Path

import pulsar
import pytest

from tests.official.client import Letter, official_client, send_all, take
from tests.official.consuming.test_subscriptions import letters, numbers
from tests.store.killing import broker


@pytest.mark.slow
def test_it_goes_on_over_a_broker_that_was_killed(tmp_path: Path, topic: str) -> None:
    """No message that was confirmed is lost, and the client needs no help to find the broker again."""
    with broker(tmp_path / "data", "always") as (url, process):
        with official_client(url) as client:
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
            other = client.subscribe(topic, "other")
            producer = client.create_producer(topic)
            send_all(producer, letters(10))
            assert numbers(take(consumer, 4)) == [0, 1, 2, 3]
            consumer.close()  # sends the acknowledgements that are collected
            process.kill()
            process.wait()
            with broker(tmp_path / "data", "always", int(url.rpartition(":")[2])):
                send_all(producer, letters(10, start=10))
                consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
                again: list[Letter] = []
                while not set(range(4, 20)) <= set(numbers(again)):
                    again += take(consumer, 1)
                assert sorted(numbers(take(other, 20))) == list(range(20))
                producer.close()
    with broker(tmp_path / "data", "none") as (url, _), official_client(url) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        assert [int(reader.read_next(60_000).data()) for _ in range(20)] == list(range(20))
