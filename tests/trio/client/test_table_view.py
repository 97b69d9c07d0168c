"""Table views: what a listener that is slow is told."""

from functools import partial

import pytest
import trio
import trio.testing

from pulsar_trio import BatchingPolicy, Client, OutgoingMessage, ResourceClosed


async def test_a_slow_listener_does_not_hear_of_keys_that_came_and_went(client: Client) -> None:
    keyed = partial(OutgoingMessage, b"1")
    async with client.create_producer("t", batching=BatchingPolicy(max_messages=3)) as producer:
        await producer.send_many([keyed(key="a"), keyed(key="b")])
        async with client.create_table_view("t") as view:
            changes = view.changes()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(changes.__anext__)
                await trio.testing.wait_all_tasks_blocked(0.01)
                await producer.send(keyed(key="c"))
            for number in range(10):
                await producer.send_many([keyed(key=f"x{number}"), OutgoingMessage(None, key=f"x{number}")])
            await producer.send_many(OutgoingMessage(None, key=key) for key in "abc")
            await producer.send(keyed(key="a"))
            await view.refresh()
            (listener,) = view._listeners
            assert list(listener.pending) == ["b", "c", "a"]
            assert [await anext(changes) for _ in range(3)] == [("b", None), ("c", None), ("a", b"1")]
            assert dict(view) == {"a": b"1"}
        with pytest.raises(ResourceClosed):
            await anext(changes)
