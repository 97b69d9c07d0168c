"""Transactions that are open when a broker with its data on disk ends, and a broker starts over that data."""

from pathlib import Path

import pytest
import trio

from pulsar_trio import EmbeddedBroker, SqliteStore, open_client, serve
from tests.patience import PATIENCE


class Aborted(Exception):
    pass


@pytest.mark.parametrize("commits", [True, False])
async def test_an_open_transaction_ends_after_a_restart(
    tmp_path: Path, nursery: trio.Nursery, commits: bool
) -> None:
    """TXN-01: its message and its acknowledgement count after a commit, and do not after an abort."""
    ended = trio.Event()

    async def run(
        port: int, scope: trio.CancelScope, *, task_status: trio.TaskStatus[EmbeddedBroker]
    ) -> None:
        with scope:
            await serve(port, store=SqliteStore(tmp_path), task_status=task_status)
        ended.set()

    scope = trio.CancelScope()
    broker: EmbeddedBroker = await nursery.start(run, 0, scope)
    with trio.fail_after(PATIENCE):
        async with (
            open_client(broker.url, transactions=True) as client,
            client.subscribe("in", "s") as consumer,
            client.create_producer("in") as sender,
            client.create_producer("out") as producer,
            client.subscribe("out", "r") as reader,
        ):
            await sender.send(b"read")
            try:
                async with client.transaction(timeout=600) as transaction:
                    await producer.send(b"written", transaction=transaction)
                    consumer.acknowledge(await consumer.receive(), transaction=transaction)
                    await transaction.flush()
                    scope.cancel()
                    await ended.wait()
                    broker = await nursery.start(run, broker.port, trio.CancelScope())
                    if not commits:
                        raise Aborted
            except Aborted:
                pass
            await producer.send(b"last")
            received = (await reader.receive()).data
            backlog = broker.stats("in")["subscriptions"]["s"]["msgBacklog"]
    assert (received, backlog) == ((b"written", 0) if commits else (b"last", 1))
