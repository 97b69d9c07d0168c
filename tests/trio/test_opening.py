"""A program without `async with`, or without trio, gets an error with the line to write."""

import asyncio
import gc
import re
import warnings
from typing import Any

import pytest

from pulsar_trio import (
    Client,
    EmbeddedBroker,
    NotEntered,
    NotInTrio,
    Producer,
    PulsarError,
    open_broker,
    open_client,
)


async def test_without_async_with_an_error_shows_the_line(client: Client, broker: EmbeddedBroker) -> None:
    wrong: Any = client
    for use, words in (
        (
            lambda: open_client(broker.url).subscribe("t", "s"),  # type: ignore[attr-defined]
            "open_client(…) has no 'subscribe' before it is entered; write: async with "
            "open_client(url) as client:",
        ),
        (
            lambda: wrong.create_producer("t").send(b"x"),
            "client.create_producer(…) has no 'send' before it is entered; write: async with "
            "client.create_producer(topic) as producer:",
        ),
        (
            lambda: wrong.subscribe("t", "s").__enter__(),
            "client.subscribe(…) is entered with 'async with', not with 'with'; write: async with "
            "client.subscribe(topic, subscription) as consumer:",
        ),
        (
            lambda: wrong.create_reader("t", "earliest").__aiter__(),
            "client.create_reader(…) is not iterated over; write: async with client.create_reader(topic, "
            "'earliest') as reader:",
        ),
        (
            lambda: open_broker().url,  # type: ignore[attr-defined]
            "open_broker(…) has no 'url' before it is entered; write: async with open_broker() as broker:",
        ),
    ):
        with pytest.raises(NotEntered) as raised:
            use()  # type: ignore[no-untyped-call]
        assert str(raised.value) == words
    with pytest.raises(
        NotEntered, match=re.escape("client.create_producer(…) is not awaited; write: async with")
    ):
        await wrong.create_producer("t")
    assert issubclass(NotEntered, AttributeError)
    assert issubclass(NotEntered, TypeError)


async def test_what_is_never_entered_warns(client: Client) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.create_producer("t")
        gc.collect()
    assert [str(each.message) for each in caught] == [
        "client.create_producer(…) was never entered; write: async with "
        "client.create_producer(topic) as producer:"
    ]
    assert caught[0].category is RuntimeWarning


async def test_what_is_to_be_entered_says_so(client: Client) -> None:
    opening = client.create_producer("t")
    assert repr(opening) == (
        "<client.create_producer(…), to be entered: async with client.create_producer(topic) as producer:>"
    )
    async with opening as producer:
        assert type(producer) is Producer


def test_asyncio_gets_one_clear_sentence() -> None:
    async def program(opening: Any) -> None:
        async with opening:
            raise AssertionError("it was entered")

    for opening in (open_client("pulsar://localhost"), open_broker()):
        with pytest.raises(NotInTrio) as raised:
            asyncio.run(program(opening))
        assert str(raised.value) == (
            "pulsar_trio needs trio: start the program with trio.run(main). For asyncio see docs/embedding.md"
        )
    assert issubclass(NotInTrio, RuntimeError)
    assert issubclass(NotInTrio, PulsarError)
