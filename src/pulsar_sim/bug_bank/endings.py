"""Bugs of topics that end: terminated topics, and topics that migrate to another cluster."""

from typing import Any

from pulsar_sansio.broker.serving import publishing
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.attaching.redirection import Redirection
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.connecting.refusal_policy import Decision
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.errors import ServerError

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- terminated --------------------------------------------------------------------------------------------


@bug("BUG-086", caught_by=("INV-N5",), needs=[needs.terminated])
def a_terminated_topic_is_asked_for_again_and_again(patches: Patches) -> None:
    """A producer tries to reopen a terminated topic for ever, and its pending messages never fail."""

    def refused(original: Any, self: Any, error: Any) -> Any:
        if getattr(error, "code", None) is ServerError.TopicTerminatedError:
            return Decision.RETRY
        return original(self, error)

    patches.around(Producer, "on_open_refused", refused)


# --- migrated to another cluster ----------------------------------------------------------------------------


@bug("own", caught_by=("INV-N13",), needs=[needs.migrates])
def migration_ignored(patches: Patches) -> None:
    """The client ignores TOPIC_MIGRATED, and reconnects to the old cluster for ever."""
    patches.replace(Connection, "_on_topic_migrated", nothing)


@bug("own", caught_by=("INV-N13",), needs=[needs.migrates, needs.detaches])
def back_to_the_old_cluster_after_a_loss(patches: Patches) -> None:
    """The client forgets the new cluster of a topic when its next connection is lost."""

    def detached(original: Any, self: Any, connection: Any, cause: Any) -> None:
        if isinstance(self.state, states.Attached) and self.state.connection is connection:
            self.redirection.cluster = None
        original(self, connection, cause)

    patches.around(Attachment, "lost", detached)


@bug(
    "own",
    caught_by=("INV-N13",),
    needs=[needs.migrates, needs.fault("topic_stolen", "topic_moved_with_address")],
)
def back_to_a_broker_that_the_old_cluster_names(patches: Patches) -> None:
    """The client learns that a topic migrated. The broker then closes its producer or consumer, names a
    broker of the old cluster, and the client goes there."""

    def migrated(original: Any, self: Any, url: str) -> None:
        followed = self._followed
        original(self, url)
        self._followed = followed

    patches.around(Redirection, "migrated", migrated)


@bug("BUG-097", caught_by=("INV-N13",), needs=[needs.migrates])
def migration_not_heeded_while_opening(patches: Patches) -> None:
    """The client ignores the migration of a topic while an attempt to open is under way."""

    def migrated(original: Any, self: Any, url: str) -> None:
        if isinstance(self.state, (states.Attached, states.BackingOff)):
            original(self, url)

    patches.around(Attachment, "migrated", migrated)


@bug("own", caught_by=("INV-N13",), needs=[needs.migrates, needs.read_where_it_migrates])
def acknowledged_in_the_wrong_cluster(patches: Patches) -> None:
    """The client sends waiting acknowledgements to the new cluster, where the same position is another
    message."""
    patches.replace(AckGrouping, "leave_cluster", nothing)


@bug("own", caught_by=("INV-N13",), needs=[needs.migrates, needs.read_where_it_migrates, needs.kept])
def old_positions_acknowledged_in_the_new_cluster(patches: Patches) -> None:
    """The client acknowledges messages delivered before a migration in the new cluster, by their old
    positions."""

    def leave_cluster(original: Any, self: Any) -> None:
        deliveries = self.deliveries
        original(self)
        deliveries.left = False

    patches.around(AckTracker, "leave_cluster", leave_cluster)


@bug("own", caught_by=("INV-N13",), needs=[needs.migrates])
def taken_after_the_migration(patches: Patches) -> None:
    """The broker admits producers although their topic has migrated to another cluster."""

    def create(original: Any, connection: Any, command: Any, topic: Any, probe: bool) -> None:
        target = topic.migrated_to
        if isinstance(topic, Topic):
            topic.migrated_to = None
        try:
            original(connection, command, topic, probe)
        finally:
            if isinstance(topic, Topic):
                topic.migrated_to = target

    patches.around(publishing, "_create", create)


@bug("own", caught_by=("INV-N5", "INV-N13"), needs=[needs.migrates])
def migrations_are_not_announced(patches: Patches) -> None:
    """The broker sends only new producers and consumers to the other cluster. Attached ones are not told, and
    continue."""

    def migrate(self: Any, target: Any) -> None:
        self.migrated_to = target
        self.save()

    patches.replace(Topic, "migrate", migrate)


@bug("own", caught_by=("INV-N5", "INV-C1", "INV-C3", "INV-P2"), needs=[needs.read_where_it_migrates])
def consumers_sent_away_too_early(patches: Patches) -> None:
    """The broker sends consumers to the other cluster before they have acknowledged all messages."""

    def moves_to(self: Any) -> Any:
        return self.topic.migrated_to

    patches.replace(Subscription, "moves_to", property(moves_to))
