"""A producer with a schema: how its values become messages."""

import pytest

from pulsar_sansio.schemas import INT32, AutoPublish
from pulsar_trio import InvalidMessage, open_client
from tests.trio.proxy import open_proxy
from tests.trio.waiting import until


async def test_a_producer_that_found_no_definition_stays_one_of_bytes() -> None:
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.create_producer("t", schema=AutoPublish()) as producer,
    ):
        await producer.send(b"anything")
        async with client.create_producer("t", schema=INT32):
            proxy.cut()
            await until(lambda: not producer.connected)
            await until(lambda: producer.connected)
        await producer.send(b"anything")
        async with client.create_producer("t", schema=AutoPublish()) as later:
            with pytest.raises(InvalidMessage, match="4 bytes, not 8"):
                await later.send(b"anything")
