"""The administrator's last round: when no client is left, it reads and moves what exists (INV-A1).

Owns the commands for one topic of every broker that still holds any, and their answers: the store lists the
entries, and everything else follows from them. Last, every broker is stopped and restarted over the store,
and must have the state of before. None of it is traced, and nothing follows it.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.broker.admin_errors import AlreadyExists, NotFound
from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.broker.outputs import Persist
from pulsar_sansio.model.errors import InvalidConfiguration, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST, MessageId
from pulsar_sansio.model.topic_name import TopicName

from ..conversations.broker_options import check_broker_options
from ..engine.failures import ViolationError
from ..engine.leftovers.inputs import check_recorded
from ..engine.profile import AUDIT
from .raw_conversations import RawConversations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine.nodes.broker_node import BrokerNode
    from ..engine.randomness import Stream
    from .world import World

ROUNDS_PERMILLE = 250

SUBSCRIPTION = "last-round"

PRESENT_VERSION = 21
"""The protocol version of brokers that know all commands of the conversations."""

PROPERTIES = {"round": "last", "of": "all"}

VOLATILE = frozenset(
    {
        "readPosition",
        "waitingReadOp",
        "waitingCursorsCount",
        "active",
        "numberOfEntriesSinceFirstNotAckedMessage",
        "subscriptionHavePendingRead",
        "entriesAddedCounter",
        "messagesConsumedCounter",
        "lastLedgerCreatedTimestamp",
        "compactedLedger",
    }
)
"""Internal statistics that a broker counts only since it serves the topic."""

FRESH: dict[str, object] = {
    "backlogQuotaLimitSize": -1,
    "backlogQuotaLimitTime": -1,
    "oldestBacklogMessageAgeSeconds": -1,
    "subscriptions.type": "None",
    "subscriptions.isDurable": True,
    "subscriptions.durable": True,
    "state": "LedgerOpened",
    "lastConfirmedEntry": "first:-1",
    "cursors.markDeletePosition": "first:-1",
    "cursors.readPosition": "first:0",
    "cursors.cursorLedger": -1,
    "cursors.cursorLedgerLastEntry": -1,
    "cursors.individuallyDeletedMessages": "[]",
    "cursors.state": "NoLedger",
    "cursors.numberOfEntriesSinceFirstNotAckedMessage": 1,
    "compactedLedger.ledgerId": -1,
    "compactedLedger.entries": -1,
    "compactedLedger.size": -1,
}
"""Statistics of a new topic with a subscription. All others are 0, False, or empty."""

NOT_TOLD = frozenset({"deduplicationStatus", "lastLedgerCreatedTimestamp", "ledgers.ledgerId", "ownerBroker"})
"""Statistics that depend on the broker."""

NEVER = {"offloaded": False, "underReplicated": False}
"""Statistics that are equal for every ledger."""


def make_last_round(world: "World") -> None:
    """INV-A1: make the last round for every broker that has written everything; only in some worlds, because
    it takes time."""
    stream = world.streams.stream("last round")
    if not stream.chance(ROUNDS_PERMILLE):
        return
    for node in world.brokers:
        if node.broker is not None and node.is_done:
            _Round(world, node, node.broker, stream).make()


class _Round:
    """The last round of one broker."""

    def __init__(self, world: "World", node: "BrokerNode", broker: Broker, stream: "Stream") -> None:
        self._world = world
        self._node = node
        self._broker = broker
        self._stream = stream
        self._conversations: RawConversations | None = None

    @property
    def _now(self) -> int:
        """The present moment: conversations may have taken time."""
        return self._world.clock.now if self._conversations is None else self._conversations.now

    def make(self) -> None:
        topics = [name for name in self._world.topics.names if self._may_be_moved(name)]
        if topics:
            topic = self._stream.choice(topics)
            self._use(topic)
        self._create_namespace()
        self._refuse_commands()
        if self._world.issuer is None and self._node.config.protocol_version >= PRESENT_VERSION:
            self._converse()
        self._start_again()

    def _may_be_moved(self, topic: str) -> bool:
        """True when the broker owns the topic, and all of it is kept."""
        cluster = self._node.cluster
        return (
            cluster.owners.get(topic) == self._node.name
            and topic in self._broker.topics.by_name
            and topic not in self._world.administrator.migrated
            and AUDIT in self._broker.subscription_administration.subscriptions(topic)
        )

    # --- one topic ------------------------------------------------------------------------------------------

    def _use(self, topic: str) -> None:
        """Create a subscription, move it, and delete it."""
        broker, stream = self._broker, self._stream
        ids = [
            MessageId(*message_position, TopicName.parse(topic).partition)
            for message_position, _ in self._node.cluster.durable(topic)
        ]
        self._check_ledgers(topic, ids)
        self._do(
            broker.subscription_administration.create_subscription, topic, SUBSCRIPTION, EARLIEST, PROPERTIES
        )
        self._refused(
            AlreadyExists, broker.subscription_administration.create_subscription, topic, SUBSCRIPTION
        )
        self._check_backlog(topic, ids)
        if ids:
            count = stream.below(len(ids) + 1)
            self._do(broker.subscription_administration.skip_messages, topic, SUBSCRIPTION, count)
            self._check_backlog(topic, ids[count:])
            first = stream.below(len(ids))
            self._do(broker.subscription_administration.reset_cursor, topic, SUBSCRIPTION, ids[first])
            self._check_backlog(topic, ids[first:])
            self._check_single(topic, ids, first)
            last = first + stream.below(len(ids) - first)
            self._do(broker.subscription_administration.expire_messages, topic, SUBSCRIPTION, ids[last])
            self._check_backlog(topic, ids[last + 1 :])
            expired = broker.topic_administration.stats(topic)["subscriptions"][SUBSCRIPTION][
                "totalMsgExpired"
            ]
            self._agree("expired", expired, last + 1 - first)
            self._do(broker.subscription_administration.reset_cursor, topic, SUBSCRIPTION, 0)
            self._check_backlog(topic, ids)
            self._do(broker.subscription_administration.skip_messages, topic, SUBSCRIPTION, None)
            self._check_backlog(topic, [])
            self._do_reset_behind(topic, ids, first)
        self._keep_properties(topic)
        before = self._image(broker, topic)
        self._do(broker.topic_administration.unload, topic)
        self._agree("after an unload", self._image(broker, topic), before)
        self._do(broker.subscription_administration.delete_subscription, topic, SUBSCRIPTION)
        self._refused(NotFound, broker.subscription_administration.delete_subscription, topic, SUBSCRIPTION)
        self._agree(
            "the subscription", SUBSCRIPTION in broker.subscription_administration.subscriptions(topic), False
        )

    def _check_ledgers(self, topic: str, ids: list[MessageId]) -> None:
        inside = self._broker.topic_administration.internal_stats(topic)
        self._agree("entries", inside["numberOfEntries"], len(ids))
        for ledger in inside["ledgers"]:
            held = len([each for each in ids if each.ledger_id == ledger["ledgerId"]])
            self._agree("entries of a ledger", ledger["entries"], held)
            if held > self._broker.config.ledger_max_entries:
                self._fail(f"ledger {ledger['ledgerId']} of {topic} has {held} entries")
            self._agree("a ledger", {name: ledger[name] for name in NEVER}, NEVER)
        last = ids[-1] if ids else None
        if last is not None:
            self._agree("the last entry", self._broker.topic_administration.last_message_id(topic), last)

    def _check_single(self, topic: str, ids: list[MessageId], number: int) -> None:
        """Single entries are found by number and by id."""
        broker, wanted = self._broker, ids[number]
        self._agree("read", broker.topic_administration.read_entry(topic, *wanted[:2]).message_id, wanted)
        self._agree(
            "examined",
            broker.topic_administration.examine(topic, number + 1, from_end=False).message_id,
            wanted,
        )
        behind = broker.topic_administration.examine(topic, len(ids) - number, from_end=True)
        self._agree("examined from the end", behind.message_id, wanted)

    def _check_backlog(self, topic: str, ids: list[MessageId]) -> None:
        """All accounts of the subscription's backlog agree."""
        broker = self._broker
        found = broker.topic_administration.stats(topic)["subscriptions"][SUBSCRIPTION]
        self._agree("backlog", found["msgBacklog"], len(ids))
        analysis = broker.subscription_administration.analyze_backlog(topic, SUBSCRIPTION)
        self._agree("analysis", analysis.entries, len(ids))
        ends = (ids[0], ids[-1]) if ids else (None, None)
        self._agree("ends of the backlog", (analysis.first, analysis.last), ends)
        if ids:
            number = self._stream.below(min(3, len(ids)))
            peeked = broker.subscription_administration.peek(topic, SUBSCRIPTION, number + 1).message_id
            self._agree("peek", peeked, ids[number])
        self._refused(
            NotFound, lambda now: broker.subscription_administration.peek(topic, SUBSCRIPTION, len(ids) + 1)
        )

    def _do_reset_behind(self, topic: str, ids: list[MessageId], first: int) -> None:
        now = self._now
        self._broker.subscription_administration.reset_cursor(
            now, topic, SUBSCRIPTION, ids[first], inclusive=False
        )
        self._settle()
        self._check_backlog(topic, ids[first + 1 :])

    def _keep_properties(self, topic: str) -> None:
        broker = self._broker
        kept = broker.subscription_administration.subscription_properties(topic, SUBSCRIPTION)
        self._agree("properties of a subscription", kept, PROPERTIES)
        self._do(
            broker.subscription_administration.set_subscription_properties,
            topic,
            SUBSCRIPTION,
            {"round": "over"},
        )
        changed = broker.topic_administration.stats(topic)["subscriptions"][SUBSCRIPTION][
            "subscriptionProperties"
        ]
        self._agree("properties of a subscription", changed, {"round": "over"})
        before = broker.administration.topic_properties(topic)
        self._do(broker.administration.update_topic_properties, topic, {"round": "last"})
        self._agree("properties", broker.administration.topic_properties(topic), {**before, "round": "last"})
        self._do(broker.administration.remove_topic_property, topic, "round")
        self._agree("properties", broker.administration.topic_properties(topic), before)

    # --- creating and deleting --------------------------------------------------------------------------

    def _create_namespace(self) -> None:
        """Create a tenant, a namespace and a topic; they stay for the restart."""
        broker, tenant = self._broker, f"of-{self._node.name}"
        namespace = f"{tenant}/last"
        topic = f"persistent://{namespace}/topic"
        self._node.cluster.owners[topic] = self._node.name
        self._do(broker.administration.create_tenant, tenant)
        self._do(broker.administration.create_namespace, namespace)
        self._agree("namespaces", list(broker.administration.namespaces(tenant)), [namespace])
        self._do(broker.administration.set_policy, namespace, "message_ttl", 7)
        self._do(broker.topic_administration.create_topic, topic, PROPERTIES)
        if self._node.cluster.several:  # one broker of several is told which topics exist
            self._do(broker.ownership.topic_made, topic)
        self._agree("topics", broker.topic_administration.topics(namespace), [topic])
        self._agree("a policy", broker.administration.policies_of(topic, True).message_ttl, 7)
        self._do(broker.administration.set_policy, topic, "message_ttl", 3)
        self._agree("a policy", broker.administration.policies_of(topic, True).message_ttl, 3)
        self._do(broker.subscription_administration.create_subscription, topic, SUBSCRIPTION)
        first = broker.topic_administration.internal_stats(topic)["ledgers"][0]["ledgerId"]
        for statistics in (
            broker.topic_administration.stats(topic),
            broker.topic_administration.internal_stats(topic),
        ):
            for name, found in _leaves(statistics):
                wanted = FRESH.get(name, found if name in NOT_TOLD else 0)
                wanted = wanted.replace("first", f"{first}") if isinstance(wanted, str) else wanted
                self._agree_fresh(name, found, wanted)
        self._make_a_nonpersistent_topic(f"non-{topic}")

    def _make_a_nonpersistent_topic(self, topic: str) -> None:
        broker = self._broker
        self._do(broker.topic_administration.create_topic, topic)
        for statistics in (
            broker.topic_administration.stats(topic),
            broker.topic_administration.internal_stats(topic),
        ):
            for name, found in _leaves(statistics):
                self._agree_fresh(name, found, found if name in NOT_TOLD else 0)
        self._do(broker.topic_administration.delete_topic, topic)
        self._refused(NotFound, lambda now: broker.topic_administration.stats(topic))

    def _agree_fresh(self, name: str, found: object, wanted: object) -> None:
        if found != wanted and (found or wanted):
            self._fail(f"{name} of a new topic: {found} found, {wanted} expected")

    def _refuse_commands(self) -> None:
        """Give commands that the broker has to refuse, each for one mistake."""
        broker, tenant = self._broker, f"of-{self._node.name}"
        topic = f"persistent://{tenant}/last/topic"
        missing = f"persistent://{tenant}/last/missing"
        self._own(missing)
        administration, topics = broker.administration, broker.topic_administration
        subscriptions = broker.subscription_administration
        half = "\ud800"
        for error, command, *arguments in (
            (InvalidConfiguration, administration.set_policy, topic, "no_policy", 1),
            (InvalidConfiguration, administration.set_policy, topic, 1, 1),
            (InvalidConfiguration, administration.set_policy, topic, "message_ttl", "long"),
            (InvalidConfiguration, administration.set_policy, topic, "max_producers", 1.5),
            (InvalidConfiguration, administration.update_topic_properties, topic, {half: "x"}),
            (InvalidConfiguration, administration.update_topic_properties, topic, {"x": "x" * 70_000}),
            (NotFound, administration.update_topic_properties, missing, {"x": "x"}),
            (AlreadyExists, administration.create_tenant, tenant),
            (AlreadyExists, administration.create_namespace, f"{tenant}/last"),
            (NotFound, administration.create_namespace, f"{tenant}-missing/last"),
            (AlreadyExists, topics.create_topic, topic),
            (NotFound, topics.create_topic, f"persistent://{tenant}/missing/topic"),
            (NotFound, topics.delete_topic, missing),
            (NotFound, topics.terminate, missing),
            (NotFound, subscriptions.delete_subscription, topic, "missing"),
            (NotFound, subscriptions.skip_messages, topic, "missing", 1),
            (NotFound, subscriptions.reset_cursor, topic, "missing", 0),
        ):
            self._refused(error, command, *arguments)
        self._settle()
        check_broker_options()

    def _converse(self) -> None:
        """INV-A2: let raw peers talk to the broker, in a namespace of their own."""
        node, broker, world = self._node, self._broker, self._world
        namespace = f"of-{node.name}/raw"
        self._do(broker.administration.create_namespace, namespace)
        self._conversations = RawConversations(
            broker, world.clock.now, world.wall_time(), self._stream, self._settle, self._own
        )
        self._conversations.hold(namespace)

    def _own(self, topic: str) -> None:
        """Make the broker the owner of a topic's name."""
        self._node.cluster.owners[topic] = self._node.name

    # --- restart ----------------------------------------------------------------------------------------

    def _start_again(self) -> None:
        now = self._now
        node, broker = self._node, self._broker
        broker.shutdown(now)
        self._settle()
        again = Broker(
            now,
            node.config,
            node.cluster.load(node),
            seed=0,
            wall_time=self._world.wall_time(),
            reader=node.cluster.reader,
        )
        mine = [name for name in broker.topics.by_name if self._is_mine(name)]
        self._agree("topics after a restart", sorted(again.topics.by_name), sorted(mine))
        for topic in mine:
            before, after = self._image(broker, topic), self._image(again, topic)
            self._agree(f"{topic} after a restart", after, before)
            for name in again.subscription_administration.subscriptions(topic):
                kept = again.subscription_administration.subscription_properties(topic, name)
                expected = broker.subscription_administration.subscription_properties(topic, name)
                self._agree(f"{name} after a restart", kept, expected)
        for what in ("policies", "tenants", "properties"):
            expected = getattr(broker.metadata, what)
            found = {name: value for name, value in getattr(again.metadata, what).items() if name in expected}
            self._agree(f"{what} after a restart", found, expected)

    def _is_mine(self, topic: str) -> bool:
        persistent = topic.startswith("persistent://")
        return persistent and self._node.cluster.owners.get(topic, self._node.name) == self._node.name

    def _image(self, broker: Broker, topic: str) -> dict[str, Any]:
        """Return internal statistics, without those counted only since the broker serves the topic, and
        without subscriptions that are not durable."""
        subscriptions = broker.topic_administration.stats(topic)["subscriptions"]
        inside = broker.topic_administration.internal_stats(topic)
        found = {name: value for name, value in inside.items() if name not in VOLATILE}
        found["cursors"] = {
            name: {key: value for key, value in cursor.items() if key not in VOLATILE}
            for name, cursor in inside["cursors"].items()
            if subscriptions[name]["isDurable"]
        }
        return found

    # --- helpers ----------------------------------------------------------------------------------------

    def _do(self, command: "Callable[..., Any]", *arguments: Any) -> None:
        command(self._now, *arguments)
        self._settle()

    def _refused(
        self, error: type[LocalProtocolError], command: "Callable[..., Any]", *arguments: Any
    ) -> None:
        try:
            command(self._now, *arguments)
        except error:
            return
        self._fail(f"{command} of {arguments} is not refused")

    def _settle(self) -> None:
        """Make everything durable that is to be written."""
        now = self._now
        while (output := self._broker.next_output()) is not None:
            if isinstance(output, Persist):
                self._node.cluster.write(self._node, output.records)
                self._broker.persisted(now, output.write)
            elif self._conversations is not None:
                self._conversations.obey(output)
        check_recorded(self._node.name, self._broker, writing=False)

    def _agree(self, what: str, found: object, expected: object) -> None:
        if found == expected:
            return
        if isinstance(found, dict) and isinstance(expected, dict):  # name the differences only
            for name in dict.fromkeys((*found, *expected)):
                self._agree(f"{what}, {name}", found.get(name), expected.get(name))
        self._fail(f"{what}: {found} found, {expected} expected")

    def _fail(self, text: str) -> None:
        raise ViolationError("INV-A1", f"{self._node.name}: {text}")


def _leaves(statistics: dict[str, Any], before: str = "") -> "Iterator[tuple[str, object]]":
    """Yield the values of statistics that are no dict. Names of subscriptions, cursors and ledgers are left
    out."""
    for name, value in statistics.items():
        inner = f"{before}{name}."
        if name in ("subscriptions", "cursors"):
            for each in value.values():
                yield from _leaves(each, inner)
        elif isinstance(value, dict):
            yield from _leaves(value, inner)
        elif name == "ledgers":
            for each in value:
                yield from _leaves(each, inner)
        else:
            yield f"{before}{name}", value
