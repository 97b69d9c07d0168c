"""The official client follows our broker's TOPIC_MIGRATED to another cluster."""

from pulsar_trio import open_broker
from tests.official.client import in_thread, open_official_client
from tests.suite.brokers import OurBroker


async def test_a_producer_follows(broker: OurBroker, topic: str) -> None:
    async with open_broker() as green, open_official_client(broker.url) as client:
        producer = await in_thread(client.create_producer, topic)
        await in_thread(producer.send, b"here")
        driver = broker._broker._driver
        driver.command(driver.machine.topic_administration.migrate, topic, green.url)
        await in_thread(producer.send, b"there")
        assert broker._broker.stats(topic)["msgInCounter"] == 1
        assert green.stats(topic)["msgInCounter"] == 1
        await in_thread(producer.close)
