"""Send ten messages and receive them, with trio.

    python examples/produce_and_consume.py pulsar://localhost:6650

Without a URL it starts a broker of its own.
"""

import sys

import trio

from pulsar_trio import open_broker, open_client

COUNT = 10


async def main(url: str, topic: str = "greetings") -> list[str]:
    received: list[str] = []
    async with (
        open_client(url) as client,
        client.subscribe(topic, "example", kind="shared") as consumer,
        client.create_producer(topic) as producer,
    ):
        message_id = await producer.send(b"hello 0", key="user-1", properties={"source": "example"})
        print("confirmed as", message_id)
        await producer.send_many(f"hello {number}".encode() for number in range(1, COUNT))

        with trio.fail_after(30):
            async for message in consumer:
                print(message.message_id, message.key, message.data.decode())
                received.append(message.data.decode())
                consumer.acknowledge(message)
                if len(received) == COUNT:
                    break
    return received


async def with_own_broker() -> list[str]:
    async with open_broker() as broker:
        return await main(broker.url)


if __name__ == "__main__":
    trio.run(main, sys.argv[1]) if len(sys.argv) > 1 else trio.run(with_own_broker)
