"""The page of the broker's status: its numbers, and names that look like markup."""

import re
from html import unescape
from urllib.parse import quote

import pytest
import trio

from pulsar_trio import EmbeddedBroker, open_broker, open_client
from tests.browser.chromium import shown
from tests.trio.broker.identities import guarded_broker

pytestmark = pytest.mark.browser

STRANGE = 'persistent://public/default/<script>"a" & b'


async def page(broker: EmbeddedBroker, fragment: str = "") -> str:
    url = f"{broker.admin_url}/status#{fragment}"
    return await trio.to_thread.run_sync(lambda: shown(url))


def rows(document: str, table: str) -> list[list[str]]:
    """Return the texts of the fields of a table's body."""
    body = re.search(f'<table id="{table}">.*?<tbody>(.*?)</tbody>', document, re.DOTALL)
    assert body is not None
    return [
        [unescape(re.sub("<[^>]*>", "", field)) for field in re.findall("<td>(.*?)</td>", line, re.DOTALL)]
        for line in re.findall("<tr.*?>(.*?)</tr>", body[1], re.DOTALL)
    ]


async def test_topics_and_the_clients_of_one_are_shown() -> None:
    async with open_broker(http_port=0) as broker, open_client(broker.url) as client:
        broker.create_topic(STRANGE)
        async with (
            client.subscribe("orders", "billing", "shared", consumer_name="worker"),
            client.create_producer("orders", name="shop", batching=None) as producer,
        ):
            await producer.send_many([b"x"] * 3)
            document = await page(broker, f"topic={quote('persistent://public/default/orders')}")
    assert '<span id="state" role="status" class="">live</span>' in document
    topics = rows(document, "topics")
    assert topics[0][:2] == ["public/default/orders", "3"]
    assert topics[0][4] == "3"
    assert topics[0][6:] == ["1", "1", "1"]
    assert topics[1][0] == STRANGE.removeprefix("persistent://")
    assert rows(document, "subscriptions") == [["billing", "Shared", "3", "3", "0", "1"]]
    clients = rows(document, "clients")
    assert [each[:2] for each in clients] == [["shop", "producer"], ["worker", "consumer of billing"]]


async def test_the_filter_is_in_the_address() -> None:
    async with open_broker(http_port=0) as broker:
        for name in ("one", "two", "three"):
            broker.create_topic(f"persistent://public/default/{name}")
        document = await page(broker, "filter=T%2Ft")
    assert [each[0] for each in rows(document, "topics")] == ["public/default/three", "public/default/two"]
    assert "2 topics" in document


async def test_a_broker_with_roles_asks_for_a_token() -> None:
    async with guarded_broker(http_port=0) as broker:
        document = await page(broker)
    assert '<form id="access">' in document
    assert rows(document, "topics") == []
