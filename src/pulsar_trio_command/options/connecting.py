"""The client of a command: what keeps it from connecting is printed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from pulsar_trio.client.client import Client, open_client

from ..console import Output
from .connection import ConnectionArguments

PATIENCE = 2.0
"""Seconds after which a command says what it waits for. Connecting mostly takes a tenth of that."""


@asynccontextmanager
async def reporting_client(to: ConnectionArguments, output: Output) -> AsyncIterator[Client]:
    """A client with these options; the warnings about them are printed first.

    Where no attempt has failed and none has succeeded for `PATIENCE`, as behind a firewall that answers
    nothing, a line says so; failed attempts are printed when they fail.
    """
    for warning in to.warnings:
        output.warning(warning)
    async with open_client(to.url, **to.options) as client, trio.open_nursery() as nursery:
        nursery.start_soon(_say_what_is_waited_for, client, output)
        yield client
        nursery.cancel_scope.cancel()


async def _say_what_is_waited_for(client: Client, output: Output) -> None:
    await trio.sleep(PATIENCE)
    for side in client._driver.sides.values():
        if not side.endpoint.connected and side.outage.cause is None:
            output.warning(side.endpoint.explain().splitlines()[0])
