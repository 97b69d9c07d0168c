"""An application that receives from several topics: those of a list, the partitions of one, or all that match
a pattern.

Owns the checks on the set of topics: the topics that the consumer must be subscribed to in the end (INV-C16),
the topics that join and leave before, and that no topic waits for the others (MULTI-19). It handles messages
as an application with one topic does.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import ActiveChanged, ConsumerReady, Output, TopicJoined, TopicLeft
from pulsar_sansio.model.config import DeadLetterPolicy
from pulsar_sansio.model.errors import ClosedError, InvalidConfiguration, LocalProtocolError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId, TopicMessageId

from ..engine.failures import ViolationError
from ..engine.profile import ConsumerPlan, GroupPlan
from ..model.multi_topics_subscriptions import BEFORE_THE_NAME, GroupRecord, asked_for, dead_topic
from ..model.records.consumer_record import ConsumerRecord
from .consumer_app import ConsumerApp
from .key_readers import encrypting_letters

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


FOREIGN_PERMILLE = 20
"""Steps in which the application acknowledges a message of a foreign topic, per thousand."""


class MultiTopicsApp(ConsumerApp):
    """One consumer of a multi-topics subscription, through as many consumers as the application opens."""

    several = True

    def __init__(self, world: "Surroundings", group: int, index: int, plan: ConsumerPlan) -> None:
        super().__init__(world, index, plan)
        self.stream = world.streams.stream(f"group {group} consumer {index}")
        self.group: GroupPlan = world.profile.groups[group]
        self.topics = world.topics.of_groups[group]
        self._prefix = f"g{group}.{index}"

    def _new_record(self) -> GroupRecord:
        group, topics = self.group, self.topics
        name = f"{self._prefix}.{self.incarnation}"
        try:
            spec = self._spec(asked_for(group, topics, group.twice), topics.name, topics.kind, name)
        except InvalidConfiguration:
            if not group.twice:  # a topic named twice is refused
                raise
            spec = self._spec(asked_for(group, topics), topics.name, topics.kind, name)
        spec = replace(
            spec,
            partitions_update_interval=group.update_interval,
            max_total_receiver_queue_size=group.total_queue,
        )
        if group.retry:
            policy = DeadLetterPolicy(
                group.retry, dead_topic(topics.name), topics.retry, **encrypting_letters(self.world, name)
            )
            spec = replace(spec, retry=True, dead_letter=policy)
        record = self.world.model.groups[name] = GroupRecord(name, topics, spec)
        return record

    # --- the record that a message belongs to ---

    @property
    def _group(self) -> GroupRecord:
        assert isinstance(self.record, GroupRecord)
        return self.record

    @property
    def records(self) -> list[ConsumerRecord]:
        if not isinstance(self.record, GroupRecord):
            return []
        return [each for each in self.record.members.values() if not each.closed]

    def _record_of(self, message: Message) -> ConsumerRecord:
        group = self._group
        record = group.of(message.topic)
        group.gave(message.topic, message.message_id[:2], self.plan.take)
        return record

    def _id_of(self, message: Message) -> MessageId | TopicMessageId:
        return TopicMessageId(message.topic, message.message_id)

    # --- messages of foreign topics ---

    def _step(self, turn: int) -> None:
        try:
            super()._step(turn)
        except ClosedError as error:  # perhaps of a topic that has left
            raise ViolationError("INV-C16", f"{self._group.name} is open, and {error}") from None
        if self.state == "open" and self.world.rash and self.stream.chance(FOREIGN_PERMILLE):
            self._acknowledge_foreign_message()

    def _acknowledge_foreign_message(self) -> None:
        """A message of a topic that was never subscribed is refused without effect (MULTI-16)."""
        client, now = self.host.node.client, self.world.clock.now
        foreign = TopicMessageId(f"{BEFORE_THE_NAME}stranger", MessageId(0, 0))
        for what in (client.acknowledge, client.acknowledge_cumulative, client.negative_acknowledge):
            try:
                what(now, self.handle, foreign)
            except LocalProtocolError:
                continue
            raise ViolationError("INV-N1", f"{self._group.name}: {what.__name__} takes {foreign}")

    # --- outputs ---

    def on_output(self, output: Output) -> None:
        super().on_output(output)
        if isinstance(output, ConsumerReady) and self.state == "open":
            self._check_ready()

    def _check_ready(self) -> None:
        """MULTI-11: the consumer is ready when every topic is. Each topic asked for by name has all
        partitions that existed at first."""
        found = self.subscribed()
        self._group.joins(*found)
        for name in self.topics.listed:
            whole = self.world.model.partitioned.get(name)
            count = 0 if whole is None else min(whole.believed)
            parts = [f"{name}-partition-{index}" for index in range(count)] or [name]
            if not set(parts) <= set(found):
                raise ViolationError("INV-C16", f"{self._group.name} is ready with {found}, without {parts}")

    def _on_other_output(self, output: Output) -> None:
        if isinstance(output, TopicJoined):
            self._joined(output.topic)
        elif isinstance(output, TopicLeft):
            self._left(output)
        else:
            super()._on_other_output(output)

    def _joined(self, name: str) -> None:
        if self.state != "open":
            raise ViolationError("INV-C16", f"{self._group.name}: {name} joins in state {self.state}")
        if self._group.of(name).closed:
            raise ViolationError("INV-C16", f"{self._group.name}: {name} joins, and has no open consumer")
        self.subscribed()
        self._group.joins(name)

    def _left(self, output: TopicLeft) -> None:
        """A topic leaves only when it was deleted; a topic that was asked for by name never leaves."""
        if not self.topics.by_pattern or output.topic not in self.world.administrator.ever_vanished:
            raise ViolationError(
                "INV-C16", f"{self._group.name}: {output.topic} leaves, and exists: {output.error}"
            )
        self._group.leaves(output.topic)

    def subscribed(self) -> list[str]:
        """INV-C16: the consumer subscribes only to topics that are meant, and to none twice."""
        found = self.host.node.client.subscribed_topics(self.handle)
        wrong = [name for name in found if not self.topics.means(name)]
        if wrong or len(set(found)) < len(found):
            raise ViolationError("INV-C16", f"{self._group.name} is subscribed to {found}")
        return found

    @property
    def has_all_topics(self) -> bool:
        """INV-C16 at rest: the consumer is subscribed to exactly the topics that exist."""
        return self.subscribed() == sorted(self.world.topics_of(self.topics))

    def _rewind(self, steps_back: int) -> None:
        """Do nothing: each topic's consumer shows the effect when it subscribes again."""

    def _active_changed(self, output: ActiveChanged) -> None:
        assert output.topic is not None
        self._group.of(output.topic).rewinds += 1

    def _check_end(self) -> None:
        """CONS-42: all topics have ended, and everything in them is acknowledged."""
        for name in self.world.topics_of(self.topics):
            topic = self.world.model.topics[name]
            if not topic.ended:
                raise ViolationError(
                    "BROKER-43", f"{self._group.name} is told of the end, and {name} goes on"
                )
        self.reached_end = True
