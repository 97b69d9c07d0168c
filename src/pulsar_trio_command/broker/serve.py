"""`pulsar-trio broker`: the broker until it is told to stop."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from logging import INFO, WARNING, Formatter, StreamHandler, getLogger
from pathlib import Path

from pulsar_sansio import InvalidConfiguration
from pulsar_store import SYNCS, SqliteStore
from pulsar_trio.broker.server import open_broker

from ..console import Output
from ..options.arguments import port
from ..properties import Property, read_properties, shown
from ..signals import until_eof, until_signal
from .settings import Chosen, choose

DEFAULT_PORT = 6650

TLS_OPTIONS = {
    "tls_port": "brokerServicePortTls",
    "https_port": "webServicePortTls",
    "tls_certificate": "tlsCertificateFilePath",
    "tls_key": "tlsKeyFilePath",
    "tls_trust": "tlsTrustCertsFilePath",
    "tls_require_client_certificate": "tlsRequireTrustedClientCertOnConnect",
}
"""Options, and the settings that each stands for: only together do they make a `ServerTls`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `broker`."""
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=port, help=f"port of the binary protocol; 0 takes a free port (default {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--http-port", type=port, help="port of the administration over HTTP; 0 takes a free port"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep all data in this folder")
    parser.add_argument(
        "--sync",
        choices=SYNCS,
        help="of --data: when the disk has it. always (default): before each receipt; batch: a tenth of a "
        "second later; none: when the system likes. A crash of the broker alone loses nothing",
    )
    parser.add_argument("--tls-port", help="listen for pulsar+ssl:// here; 0 takes a free port")
    parser.add_argument("--https-port", help="serve the administration over HTTPS here; 0 takes a free port")
    parser.add_argument("--tls-certificate", metavar="FILE", help="the broker's certificate and chain, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        "--tls-trust",
        metavar="FILE",
        help="authorities of clients' certificates, PEM; clients may show one",
    )
    parser.add_argument(
        "--tls-require-client-certificate",
        action="store_const",
        const="true",
        help="refuse a client without a certificate",
    )
    parser.set_defaults(check=_check)
    parser.add_argument(
        "--allow-unauthenticated",
        action="store_true",
        help="listen also where other machines reach the broker, and let every client do everything",
    )
    parser.add_argument(
        "--max-stored-bytes",
        type=int,
        metavar="N",
        help="bytes of memory for messages, beyond which the broker refuses more (default: half of the "
        "machine's memory; 0 is no limit)",
    )
    parser.add_argument(
        "--protocol-version",
        type=int,
        metavar="N",
        help="speak this version of the protocol at most, 12 to 21, as older brokers do",
    )
    parser.add_argument(
        "--no-feature-flags",
        action="store_true",
        help="announce no feature flags, as older brokers do",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="fix the broker's random choices, those of faults included"
    )
    parser.add_argument(
        "--test-control",
        action="store_true",
        help="let tests of applications make the broker fail, over its HTTP port and on loopback only; log "
        "the ends of connections",
    )
    parser.add_argument(
        "--stop-at-eof",
        action="store_true",
        help="stop when standard input ends: with the process that started this one",
    )
    parser.add_argument(
        "--conf", type=Path, metavar="FILE", help="settings in a file such as Pulsar's broker.conf"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting by Pulsar's name, such as maxMessageSize=1048576, which overrides the file's; may "
        "be repeated. The other options override both",
    )


def _check(given: argparse.Namespace) -> str | None:
    """Return the mistake in options that belong to another one, if there is one."""
    return "argument --sync: only with --data" if given.sync is not None and given.data is None else None


async def run(given: argparse.Namespace, output: Output) -> None:
    chosen = _chosen(given)
    if chosen.ignored:
        output.note(f"ignored, because this broker has no such setting: {', '.join(chosen.ignored)}")

    store = None if given.data is None else SqliteStore(given.data, sync=given.sync or "always")

    async def serve() -> None:
        running = open_broker(
            store=store,
            allow_unauthenticated=given.allow_unauthenticated,
            test_control=given.test_control,
            seed=given.seed,
            **chosen.options,
        )
        async with running as broker:
            ready: dict[str, object] = {"url": broker.url, "port": broker.port}
            text = f"ready {broker.url}"
            if broker.admin_url is not None:
                ready |= {"admin_url": broker.admin_url, "http_port": broker.http_port}
                text += f"\nadmin {broker.admin_url}"
            if broker.tls_url is not None:
                ready["tls_url"] = broker.tls_url
                text += f"\ntls {broker.tls_url}"
            if broker.admin_url_tls is not None:
                ready["admin_url_tls"] = broker.admin_url_tls
                text += f"\nadmin tls {broker.admin_url_tls}"
            if store is not None:
                ready |= {"data": str(store.folder), "sync": store.sync}
                text += f"\ndata {store.folder} (sync {store.sync})"
            if chosen.ignored:
                ready["ignored"] = chosen.ignored
            output.result(text, event="ready", **ready)
            await broker.wait_failed()

    with connections_logged() if given.test_control else nullcontext():
        await until_signal(partial(until_eof, serve) if given.stop_at_eof else serve)
    output.result("stopped", event="stopped")


@contextmanager
def connections_logged() -> Iterator[None]:
    """Write to standard error why connections end, while the block runs. Warnings are written anyway."""
    logger, handler = getLogger("pulsar_trio.broker"), StreamHandler()
    handler.setFormatter(Formatter("%(asctime)s %(message)s"))
    handler.addFilter(lambda record: record.levelno < WARNING)
    level = logger.level
    logger.setLevel(INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


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
    for option, name in TLS_OPTIONS.items():
        if getattr(given, option) is not None:
            settings.append(Property(name, getattr(given, option), f"--{option.replace('_', '-')}"))
    chosen = choose(settings)
    if "tls" not in chosen.options and chosen.options.keys() & {"tls_port", "https_port"}:
        raise InvalidConfiguration("a port for TLS needs tlsCertificateFilePath (--tls-certificate)")
    chosen.options.setdefault("port", DEFAULT_PORT)
    for option in ("host", "port", "http_port", "max_stored_bytes", "protocol_version"):
        if getattr(given, option) is not None:
            chosen.options[option] = getattr(given, option)
    if given.no_feature_flags:
        chosen.options["feature_flags"] = False
    return chosen
