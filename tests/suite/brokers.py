"""The suite's needs of any broker: a URL, an administrator, and an end by force."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import trio

from pulsar_sansio import MemoryStore
from pulsar_trio import EmbeddedBroker, serve
from tests.real_pulsar import Admin, RealPulsar

DEDUPLICATION = "public/deduplication"
"""A namespace whose topics drop what they have already."""

NO_TOPIC_CREATION = "public/no-topic-creation"
"""A namespace where a topic has to be created before it is used."""

NO_SUBSCRIPTION_CREATION = "public/no-subscription-creation"
"""A namespace where a subscription has to be created before it is used."""

LOOK_INTERVAL = 1.0
"""Seconds between looks at backlog quotas, as tests/real_pulsar/standalone.conf has it."""

ResultT = TypeVar("ResultT")


class BrokerUnderTest(ABC):
    """A running broker with the namespaces above."""

    name: str
    url: str
    """Names the broker as it names itself."""

    url_by_another_name: str
    """Names the same address in another way: the broker asks to be used as a proxy."""

    admin: Admin
    """The administration over HTTP."""

    async def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One request to the administration: the status, and the answer, or the reason of a refusal."""
        return await _in_thread(lambda: self.admin.exchange(method, path, body))

    @abstractmethod
    async def create_topic(self, topic: str) -> None: ...

    @abstractmethod
    async def create_partitioned_topic(self, topic: str, partitions: int) -> None: ...

    @abstractmethod
    async def unload(self, topic: str) -> None:
        """Close the topic in the broker and tell its clients."""

    @abstractmethod
    async def terminate(self, topic: str) -> None: ...

    @abstractmethod
    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with its subscriptions, even if clients are connected."""

    @abstractmethod
    async def subscriptions(self, topic: str) -> list[str]: ...

    @abstractmethod
    async def kill(self) -> None:
        """No good-bye: connections are cut, what was not stored is lost."""

    @abstractmethod
    async def start(self) -> None:
        """Again, on the same port, over what was stored."""


class OurBroker(BrokerUnderTest):
    """The embedded broker over a memory store, which outlives it."""

    name = "ours"

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._store = MemoryStore()
        self._port = 0
        self._http_port = 0

    async def start(self) -> None:
        self._scope = trio.CancelScope()
        self._gone = trio.Event()
        self._broker = await self._nursery.start(self._run)
        self._port = self._broker.port
        assert self._broker.http_port is not None
        self._http_port = self._broker.http_port
        self.admin = Admin("127.0.0.1", self._http_port)
        self.url = self._broker.url
        self.url_by_another_name = f"pulsar://localhost:{self._port}"

    async def _run(self, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        try:
            with self._scope:
                await serve(
                    self._port,
                    store=self._store,
                    http_port=self._http_port,
                    proxy_through_service_url=True,
                    housekeeping_interval=LOOK_INTERVAL,
                    task_status=task_status,
                )
        finally:
            self._gone.set()

    async def kill(self) -> None:
        self._scope.cancel()
        await self._gone.wait()

    def prepare(self) -> None:
        """Make the namespaces."""
        for namespace in (DEDUPLICATION, NO_TOPIC_CREATION, NO_SUBSCRIPTION_CREATION):
            self._broker.create_namespace(namespace)
        self._broker.set_policy(DEDUPLICATION, "deduplication", True)
        self._broker.set_policy(NO_TOPIC_CREATION, "auto_topic_creation", False)
        self._broker.set_policy(NO_SUBSCRIPTION_CREATION, "auto_subscription_creation", False)

    async def create_topic(self, topic: str) -> None:
        self._broker.create_topic(topic)

    async def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        self._broker.create_partitioned_topic(topic, partitions)

    async def unload(self, topic: str) -> None:
        self._broker.unload(topic)

    async def terminate(self, topic: str) -> None:
        self._broker.terminate(topic)

    async def delete_topic(self, topic: str) -> None:
        self._broker.delete_topic(topic, force=True)

    async def subscriptions(self, topic: str) -> list[str]:
        return sorted(self._broker.stats(topic)["subscriptions"])


class RealBroker(BrokerUnderTest):
    """A standalone Apache Pulsar; one for all tests."""

    name = "real"

    def __init__(self, pulsar: RealPulsar) -> None:
        self._pulsar = pulsar
        self.admin = pulsar.admin
        self.url = pulsar.url
        self.url_by_another_name = pulsar.url_by_another_name

    async def start(self) -> None:
        await _in_thread(self._pulsar.start)

    async def kill(self) -> None:
        await _in_thread(self._pulsar.kill)

    async def create_topic(self, topic: str) -> None:
        await _in_thread(lambda: self._pulsar.admin.create_topic(topic))

    async def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        await _in_thread(lambda: self._pulsar.admin.create_partitioned_topic(topic, partitions))

    async def unload(self, topic: str) -> None:
        """Unload a topic once the cursor's first ledger is there. A real broker confirms an acknowledgement
        before that, and an unload just then would lose it."""
        admin = self._pulsar.admin
        while await _in_thread(lambda: "SwitchingLedger" in admin.cursor_states(topic)):  # noqa: ASYNC110
            await trio.sleep(0.02)
        await _in_thread(lambda: admin.unload(topic))

    async def terminate(self, topic: str) -> None:
        await _in_thread(lambda: self._pulsar.admin.terminate(topic))

    async def delete_topic(self, topic: str) -> None:
        await _in_thread(lambda: self._pulsar.admin.delete_topic(topic, force=True))

    async def subscriptions(self, topic: str) -> list[str]:
        return sorted(await _in_thread(lambda: self._pulsar.admin.subscriptions(topic)))


def prepare_real_pulsar(pulsar: RealPulsar) -> None:
    """Make the namespaces in a real Pulsar."""
    admin = pulsar.admin
    for namespace in (DEDUPLICATION, NO_TOPIC_CREATION, NO_SUBSCRIPTION_CREATION):
        admin.create_namespace(namespace)
    admin.set_namespace_policy(DEDUPLICATION, "deduplication", True)
    admin.set_namespace_policy(NO_TOPIC_CREATION, "autoTopicCreation", {"allowAutoTopicCreation": False})
    admin.set_namespace_policy(
        NO_SUBSCRIPTION_CREATION, "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}
    )


async def _in_thread(call: Callable[[], ResultT]) -> ResultT:
    return await trio.to_thread.run_sync(call)
