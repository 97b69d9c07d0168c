"""In random histories every request is answered, and the end comes once."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.multi_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_sansio.client.outputs import (
    Closed,
    ConsumerFailed,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    ClosedError,
)
from pulsar_sansio.wire import proto
from tests.client.topics_script import PATTERN, PREFIX, TopicsScript


@pytest.mark.parametrize("wanted", ["a pattern", "topics", "partitions"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_request_is_answered_and_the_end_comes_once(seed: int, wanted: str) -> None:
    """Topics are created, deleted, grow, refuse and vanish, connections are lost, and the application calls
    commands at random. At the end the whole has ended once and no timer is left. No message was taken more
    often than it was sent."""
    draw = Random(seed)
    names = ["w-a", "w-b", "w-p-partition-0", "w-p-partition-1"]
    topic: Any = {"a pattern": PATTERN, "topics": ("w-a", "w-b", "w-p"), "partitions": "w-p"}[wanted]
    shared = SubscriptionType.SHARED
    world = TopicsScript(topic, {"w-p": 2}, subscription_type=shared, partitions_update_interval=5.0)
    world.there = set(names)
    world.answer()
    client, handle = world.script.client, world.handle
    requests: set[int] = set()
    sent: Counter[bytes] = Counter()
    taken: Counter[bytes] = Counter()
    held: list[Any] = []
    entry = 0
    errors = (proto.ConsumerBusy, proto.ServiceNotReady, proto.TopicNotFound)

    def there() -> list[str]:
        return [name.removeprefix(PREFIX) for name in client.subscribed_topics(handle)]

    for _ in range(150):
        try:
            match draw.randrange(14):
                case 0 | 1 | 2:
                    if client.links and (live := [name for name in there() if name in world.consumer_of]):
                        payload = b"%d" % entry
                        world.deliver(draw.choice(live), payload, entry=entry)
                        sent[payload] += 1
                        entry += 1
                case 3 | 4:
                    messages = list(world.take(draw.randrange(1, 4)))
                    taken.update(message.data for message in messages)
                    held += messages
                case 5:
                    world.acknowledge(held)
                case 6:
                    client.negative_acknowledge(world.script.now, handle, held)
                case 7:
                    requests.add(client.flush_acknowledgements(world.script.now, handle))
                case 8:
                    world.refuse = {name: draw.choice(errors) for name in draw.sample(names, 1)}
                case 9:
                    world.refuse = {}
                case 10:
                    if client.links and (live := there()):
                        world.close_by_broker(draw.choice(live))
                case 11 if draw.random() < 0.3 and client.links:
                    world.script.lose(world.link)
                case 12 if wanted == "a pattern" and world.watches and client.links:
                    name = draw.choice([*names, "w-new"])
                    world.update(*(([], [name]) if name in world.there else ([name], [])))
                case 12:
                    world.partitions["w-p"] = 3
                case 13 if draw.random() < 0.1:
                    world.refuse_unsubscribe = {"w-a": proto.ConsumerBusy}
                    requests.add(client.unsubscribe(world.script.now, handle))
                case _:
                    world.pass_time(draw.random() * 10)
        except ClosedError:
            break
        world.answer()
        machine = client._handles.consumers.get(handle)
        if isinstance(machine, MultiTopicsConsumer):
            detached = sum(member.detached is not None for member in machine._members.alive)
            assert machine._life.attachment.detached == detached
            assert all(member in member.topic.members for member in machine._members.alive)
    requests.add(client.close(world.script.now, handle))
    world.pass_time(40.0)
    told = world.told()
    ends = [output for output in told if isinstance(output, Closed | ConsumerFailed)]
    assert len(ends) == 1
    answered = [output.request for output in told if isinstance(output, RequestDone | RequestFailed)]
    assert sorted(answered) == sorted(requests)
    assert not taken - sent
    world.pass_time(200.0)
    assert client.next_deadline() is None
