"""Table views by the keys of pairs, on both brokers."""

from dataclasses import dataclass

from pulsar_sansio.schemas import INT64, AvroSchema, KeyValue, KeyValueSchema
from pulsar_trio import Client


@dataclass
class Order:
    id: str


async def test_the_keys_of_pairs_are_the_keys_of_the_table(client: Client, topic: str) -> None:
    """The null key is no key of the table."""
    pairs = KeyValueSchema(INT64, AvroSchema(Order))
    async with client.create_producer(topic, schema=pairs) as producer:
        await producer.send(KeyValue(7, Order("o1")))
        await producer.send(KeyValue(8, Order("o2")))
        null: KeyValue[int, Order] = KeyValue(None, Order("o3"))  # type: ignore[arg-type]
        await producer.send(null)
        async with (
            client.create_table_view(topic, schema=pairs, key_schema=int) as view,
            client.create_reader(topic, "earliest", schema=pairs) as reader,
        ):
            assert dict(view) == {7: KeyValue(7, Order("o1")), 8: KeyValue(8, Order("o2"))}
            await producer.send(KeyValue(7, Order("o4")))
            await view.refresh()
            assert view[7].value == Order("o4")
            values = [message.value async for message in reader.until_latest()]
            assert [value.key for value in values if value is not None] == [7, 8, None, 7]
