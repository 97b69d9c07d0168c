"""`pulsar-trio broker`: the broker until it is told to stop."""

import argparse

from ..server import open_broker
from .arguments import port
from .console import Output
from .signals import until_signal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `broker`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=port, default=6650, help="0 takes a free one (default %(default)s)")
    parser.add_argument(
        "--http-port", type=port, help="serve Pulsar's administration over HTTP here; 0 takes a free port"
    )


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
