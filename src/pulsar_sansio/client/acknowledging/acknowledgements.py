"""`Acknowledgements`: what one consumer acknowledges, and what it requests again.

The parts are the tracker of acknowledged messages, their grouping into ACKs, the redelivery requests, and the
commands of the application. They change together at every event in the consumer's life: a new connection, a
seek, a move to another cluster, the end.
"""

from collections.abc import Iterable

from ...model.errors import LocalProtocolError, PulsarError
from ...model.message_id import EntryPosition
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..delivery.receiver_queue import ReceiverQueue
from .ack_commands import AckCommands
from .ack_grouping import AckGrouping
from .ack_timeout import AcknowledgementTimeout
from .ack_tracker import AckTracker
from .redelivery import Redelivery
from .transactional_acks import TransactionalAcks


class Acknowledgements:
    """The acknowledgements of one consumer. `timeout`: None without an acknowledgement timeout."""

    __slots__ = ("commands", "grouping", "redelivery", "tracker", "transactional")

    def __init__(
        self, services: ConsumerServices, queue: ReceiverQueue, timeout: AcknowledgementTimeout | None
    ) -> None:
        self.tracker = AckTracker(
            services.spec.batch_index_acknowledgement, services.client.config.transactions
        )
        self.grouping = AckGrouping(services, self.tracker)
        self.redelivery = Redelivery(services, queue, self.grouping, self.tracker, timeout)
        self.transactional = TransactionalAcks(services, self.tracker, self.grouping, self.redelivery)
        self.commands = AckCommands(
            services, self.tracker, self.grouping, self.redelivery, self.transactional
        )

    def acknowledge_entries(self, places: Iterable[EntryPosition]) -> None:
        """Acknowledge entries that no consumer of the subscription can use."""
        waits = False
        for place in places:
            waits |= self.tracker.entry(place)
        if waits:
            self.grouping.something_waits()

    @property
    def count(self) -> int:
        """The messages acknowledged so far, including those whose acknowledgement waits; an ACK sent twice
        counts twice."""
        tracker = self.tracker
        return self.grouping.ids_sent + tracker.waiting + tracker.messages_beyond_ids

    def attach(self, connection: Connection) -> None:
        """Send the waiting acknowledgements first over the new connection."""
        self.tracker.new_connection()
        self.commands.renew()
        self.redelivery.attach(connection)
        self.grouping.attach(connection)
        self.transactional.attach(connection)

    def detach(self, cause: PulsarError) -> None:
        self.redelivery.detach()
        self.grouping.detach(cause)
        self.transactional.detach(cause)

    def drop(self) -> None:
        """Drop all acknowledgements and requests: the subscription was moved."""
        self.grouping.drop()
        self.transactional.fail(LocalProtocolError("the subscription was moved"))
        self.commands.renew()
        self.redelivery.drop()

    def drop_after(self, error: PulsarError) -> None:
        """Drop the acknowledgements after a failed seek: the broker may have moved the subscription."""
        self.grouping.drop(error)
        self.commands.renew()

    def leave_cluster(self) -> None:
        """Forget earlier deliveries: their messages have other positions in the new cluster."""
        self.grouping.leave_cluster()
        self.commands.renew()

    def close(self) -> None:
        """Refuse all commands of the application from now on, and request nothing more."""
        self.transactional.close()
        self.commands.close()
        self.redelivery.detach()
