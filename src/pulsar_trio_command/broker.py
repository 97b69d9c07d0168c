"""`pulsar-trio broker`: the broker until it is told to stop."""

import argparse
from pathlib import Path

from pulsar_sansio import InvalidConfiguration
from pulsar_trio.broker.server import open_broker

from .arguments import port
from .broker_settings import Chosen, choose
from .console import Output
from .properties import Property, read_properties, shown
from .signals import until_signal

DEFAULT_PORT = 6650


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `broker`."""
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=port, help=f"0 takes a free one (default {DEFAULT_PORT})")
    parser.add_argument(
        "--http-port", type=port, help="serve Pulsar's administration over HTTP here; 0 takes a free port"
    )
    parser.add_argument(
        "--allow-unauthenticated",
        action="store_true",
        help="listen also where other machines reach the broker, and let every client do everything",
    )
    parser.add_argument(
        "--conf", type=Path, metavar="FILE", help="settings in a file such as Pulsar's broker.conf"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting by Pulsar's name, such as maxMessageSize=1048576, which goes before the file's; may "
        "be repeated. --host, --port and --http-port go before both",
    )


async def run(given: argparse.Namespace, output: Output) -> None:
    chosen = _chosen(given)
    if chosen.ignored:
        output.note(f"ignored, because this broker has no such setting: {', '.join(chosen.ignored)}")

    async def serve() -> None:
        allowed = given.allow_unauthenticated
        async with open_broker(allow_unauthenticated=allowed, **chosen.options) as broker:
            ready: dict[str, object] = {"url": broker.url, "port": broker.port}
            text = f"ready {broker.url}"
            if broker.admin_url is not None:
                ready |= {"admin_url": broker.admin_url, "http_port": broker.http_port}
                text += f"\nadmin {broker.admin_url}"
            if chosen.ignored:
                ready["ignored"] = chosen.ignored
            output.result(text, event="ready", **ready)
            await broker.wait_failed()

    await until_signal(serve)
    output.result("stopped", event="stopped")


def _chosen(given: argparse.Namespace) -> Chosen:
    """The settings of the file, of `--set` over them, and of the other options over both."""
    settings = [] if given.conf is None else read_properties(given.conf)
    for text in given.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidConfiguration(f"--set: NAME=VALUE, not {shown(text)}")
        if not name.strip():
            raise InvalidConfiguration("--set: NAME=VALUE with a name that is not empty")
        settings.append(Property(name.strip(), value.strip(), "--set"))
    chosen = choose(settings)
    chosen.options.setdefault("port", DEFAULT_PORT)
    for option in ("host", "port", "http_port"):
        if getattr(given, option) is not None:
            chosen.options[option] = getattr(given, option)
    return chosen
