"""Producers and consumers stay on CPython's fast way to attributes."""

from pulsar_trio import Client

MOST = 29
"""CPython keeps up to this number of attributes in the instance itself. With 30 of them acknowledging takes a
tenth longer."""


async def test_the_attributes_are_few_enough_for_the_fast_way(client: Client) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        assert len(vars(producer)) <= MOST
        assert len(vars(consumer)) <= MOST
