"""Reading the first message of a topic."""

from pulsar_trio import Client, Message


async def first_value(client: Client, topic: str = "t") -> Message:
    async with client.create_reader(topic, "earliest") as reader:
        return await reader.receive()
