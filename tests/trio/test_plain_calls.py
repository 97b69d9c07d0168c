"""A needless `await` of a plain call raises an error with the line to write."""

import re
from typing import Any

import pytest

from pulsar_trio import Client, NotAwaitable


async def test_awaiting_a_plain_call_says_what_waits(client: Client) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", kind="exclusive", initial_position="earliest") as consumer,
    ):
        await producer.send_many([b"1", b"2"])
        plain: Any = consumer
        message = await consumer.receive()
        with pytest.raises(NotAwaitable) as raised:
            await plain.acknowledge(message)
        assert str(raised.value) == (
            "acknowledge is a plain call, without await: write consumer.acknowledge(…); await "
            "consumer.flush() waits for the broker"
        )
        other = await consumer.receive()
        for name, arguments in (
            ("acknowledge_cumulative", (other,)),
            ("negative_acknowledge", (other,)),
            ("redeliver_unacknowledged", ()),
            ("pause", ()),
            ("resume", ()),
        ):
            with pytest.raises(NotAwaitable, match=rf"^{name} is a plain call, without await: write"):
                await getattr(plain, name)(*arguments)
            assert not getattr(plain, name)(*arguments), "it stands for None"
        with pytest.raises(NotAwaitable, match=re.escape("write: message_id = await receipt.wait()")):
            await producer.enqueue_nowait(b"3")  # type: ignore[misc]
        await consumer.flush()
    assert issubclass(NotAwaitable, TypeError)
