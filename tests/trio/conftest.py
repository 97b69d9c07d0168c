"""Fixtures that the adapter's tests share: a broker and a client of it."""

from collections.abc import AsyncIterator

import pytest

from pulsar_trio import Client, EmbeddedBroker, open_broker, open_client


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker() as running:
        yield running


@pytest.fixture
async def client(broker: EmbeddedBroker) -> AsyncIterator[Client]:
    async with open_client(broker.url, seed=1) as opened:
        yield opened
