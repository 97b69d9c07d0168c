"""The scenarios: every fault through every way to the cluster, while messages flow."""

import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import trio

from pulsar_trio import Client, TlsConfig, Token, open_client
from tests.cluster.dialled import Dialled
from tests.cluster.real_cluster import NAMESPACE, SESSION_TIMEOUT, RealCluster
from tests.cluster.relay import Relay, SniRelay
from tests.cluster.workload import OpenClient, Outcome, Workload
from tests.real_pulsar.admin import AdminError

PARTITIONS = 8
MAX_BACKOFF = 1.0
AWAY = 2 * SESSION_TIMEOUT / 1000
"""Seconds that the bookie or the metadata store is away: long enough for sessions to expire."""
LIFETIME = 4.0
"""Seconds that an expiring token is valid."""
RENEWALS = 4
"""Lifetimes of tokens that such a scenario lasts."""

_numbers = count()

Fault = Callable[[RealCluster, Workload], Awaitable[None]]


# --- faults --------------------------------------------------------------------------------------


async def unload(cluster: RealCluster, workload: Workload) -> None:
    for _ in range(3):
        await trio.to_thread.run_sync(cluster.unload_namespace)
        await workload.flows()


async def kill_brokers(cluster: RealCluster, workload: Workload) -> None:
    for broker in cluster.brokers:
        await trio.to_thread.run_sync(cluster.kill_broker, broker)
        await workload.flows()
        await trio.to_thread.run_sync(cluster.start_broker, broker)


async def kill_one_broker(cluster: RealCluster, workload: Workload) -> None:
    """Kill the broker of the first partition."""
    broker = await trio.to_thread.run_sync(cluster.owner_of, f"{workload.topic}-partition-0")
    await trio.to_thread.run_sync(cluster.kill_broker, broker)
    await workload.flows()
    await trio.to_thread.run_sync(cluster.start_broker, broker)


async def restart_in_turn(cluster: RealCluster, workload: Workload) -> None:
    for broker in cluster.brokers:
        await trio.to_thread.run_sync(cluster.stop_broker, broker)
        await trio.to_thread.run_sync(cluster.start_broker, broker)
        await workload.flows()


async def take_the_bookie_away(cluster: RealCluster, workload: Workload) -> None:
    await trio.to_thread.run_sync(cluster.stop_bookie)
    await trio.sleep(AWAY)
    await trio.to_thread.run_sync(cluster.start_bookie)


async def take_the_metadata_store_away(cluster: RealCluster, workload: Workload) -> None:
    await trio.to_thread.run_sync(cluster.stop_zookeeper)
    await trio.sleep(AWAY)
    await trio.to_thread.run_sync(cluster.start_zookeeper)


async def let_tokens_expire(cluster: RealCluster, workload: Workload) -> None:
    before = cluster.tokens_issued
    for _ in range(RENEWALS):
        await trio.sleep(LIFETIME)
        await workload.flows()
    assert cluster.tokens_issued >= before + RENEWALS, "the brokers asked for no new tokens"


# --- the ways to the cluster ---------------------------------------------------------------------------


def _options(cluster: RealCluster) -> dict[str, Any]:
    if not cluster.secure:
        return {"max_backoff": MAX_BACKOFF}
    return {
        "max_backoff": MAX_BACKOFF,
        "tls": TlsConfig(trust=cluster.authority.file),
        "authentication": Token(lambda: cluster.issue_token(LIFETIME)),
    }


class Way(NamedTuple):
    """A way to the cluster for clients. `taken`: True when all of their connections came that way."""

    open_client: OpenClient
    taken: Callable[[], bool]


MakeWay = Callable[[RealCluster, trio.Nursery], Awaitable[Way]]


def _client(url: str, options: dict[str, Any]) -> AbstractAsyncContextManager[Client]:
    return open_client(url, **options)


async def directly(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    return Way(partial(_client, cluster.url, _options(cluster)), lambda: True)


class Requests(logging.Handler):
    """Counts the requests that clients wrote: lookups over HTTP, and those of the binary protocol."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.over_http = 0
        self.binary = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if " answered: " not in text:
            self.over_http += "GET /lookup/v2/topic/" in text
            self.binary += text.endswith((": LOOKUP", ": PARTITIONED_METADATA"))


async def by_http_lookup(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    requests = Requests()
    log = logging.getLogger("pulsar_trio.request")
    log.addHandler(requests)
    log.setLevel(logging.DEBUG)

    def taken() -> bool:
        log.removeHandler(requests)
        log.setLevel(logging.NOTSET)
        return requests.over_http > PARTITIONS and requests.binary == 0

    return Way(partial(_client, cluster.http_url, _options(cluster)), taken)


async def through_the_relay(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    server = client = None
    if cluster.secure:
        client = ssl.create_default_context(cafile=str(cluster.authority.file))
        server = cluster.authority.server("localhost").make_context()
    ports = [each.tls_port if cluster.secure else each.port for each in cluster.brokers]
    relay = await nursery.start(Relay([f"localhost:{port}" for port in ports], server, client).run)
    dialled = Dialled()

    def taken() -> bool:
        return dialled.only(relay.url) and min(relay.tied, relay.lookups) > 0

    return Way(partial(_client, relay.url, _options(cluster)), taken)


async def by_server_name(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    relay = await nursery.start(SniRelay({each.name: each.tls_port for each in cluster.brokers}).run)
    names = ",".join(f"{each.name}:{each.tls_port}" for each in cluster.brokers)
    options = {**_options(cluster), "sni_proxy": relay.url, "listener_name": "outside"}
    dialled = Dialled()

    def taken() -> bool:
        return dialled.only(relay.url) and all(relay.routed.values())

    return Way(partial(_client, f"pulsar+ssl://{names}", options), taken)


# --- the table -----------------------------------------------------------------------------------------

EXPIRE = "tokens expire"

FAULTS: dict[str, Fault] = {
    "bundles are unloaded": unload,
    "both brokers are killed, one after the other": kill_brokers,
    "a rolling restart": restart_in_turn,
    "the bookie is away": take_the_bookie_away,
    "the metadata store is away": take_the_metadata_store_away,
    "the broker of a partition is killed": kill_one_broker,
    EXPIRE: let_tokens_expire,
}

WAYS: dict[str, MakeWay] = {
    "directly": directly,
    "through a relay": through_the_relay,
    "by lookups over HTTP": by_http_lookup,
    "routed by server name": by_server_name,
}


@dataclass(frozen=True)
class Scenario:
    """One way to a cluster, and the faults that happen to it one after the other."""

    way: str
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.way}: {', '.join(self.faults)}"

    async def run(self, cluster: RealCluster) -> Outcome:
        topic = f"persistent://{NAMESPACE}/scenario-{next(_numbers)}"
        await _create(cluster, topic)
        async with trio.open_nursery() as nursery:
            way = await WAYS[self.way](cluster, nursery)
            faults = {name: partial(FAULTS[name], cluster) for name in self.faults}
            outcome = await Workload(topic, way.open_client).run(faults)
            assert way.taken(), "the connections came another way"
            nursery.cancel_scope.cancel()
        return outcome


async def _create(cluster: RealCluster, topic: str) -> None:
    """Create the topic; a cluster that was disturbed a moment ago may refuse it for a while."""
    deadline = trio.current_time() + 60.0
    while True:
        try:
            create = partial(cluster.admin().create_partitioned_topic, topic, PARTITIONS)
            return await trio.to_thread.run_sync(create)
        except (AdminError, OSError):
            if trio.current_time() > deadline:
                raise
            await trio.sleep(0.5)


def scenarios(*, secure: bool) -> list[Scenario]:
    """Return every fault through every way. Only TLS has server names, and only it protects tokens."""
    faults = tuple(name for name in FAULTS if secure or name != EXPIRE)
    return [Scenario(way, faults) for way in WAYS if secure or WAYS[way] is not by_server_name]


SHORT = (
    Scenario("directly", (EXPIRE, "the broker of a partition is killed")),
    Scenario("through a relay", ("bundles are unloaded",)),
    Scenario("routed by server name", (EXPIRE,)),
)
"""The scenarios of the short form, with TLS and tokens."""
