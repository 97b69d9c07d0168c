"""`pulsar-trio broker`: the broker until it is told to stop."""

import argparse

from ..server import open_broker
from .console import Output
from .signals import until_signal


async def run(given: argparse.Namespace, output: Output) -> None:
    async def serve() -> None:
        async with open_broker(given.port, host=given.host) as broker:
            output.result(f"ready {broker.url}", event="ready", url=broker.url, port=broker.port)
            await broker.wait_failed()

    await until_signal(serve)
    output.result("stopped", event="stopped")
