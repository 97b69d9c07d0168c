"""The broker's name in the service URL: its own, or another one for the same address.

Both brokers here answer a lookup with `proxy_through_service_url`. With the broker's own name the connection
of the lookup is used on; with another name a second one is opened to the service URL, with
`proxy_to_broker_url` in its CONNECT.
"""

import pytest

from pulsar_trio import open_client
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive_and_acknowledge, values


@pytest.mark.parametrize("name", ["own", "other"])
async def test_produce_and_consume(broker: BrokerUnderTest, topic: str, name: str) -> None:
    url = broker.url if name == "own" else broker.url_by_another_name
    async with (
        open_client(url) as client,
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        assert client.statistics().links == (1 if name == "own" else 2)
        await producer.send_many(payloads(100))
        assert values(await receive_and_acknowledge(consumer, 100)) == payloads(100)
        await broker.unload(topic)
        await producer.send(b"after")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"after"]
