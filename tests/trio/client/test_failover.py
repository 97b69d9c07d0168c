"""Failover between two brokers of ours, automatic and controlled by a web service."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from pulsar_trio import (
    Authentication,
    AutoFailover,
    ControlledFailover,
    EmbeddedBroker,
    LocalProtocolError,
    Secret,
    open_broker,
    open_client,
    serve,
)
from tests.trio.broker.identities import authentication, guarded_broker, token
from tests.trio.client.test_http_lookup import web_server
from tests.trio.waiting import until

TOPIC = "persistent://public/default/failover"
FAILOVER: dict[str, Any] = {"failover_delay": 0.1, "switch_back_delay": 0.1, "check_interval": 0.05}


class Cluster:
    """A broker that can be stopped and started again on its port."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._scope = trio.CancelScope()
        self._gone = trio.Event()
        self.port = 0

    async def start(self) -> EmbeddedBroker:
        self._scope, self._gone = trio.CancelScope(), trio.Event()
        broker: EmbeddedBroker = await self._nursery.start(self._run)
        self.port = broker.port
        return broker

    async def stop(self) -> None:
        self._scope.cancel()
        await self._gone.wait()

    async def _run(self, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        with self._scope:
            await serve(self.port, task_status=task_status)
        self._gone.set()


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "pulsar_trio.connection")
    return caplog


def changes(log: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in log.records]
    return [text for text in found if text.startswith("changed from ")]


async def test_a_producer_goes_to_the_other_cluster_and_comes_back(
    nursery: trio.Nursery, warnings: pytest.LogCaptureFixture
) -> None:
    first = Cluster(nursery)
    primary = await first.start()
    async with open_broker() as secondary:
        failover = AutoFailover((secondary.url,), **FAILOVER)
        async with (
            open_client(primary.url, failover=failover, max_backoff=0.1) as client,
            client.create_producer(TOPIC) as producer,
        ):
            await producer.send(b"1")
            with pytest.raises(LocalProtocolError):
                client.update_service_url(secondary.url)
            await first.stop()
            await producer.send(b"2")
            assert secondary.stats(TOPIC)["msgInCounter"] == 1
            (text,) = changes(warnings)
            assert text.startswith(f"changed from {primary.url} to {secondary.url}: no probe of ")
            again = await first.start()
            await until(lambda: len(changes(warnings)) == 2)
            assert "the primary cluster has been available" in changes(warnings)[1]
            await producer.send(b"3")
            assert again.stats(TOPIC)["msgInCounter"] == 1
            assert secondary.stats(TOPIC)["msgInCounter"] == 1


@asynccontextmanager
async def control(named: object) -> AsyncIterator[str]:
    body = json.dumps(named).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with web_server(head + body, []) as url:
        yield url


async def test_a_web_service_names_the_cluster(warnings: pytest.LogCaptureFixture) -> None:
    async with open_broker() as named, control({"serviceUrl": named.url}) as url:
        failover = ControlledFailover(url)
        async with (
            open_client("pulsar://127.0.0.1:1", failover=failover, max_backoff=0.1) as client,
            client.create_producer(TOPIC) as producer,
        ):
            await producer.send(b"1")
            assert named.stats(TOPIC)["msgInCounter"] == 1
    (text,) = changes(warnings)
    assert text == f"changed from pulsar://127.0.0.1:1 to {named.url}: {url.removeprefix('http://')} names it"


class TokenByHost(Authentication):
    """Each cluster has a token of its own."""

    method = "token"

    async def credentials(self, host: str) -> Secret:
        return Secret(token("ada" if host == "127.0.0.1" else "bob"))


async def test_the_application_declares_the_credentials_of_each_cluster(
    warnings: pytest.LogCaptureFixture,
) -> None:
    """The first cluster knows ada only, and the second one bob only."""
    clusters = (
        guarded_broker(),
        open_broker(authentication=authentication(), advertised_host="localhost"),
    )
    async with clusters[0] as first, clusters[1] as second:
        second.grant("public/default", "bob", "produce")
        url = f"pulsar://localhost:{second.port}"
        async with control({"serviceUrl": url}) as service:
            options: dict[str, Any] = {"authentication": TokenByHost(), "broker_hosts": ("localhost",)}
            async with open_client(first.url, **options) as client, client.create_producer(TOPIC) as producer:
                await producer.send(b"to ada's cluster")
            options["failover"] = ControlledFailover(service)
            async with open_client(first.url, **options) as client:
                await until(lambda: changes(warnings))
                async with client.create_producer(TOPIC) as producer:
                    await producer.send(b"to bob's cluster")
        assert first.stats(TOPIC)["msgInCounter"] == second.stats(TOPIC)["msgInCounter"] == 1


async def test_a_client_that_does_nothing_asks_the_service_too(warnings: pytest.LogCaptureFixture) -> None:
    async with control({"serviceUrl": "pulsar://x", "authParamsString": "s"}) as url:
        async with open_client("pulsar://127.0.0.1:1", failover=ControlledFailover(url)):
            await until(lambda: warnings.records)
    (record,) = warnings.records
    assert record.getMessage().startswith("no other cluster was chosen: ")
    assert "authParamsString" in record.getMessage()
