"""`EmbeddedBroker`: a running broker as its program sees it, with the commands of an administrator."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import trio

from pulsar_sansio import MessageId, StoredState, WantedState, milliseconds_of

from .broker_faults import BrokerFaults

if TYPE_CHECKING:
    from .server import BrokerDriver


class EmbeddedBroker:
    """A running broker. What an administrator does are plain methods that take effect at once; they raise
    `LocalProtocolError` for what cannot be done.

    A `MemoryStore` has such a change when the method returns. A store on disk writes it next: `flush` waits.
    """

    def __init__(self, driver: "BrokerDriver", urls: Mapping[str, str]) -> None:
        self._driver = driver
        self.url = urls["service_url"]
        """The service URL for clients."""
        self.port = _port_in(self.url)
        self.tls_url = urls.get("service_url_tls")
        """The service URL for clients with TLS; None without a port for it."""
        self.admin_url = urls.get("web_service_url")
        """The URL for Pulsar's administration tools, if there is an HTTP port."""
        self.http_port = None if self.admin_url is None else _port_in(self.admin_url)
        self.admin_url_tls = urls.get("web_service_url_tls")
        """The URL for Pulsar's administration tools by HTTPS, if there is a port for it."""
        self.faults = BrokerFaults(driver)
        """Rules by which the broker fails, for tests of applications."""

    async def wait_failed(self) -> NoReturn:
        """Wait until the broker fails, which only a bug or a store that cannot write makes it do."""
        await self._driver.failed.wait()
        assert self._driver.failure is not None
        raise self._driver.failure.with_traceback(None)

    async def flush(self) -> None:
        """Wait until the store has every change that was made so far.

        Raises `StoreFailed`, and `trio.ClosedResourceError` where the broker was closed before it stored one.
        """
        await self._driver.flush()

    def create_tenant(self, tenant: str, admin_roles: Iterable[str] = ()) -> None:
        """Create a tenant. `admin_roles` may do everything in it, where the broker authorizes."""
        self._command(self._driver.machine.administration.create_tenant, tenant, admin_roles)

    def create_namespace(self, namespace: str) -> None:
        """`namespace` is `tenant/namespace`."""
        self._command(self._driver.machine.administration.create_namespace, namespace)

    def set_policy(self, scope: str, policy: str, value: object) -> None:
        """Set one of `Policies` for a namespace (`tenant/namespace`) or a topic (its full name)."""
        self._command(self._driver.machine.administration.set_policy, scope, policy, value)

    def grant(self, scope: str, role: str, *actions: str) -> None:
        """Permit a role these actions, some of `ACTIONS`, in a namespace (`tenant/namespace`) or a topic.

        They replace the actions that the role had there; none revoke the permission.
        """
        self._command(self._driver.machine.administration.grant, scope, {role: actions})

    def grant_subscription(self, namespace: str, subscription: str, *roles: str) -> None:
        """Reserve a subscription of a namespace for these roles; none make it free for all."""
        self._command(
            self._driver.machine.administration.grant_subscription, namespace, {subscription: roles}
        )

    def create_topic(self, topic: str) -> None:
        """Create a topic without partitions, or a missing partition of a partitioned topic.

        Raises `AlreadyExists`, `NotFound` where the namespace does not exist, `LimitReached`, and
        `InvalidConfiguration` for the name of a partition beyond the last one.
        """
        self._command(self._driver.machine.topic_administration.create_topic, topic)

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of `partitions` (1 to 10 000) partitions, and the partitions themselves."""
        self._command(self._driver.machine.topic_administration.create_partitioned_topic, topic, partitions)

    def update_partitions(self, topic: str, partitions: int) -> None:
        """Raise the number of partitions. Raises `NotFound`, and `InvalidConfiguration` for fewer."""
        self._command(self._driver.machine.topic_administration.update_partitions, topic, partitions)

    def unload(self, topic: str) -> None:
        """Send producers and consumers of a topic away, as if another broker had taken it."""
        self._command(self._driver.machine.topic_administration.unload, topic)

    def terminate(self, topic: str) -> MessageId:
        """End a topic: it takes no more messages. Gives the id of its last one."""
        last: MessageId = self._command(self._driver.machine.topic_administration.terminate, topic)
        return last

    def delete_topic(self, topic: str, *, force: bool = False) -> None:
        """Delete a topic with all its partitions.

        Raises `NotFound`, or `InUse` while producers or consumers are connected, unless `force`.
        """
        self._command(self._driver.machine.topic_administration.delete_topic, topic, force)

    def reset_cursor(self, topic: str, subscription: str, position: MessageId | int | datetime) -> None:
        """Move a subscription to a message id, or to a publish time: a datetime with a time zone, or
        milliseconds since 1970."""
        if isinstance(position, datetime):
            position = milliseconds_of("position", position)
        self._command(
            self._driver.machine.subscription_administration.reset_cursor, topic, subscription, position
        )

    def topics(self, namespace: str = "public/default") -> list[str]:
        """Return the full names of the namespace's topics, each partition by itself. Raises `NotFound`."""
        return list(self._driver.machine.topic_administration.topics(namespace))

    def stats(self, topic: str) -> dict[str, Any]:
        """Producers, subscriptions and counters of a topic, named as Pulsar's admin API names them."""
        return dict(self._driver.machine.topic_administration.stats(topic))

    def internal_stats(self, topic: str) -> dict[str, Any]:
        """Ledgers and cursors of a topic."""
        return dict(self._driver.machine.topic_administration.internal_stats(topic))

    # --- for tests of applications ------------------------------------------------------------------------

    async def until(
        self,
        *,
        producers: int | None = None,
        consumers: int | None = None,
        backlog: int | None = None,
        topic: str = "*",
        subscription: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Wait until the broker has exactly these numbers; None is any number.

        `producers`, `consumers`: connected ones. `backlog`: messages (entries) that are not acknowledged, of
        all subscriptions together; without a subscription there is none, not even 0. `topic`: a name, or a
        pattern with `*`; `subscription`: counts its consumers and its backlog only.
        Raises `trio.TooSlowError` after `timeout` seconds, with the numbers at that moment,
        `trio.ClosedResourceError` when the broker is closed, and `InvalidConfiguration`.
        """
        wanted = WantedState(
            producers=producers, consumers=consumers, backlog=backlog, topic=topic, subscription=subscription
        )
        driver = self._driver
        with trio.move_on_after(timeout):
            await trio.lowlevel.checkpoint()
            while driver.machine.topic_administration.differences(wanted):
                await driver.changed()
        different = driver.machine.topic_administration.differences(wanted)
        if different:
            raise trio.TooSlowError(f"after {timeout:g} s: {different}")

    def reset(self) -> None:
        """Cut all connections, and return to the state of the start: topics, policies, counters, no faults.

        Ids of messages and names of producers are not given again. Raises `NotApplicable` for a store other
        than `MemoryStore`.
        """
        self._driver.restore(None)

    def snapshot(self) -> StoredState:
        """Return all that the broker stores: topics, messages, subscriptions, policies; for `restore`."""
        return self._driver.snapshot()

    def restore(self, snapshot: StoredState) -> None:
        """Cut all connections, and go on with a snapshot, as `reset` does with the state of the start.

        A snapshot may be restored any number of times, and at another broker.
        """
        self._driver.restore(snapshot)

    def _command(self, command: Callable[..., Any], *arguments: object) -> Any:
        return self._driver.command(command, *arguments)

    def __repr__(self) -> str:
        driver = self._driver
        state = "failed" if driver.failure is not None else "closed" if driver.stopped else "running"
        return f"<EmbeddedBroker at {self.url}, {state}>"


def _port_in(url: str) -> int:
    return int(url.rpartition(":")[2])
