"""Make one invoice of each order, exactly once, though the handler fails in the middle.

    python examples/transform.py pulsar://localhost:6650

Without a URL it starts a broker of its own. Each batch of orders and its invoices are one transaction: both
take effect, or neither. The broker needs transactionCoordinatorEnabled=true.
"""

import sys
from collections.abc import Sequence

import trio

from pulsar_trio import Client, Message, Transaction, open_broker, open_client

COUNT = 20


async def make_invoices(client: Client, orders: str, invoices: str, done: trio.Event) -> None:
    """Turn orders into invoices until `done`."""
    is_first = True

    async def handle(messages: Sequence[Message], transaction: Transaction) -> None:
        nonlocal is_first
        for message in messages:
            await producer.enqueue(b"invoice of " + message.data, transaction=transaction)
        if is_first:
            is_first = False
            raise OSError("this attempt fails, so none of its invoices is ever seen")

    async with (
        client.create_producer(invoices) as producer,
        client.subscribe(orders, "billing", kind="exclusive", initial_position="earliest") as consumer,
    ):
        await consumer.run_transactions(handle, max_messages=10, timeout=30, stop=done)


async def main(url: str, orders: str = "orders", invoices: str = "invoices") -> list[str]:
    received: list[str] = []
    done = trio.Event()
    async with (
        open_client(url, transactions=True) as client,
        client.subscribe(invoices, "example", kind="exclusive") as consumer,
        client.create_producer(orders) as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send_many(f"order {number}".encode() for number in range(COUNT))
        nursery.start_soon(make_invoices, client, orders, invoices, done)
        with trio.fail_after(30):
            while len(received) < COUNT:
                message = await consumer.receive()
                print(message.data.decode())
                received.append(message.data.decode())
                consumer.acknowledge(message)
        done.set()
    return received


async def with_own_broker() -> list[str]:
    async with open_broker() as broker:
        return await main(broker.url)


if __name__ == "__main__":
    trio.run(main, sys.argv[1]) if len(sys.argv) > 1 else trio.run(with_own_broker)
