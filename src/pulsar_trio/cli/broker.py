"""`pulsar-trio broker`: the broker until it is told to stop."""

import argparse

from ..server import open_broker
from .console import Output
from .signals import until_signal


async def run(given: argparse.Namespace, output: Output) -> None:
    async def serve() -> None:
        async with open_broker(given.port, host=given.host, http_port=given.http_port) as broker:
            ready = {"url": broker.url, "port": broker.port}
            text = f"ready {broker.url}"
            if broker.admin_url is not None:
                ready |= {"admin_url": broker.admin_url, "http_port": broker.http_port}
                text += f"\nadmin {broker.admin_url}"
            output.result(text, event="ready", **ready)
            await broker.wait_failed()

    await until_signal(serve)
    output.result("stopped", event="stopped")
