"""The official client with an http:// service URL: it looks up over the administration's port."""

from tests.official.client import Letter, consume, in_thread, produce
from tests.suite.brokers import OurBroker

LETTERS = [Letter(b"%d" % number, key=f"k{number}") for number in range(20)]


async def test_a_topic_is_found_over_http(broker: OurBroker, topic: str) -> None:
    """Rule GAP-32."""
    url = broker.admin.url
    await in_thread(produce, url, topic, LETTERS)
    found = await in_thread(consume, url, topic, len(LETTERS))
    assert sorted(found, key=lambda letter: int(letter.value or b"")) == LETTERS


async def test_a_partitioned_topic_is_found_over_http(broker: OurBroker, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    url = broker.admin.url
    await in_thread(produce, url, topic, LETTERS)
    found = await in_thread(consume, url, topic, len(LETTERS))
    assert sorted(found, key=lambda letter: int(letter.value or b"")) == LETTERS
    used = [
        (await broker.request("GET", f"/admin/v2/persistent/public/default/{name}/stats"))[1]["msgInCounter"]
        for name in (f"{topic.rpartition('/')[2]}-partition-{index}" for index in range(3))
    ]
    assert sum(used) == len(LETTERS)
    assert all(used), "every partition got some"
