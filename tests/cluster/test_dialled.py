"""`Dialled` tells whether all connections of a client went to one address."""

from pulsar_trio import open_broker, open_client

from .dialled import Dialled


async def test_connections_to_one_address_and_to_two() -> None:
    """A broker that names another address for a topic takes the client to a second one."""
    async with open_broker() as broker, open_broker(service_url=broker.url) as redirecting:
        for url, only in ((broker.url, True), (redirecting.url, False)):
            dialled = Dialled()
            async with open_client(url) as client, client.create_producer("t") as producer:
                await producer.send(b"x")
            assert dialled.only(url) is only
        assert not Dialled().only(broker.url), "there were no connections"
