"""Applications with a table view: the last value of every key of a topic, and the changes.

Owns what such an application does and which outputs it may get (INV-C18). When the view is ready or
refreshed, no value is older than the topic's value at the time of the request. Each change is reported once,
in the order of the topic, and the sum of the changes is the table. In the end the table holds the topic's
values, of all partitions; a key in several partitions has the value of one of them.

Two differences are allowed. Compaction also removes the message that deletes a key: a view that had not read
that far may keep the value until another message comes. And a message that a view is about to read may be
compacted away in favour of a later one, which the view reads later.
"""

from base64 import b64decode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from pulsar_sansio.client.outputs import (
    EndOfTopic,
    Output,
    RequestDone,
    RequestFailed,
    TableChanged,
    TopicJoined,
)
from pulsar_sansio.model.config import SubscriptionType, TableViewSpec
from pulsar_sansio.model.errors import SchemaDecodingError
from pulsar_sansio.model.schema import Schema
from pulsar_sansio.wire import unpack_payload

from ..engine.failures import ViolationError
from ..engine.profile import TableViewPlan
from ..model.compaction import KeyValue
from ..model.multi_topics_subscriptions import GroupRecord, GroupTopics
from ..model.positions.single_topic_position import TransientSubscription
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.message_position import BEFORE_ALL, MessagePosition, Position
from ..model.records.topic_record import TopicRecord
from ..model.schemas.topic_schemas import TableRow
from ..model.table_view_history import Explanation, TableViewHistory
from .client_process import REOPEN_DELAY
from .key_readers import decrypting
from .transient_app import SteppingApp

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings

PartKey: TypeAlias = tuple[int, str]
"""A key in one partition of the topic. After growth a key may be in two of them."""

NO_POSITIONS: Mapping[PartKey, MessagePosition] = MappingProxyType({})

ANY_NUMBER = 1 << 60
"""Allows any number of requests for the last message: a view asks whenever it has read something."""


class ViewedSubscription(TransientSubscription):
    """The subscription of a table view. The client chooses its name."""

    named_by_client = True
    reads_compacted = True

    def __init__(self, topic: TopicRecord, name: str) -> None:
        super().__init__(topic, name, durable=False)
        self.last_arrived: Position = BEFORE_ALL[:2]
        """The last entry that has arrived at the client."""
        self._read: Position = BEFORE_ALL[:2]
        self._unread: deque[tuple[Position, Callable[[], bool]]] = deque()
        """Entries that may wait for a definition, or behind one that does, with functions that tell when an
        entry waits no more."""
        self.waits: Callable[[Position], Callable[[], bool]] | None = None
        """Returns such a function for an entry that arrives; None where none waits."""

    @property
    def read(self) -> Position:
        """The last entry that the view has read, for certain: it reads at once what does not wait."""
        while self._unread and self._unread[0][1]():
            self._read = max(self._read, self._unread.popleft()[0])
        return self._read

    def is_called(self, name: str) -> None:
        if self.topic.subscriptions.setdefault(name, self) is not self:
            raise ViolationError("INV-C18", f"{self.name} calls itself {name} as another one does")

    def arrived(self, position: Position) -> None:
        self.last_arrived = max(self.last_arrived, position)
        if self.waits is None:
            self._read = self.last_arrived
        else:
            self._unread.append((position, self.waits(position)))

    def detached(self) -> None:
        self._read = self.read
        self._unread.clear()

    def all_up_to(self, message_position: MessagePosition) -> bool:
        return message_position[:2] <= self.last_arrived

    def open_bits(self, position: Position) -> int:
        """Entries read before the connection was lost may arrive once more; the view ignores them."""
        return 0 if position <= self.last_arrived else super().open_bits(position)


class TableViewApp(SteppingApp[ConsumerRecord | GroupRecord]):
    """One application, through as many table views as it opens."""

    def __init__(self, world: "Surroundings", index: int, plan: TableViewPlan) -> None:
        super().__init__(world, "table", index, plan.client, plan.pause)
        self.plan = plan
        self.parts: list[TopicRecord]
        """The topic, or its partitions."""
        if plan.partitioned is None:
            self.parts = [world.model.topics[world.topics.names[plan.topic]]]
            self.topic_name = self.parts[0].name
        else:
            whole = world.model.partitioned[world.topics.partitioned[plan.partitioned]]
            self.parts, self.topic_name = whole.partitions, whole.name
        self.subscriptions = self._new_subscriptions()
        self.schema: Schema[Any] | None = None
        """The schema of the view; None is bytes."""
        self.table: dict[str, bytes] = {}
        """The table as the sum of all reported changes."""
        self._history = TableViewHistory({})
        self._stale: dict[PartKey, MessagePosition] = {}
        """Messages that delete a key and that may not arrive."""
        self._refreshing: dict[int, dict[PartKey, MessagePosition]] = {}
        """Refresh requests, each with the last message per key at the time."""
        self._opened_at: dict[PartKey, MessagePosition] = {}
        """The last message per key when the view was opened."""
        self._adds_up = False
        """The application knows the table at the time it was ready, and adds up the changes since."""
        self._up_to_date = False
        """After healing, the view was refreshed when everything had been sent."""

    @property
    def done(self) -> bool:
        return self.state == "open" and self.attached and not self._refreshing and self._up_to_date

    def _new_subscriptions(self) -> list[ViewedSubscription]:
        return [ViewedSubscription(part, f"table-{self.index}.{self.incarnation}") for part in self.parts]

    # --- steps ------------------------------------------------------------------------------------------

    def open(self) -> None:
        if not self._may_open():
            return
        self.incarnation += 1
        name = f"t{self.index}.{self.incarnation}"
        self.subscriptions = self._new_subscriptions()
        self._up_to_date = False
        self._stale.clear()
        if self._is_being_compacted():
            self.compaction_begins()
        self._opened_at = self._last_of_keys(self._parts_at_first)
        spec = TableViewSpec(
            self.topic_name,
            name=name,
            receiver_queue_size=self.plan.queue,
            partitions_update_interval=self.plan.update_interval,
            schema=self._schema(name),
            **decrypting(self.world, name, several=self.plan.partitioned is not None),
        )
        self._register(name, spec)
        self._watch_definitions(name)
        self._opened(self.host.node.client.open_table_view(self.world.clock.now, spec))

    def _schema(self, name: str) -> Schema[Any] | None:
        """Choose the schema of the next view; None is bytes."""
        schemas = self.world.model.schemas
        if schemas is None:
            return None
        self.schema = schemas.for_table_view(self.world.streams.stream(f"schema of {name}"))
        return self.schema

    def _watch_definitions(self, name: str) -> None:
        """Let the subscriptions of a view whose messages wait for definitions tell what it has read."""
        schemas, clock = self.world.model.schemas, self.world.clock
        if schemas is None or self.schema is None or not self.schema.wants_writer:
            return
        questions = schemas.questions

        def waits(topic: TopicRecord, position: Position) -> Callable[[], bool]:
            entry, arrived_at = topic.log.get(position), clock.now
            version = None if entry is None else unpack_payload(entry.payload).metadata.schema_version

            def is_settled() -> bool:
                return not version or questions.is_settled(name, topic.name, version, arrived_at)

            return is_settled

        for subscription in self.subscriptions:
            subscription.waits = partial(waits, subscription.topic)

    def _register(self, name: str, spec: TableViewSpec) -> None:
        """Register the record of the view before the client subscribes."""
        model, reading = self.world.model, spec.reader().reading("unused")
        first = self.subscriptions[0]
        if self.plan.partitioned is None:
            record = ConsumerRecord(name, first, reading)
            record.questions = ANY_NUMBER
            self.record = model.consumers[name] = record
            return
        for subscription in self.subscriptions:
            subscription.topic.subscriptions[subscription.name] = subscription
        topics = GroupTopics(first.name, SubscriptionType.EXCLUSIVE, [self.topic_name], "")
        self.record = model.groups[name] = GroupRecord(name, topics, reading, ANY_NUMBER)

    @property
    def _parts_at_first(self) -> int:
        """The least number of partitions that a client may know at first, whatever a broker answers."""
        if self.plan.partitioned is None:
            return 1
        return min(self.world.model.partitioned[self.topic_name].believed)

    def expect_partitions(self) -> None:
        """Add subscriptions for partitions that were added."""
        if self.plan.partitioned is None or len(self.subscriptions) == len(self.parts):
            return
        name = self.subscriptions[0].name
        new = [ViewedSubscription(part, name) for part in self.parts[len(self.subscriptions) :]]
        self.subscriptions += new
        if self.record is not None:
            self._watch_definitions(self.record.name)
        if self.record is not None and not self.record.closed:
            for subscription in new:
                subscription.topic.subscriptions[name] = subscription

    def _parts_it_has(self) -> int:
        """Return how many partitions the view has; they join in order."""
        return len(self.host.node.client.subscribed_topics(self.handle))

    def wake(self) -> None:
        if self.state == "idle":
            self.world.clock.after(REOPEN_DELAY, self.open)
        elif self.stream.chance(500):  # the rest of the topic is read once more
            self.close_and_reopen()
        self._later()

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        stream, plan = self.stream, self.plan
        if self._adds_up:
            self._check_sum()
        if self.world.healed:
            everything = self._everything_is_sent() and self._parts_it_has() == len(self.parts)
            if everything and not self._up_to_date and not self._refreshing:
                self._refresh()
        elif stream.chance(plan.close_permille):
            self.close_and_reopen()
        elif stream.chance(plan.refresh_permille):
            self._refresh()
        if not self._up_to_date:
            self._later()

    def _everything_is_sent(self) -> bool:
        """True when all producers are done and no broker answers with an older state."""
        sent = all(app.done for app in self.world.apps.producers)
        return sent and not any(part.served_twice for part in self.parts)

    def _refresh(self) -> None:
        world, node = self.world, self.host.node
        request = node.client.refresh(world.clock.now, self.handle)
        self._refreshing[request] = self._last_of_keys(self._parts_it_has())
        self.host.routes[request] = self
        world.trace.add(world.clock.now, node.name, f"refresh {self.handle}: {request}")
        node.pump()

    def lose(self) -> None:
        super().lose()
        for request in self._refreshing:
            self.host.routes[request] = self.world
        self._refreshing.clear()
        self.table.clear()
        self._history = TableViewHistory({})
        self._adds_up = False
        self._up_to_date = False

    # --- expected table
    # -----------------------------------------------------------------------------------------

    def _is_being_compacted(self) -> bool:
        """True while a compaction runs: until it is done, a view reads the earlier result."""
        topic = self.parts[0].name
        broker = self.world.cluster.serving(topic)
        return broker is not None and broker.topic_administration.compaction_status(topic)[0] == "RUNNING"

    def compaction_begins(self) -> None:
        """A compaction begins, up to the horizon of the topic: deletions of keys may not reach a view that is
        behind it. Entries that arrived may be unread when the client ended the connection because of an
        earlier frame."""
        compacted, read = self.parts[0].compacted, self.subscriptions[0].read
        table: Mapping[str, bytes] = self._in_client() if self.state == "open" else {}
        for key, (message_position, value) in compacted.last_of_keys().items():
            if value is None and (message_position[:2] > read or key in table):
                self._stale[0, key] = message_position

    def _comes_later(self, key: str, message_position: MessagePosition) -> bool:
        """True when compaction left a later message of the key in place of that one, and the view has not
        read it yet."""
        if self.plan.partitioned is not None:
            return False
        return self.parts[0].compacted.comes_later(key, message_position, self.subscriptions[0].read)

    def _last_of_keys(self, parts: int) -> dict[PartKey, MessagePosition]:
        """Return the last message per key, in the first `parts` partitions. Leave out a partition that a
        broker serves without right, because that broker answers with an older state."""
        return {
            (index, key): messages[-1][0]
            for index, part in enumerate(self.parts[:parts])
            if not part.served_twice
            for key, messages in part.compacted.messages_of_keys().items()
        }

    def _message_positions(self) -> dict[str, dict[int, Sequence[KeyValue]]]:
        """Return all messages of every key, by partition."""
        found: dict[str, dict[int, Sequence[KeyValue]]] = {}
        for index, part in enumerate(self.parts):
            for key, messages in part.compacted.messages_of_keys().items():
                found.setdefault(key, {})[index] = messages
        return found

    def _check_as_new_as(
        self, last: dict[PartKey, MessagePosition], what: str
    ) -> dict[str, list[Explanation]]:
        """INV-C18: for every key the table has the value of that message, or of a later one. A key in several
        partitions has the value of one of them. Return the possible positions, by key."""
        table = self._in_client(last)
        explanations: dict[str, list[Explanation]] = {}
        message_positions = self._message_positions()
        for key in {**message_positions, **dict.fromkeys(table)}:
            value = table.get(key)
            parts = message_positions.get(key, {})
            if value is None and not any((part, key) in last for part in parts):
                continue  # no message has arrived, or the key was deleted again
            least = {part: last.get((part, key), BEFORE_ALL) for part in parts}
            explanations[key] = [
                {**least, part: message_position}
                for part, messages in parts.items()
                for message_position in self._possible_positions(part, key, least[part], value, messages)
            ]
            if not explanations[key]:
                raise ViolationError(
                    "INV-C18", f"{self._name} has {key!r} = {value!r} {what}; it was {least}"
                )
        return explanations

    def _possible_positions(
        self, part: int, key: str, least: MessagePosition, value: bytes | None, messages: Sequence[KeyValue]
    ) -> Sequence[MessagePosition]:
        """Return a position in that partition that the value may come from, or one before it; nothing if the
        value does not come from there."""
        said = [message_position for message_position, each in messages if each == value]
        fresh = [message_position for message_position in said if message_position >= least]
        if fresh:
            # Otherwise the key may be deleted for the second time, or its value is compacted away.
            known = value is not None or (len(fresh) == 1 and fresh[0][:2] <= self.subscriptions[part].read)
            return (fresh[0] if known else least,)
        if (part, key) in self._stale and self._stale[part, key] >= least and said:
            return (said[0],)
        if self._comes_later(key, least) and (said or value is None):
            return (least if value is None else said[0],)
        return ()

    @property
    def _name(self) -> str:
        assert self.record is not None
        return self.record.name

    def _in_client(self, least: Mapping[PartKey, MessagePosition] = NO_POSITIONS) -> Mapping[str, bytes]:
        """Return the table in payloads, as the changes are reported. Where several payloads of a key may give
        its row, it is one from `least` on: the one that was reported, else the first."""
        table = self.host.node.client.table(self.handle)
        schema, schemas = self.schema, self.world.model.schemas
        if schema is None or schemas is None:
            return table
        messages = self._message_positions()
        topics = [part.name for part in self.parts]
        found: dict[str, bytes] = {}
        for key in table:
            said = [
                (payload, position >= least.get((part, key), BEFORE_ALL))
                for part, each in messages.get(key, {}).items()
                for position, payload in each
                if payload is not None
            ]
            row = TableRow(self._name, topics, _decoded(key, schemas.plan.kind), _looked_at(table, key))
            possible = schemas.payloads_in_table(schema, row, [payload for payload, _ in said])
            fresh = {payload for payload, is_fresh in said if is_fresh}
            possible = [each for each in possible if each in fresh] or possible
            reported = self.table.get(key) if self._adds_up else None
            found[key] = reported if reported is not None and reported in possible else possible[0]
        return found

    def _check_sum(self) -> None:
        """INV-C18: the sum of the changes is the table."""
        table = self._in_client()
        if self.table != table:
            wrong = sorted(key for key in {**self.table, **table} if self.table.get(key) != table.get(key))
            raise ViolationError("INV-C18", f"{self._name}: the changes do not add up to the table: {wrong}")

    # --- outputs ----------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        """The table may be ahead of the outputs: one input may have brought changes too."""
        self.world.clock.after(0, self._begin, self.incarnation)

    def _begin(self, incarnation: int) -> None:
        if self.state != "open" or incarnation != self.incarnation:
            return
        first = (
            self._parts_at_first
        )  # perhaps the client was told of fewer partitions since the view was opened
        opened_at = {
            key: message_position for key, message_position in self._opened_at.items() if key[0] < first
        }
        self._history = TableViewHistory(self._check_as_new_as(opened_at, "when it is ready"))
        self.table = dict(self._in_client(opened_at))
        self._adds_up = True
        self._later()

    def _is_attached_again(self) -> None:
        if self.world.healed:
            self._later()

    def _check_all_answered(self) -> None:
        if self._refreshing:
            raise ViolationError("INV-C14", f"{self._name} has ended; {[*self._refreshing]} never answered")

    def _answered(self, output: RequestDone) -> None:
        last = self._refreshing.pop(output.request, None)
        if last is not None:
            self._check_as_new_as(last, "when it is refreshed")
            if self.world.healed and self._everything_is_sent():
                self._up_to_date = True

    def _not_answered(self, output: RequestFailed) -> None:
        self._refreshing.pop(output.request, None)
        self._later()

    def _check_change(self, key: str, value: bytes | None, parts: dict[int, Sequence[KeyValue]]) -> None:
        """INV-C18: the change comes after the last reported change of the key, and has been read. For a key
        that was absent when the view was ready, the position read until then is unknown."""
        before = self._history.explanations(key)
        if not self._history.record_change(
            key, value, parts, [each.last_arrived for each in self.subscriptions]
        ):
            raise ViolationError(
                "INV-C18", f"{self._name} reports {key!r} = {value!r}, which does not come after {before}"
            )
        if value is None:
            self.table.pop(key, None)
        else:
            self.table[key] = value

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, TableChanged) and self._adds_up:
            message_positions = self._message_positions()
            for key, value in output.changes:
                self._check_change(key, value, message_positions.get(key, {}))
        return isinstance(output, (TableChanged, EndOfTopic, TopicJoined))


def _looked_at(table: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, or the error that looking at it raises."""
    try:
        return table[key]
    except SchemaDecodingError as error:
        return error


def _decoded(key: str, kind: str) -> str:
    """Return the key of a pair, which travels as Base64; other keys are text."""
    if kind != "pairs":
        return key
    try:
        return b64decode(key, validate=True).decode()
    except ValueError:  # of a message of bytes
        return key
