"""The scenarios: how clients reach the cluster, and what happens to it while messages flow."""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import trio

from pulsar_trio import Client, TlsConfig, Token, open_client
from tests.cluster.real_cluster import NAMESPACE, SESSION_TIMEOUT, RealCluster
from tests.cluster.relay import Relay, SniRelay
from tests.cluster.workload import OpenClient, Verdict, Workload
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

Happening = Callable[[RealCluster, Workload], Awaitable[None]]


# --- what happens --------------------------------------------------------------------------------------


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


async def let_tokens_expire_and_kill(cluster: RealCluster, workload: Workload) -> None:
    await let_tokens_expire(cluster, workload)
    await kill_one_broker(cluster, workload)


async def unload_and_kill(cluster: RealCluster, workload: Workload) -> None:
    await trio.to_thread.run_sync(cluster.unload_namespace)
    await workload.flows()
    await kill_one_broker(cluster, workload)


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
    """A way to the cluster for clients. `taken`: True when their connections came that way."""

    open_client: OpenClient
    taken: Callable[[], bool]


def _client(url: str, options: dict[str, Any]) -> AbstractAsyncContextManager[Client]:
    return open_client(url, **options)


async def directly(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    return Way(partial(_client, cluster.url, _options(cluster)), lambda: True)


async def by_http_lookup(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    return Way(partial(_client, cluster.http_url, _options(cluster)), lambda: True)


async def through_the_relay(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    server = client = None
    if cluster.secure:
        client = ssl.create_default_context(cafile=str(cluster.authority.file))
        server = cluster.authority.server("localhost").make_context()
    ports = [each.tls_port if cluster.secure else each.port for each in cluster.brokers]
    relay = await nursery.start(Relay([f"localhost:{port}" for port in ports], server, client).run)
    return Way(partial(_client, relay.url, _options(cluster)), lambda: min(relay.tied, relay.lookups) > 0)


async def by_server_name(cluster: RealCluster, nursery: trio.Nursery) -> Way:
    relay = await nursery.start(SniRelay({each.name: each.tls_port for each in cluster.brokers}).run)
    names = ",".join(f"{each.name}:{each.tls_port}" for each in cluster.brokers)
    options = {**_options(cluster), "sni_proxy": relay.url, "listener_name": "outside"}
    return Way(partial(_client, f"pulsar+ssl://{names}", options), lambda: all(relay.routed.values()))


# --- the table -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """`plain`, `secure`: the clusters that it runs in. `short`: it belongs to the short form, too."""

    name: str
    happen: Happening
    way: Callable[[RealCluster, trio.Nursery], Awaitable[Way]] = directly
    plain: bool = True
    secure: bool = True
    short: bool = False

    async def run(self, cluster: RealCluster) -> Verdict:
        topic = f"persistent://{NAMESPACE}/scenario-{next(_numbers)}"
        await _create(cluster, topic)
        async with trio.open_nursery() as nursery:
            way = await self.way(cluster, nursery)
            verdict = await Workload(topic, way.open_client).run(partial(self.happen, cluster))
            assert way.taken(), "the connections came another way"
            nursery.cancel_scope.cancel()
        return verdict


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


SCENARIOS = (
    Scenario("bundles are unloaded", unload),
    Scenario("both brokers are killed, one after the other", kill_brokers),
    Scenario("the bookie is away", take_the_bookie_away),
    Scenario("a rolling restart", restart_in_turn),
    Scenario("the metadata store is away", take_the_metadata_store_away),
    Scenario("through a relay; unload, kill", unload_and_kill, through_the_relay),
    Scenario("by lookups over HTTP; unload, kill", unload_and_kill, by_http_lookup),
    Scenario("routed by server name; unload, kill", unload_and_kill, by_server_name, plain=False),
    Scenario("tokens expire, then a kill", let_tokens_expire_and_kill, plain=False, short=True),
    Scenario("through a relay; unload", unload, through_the_relay, plain=False, short=True),
    Scenario(
        "routed by server name; tokens expire", let_tokens_expire, by_server_name, plain=False, short=True
    ),
)
