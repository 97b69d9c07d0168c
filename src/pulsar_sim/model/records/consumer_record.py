"""One consumer, and what it may receive next."""

from dataclasses import dataclass, field

from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType

from ..deliveries import ConsumerDeliveries
from ..redelivery_timing import RedeliveryTiming
from ..withheld import WithheldEntries
from .message_position import BEFORE_ALL, MessagePosition, Position
from .subscription_record import SubscriptionRecord


@dataclass(slots=True, eq=False)
class ConsumerRecord:
    """One consumer, from subscribing to closing."""

    name: str
    subscription: SubscriptionRecord
    spec: ConsumerSpec
    floor: MessagePosition = BEFORE_ALL
    """The last message delivered in order."""
    rewinds: int = 0
    """The number of steps back in the order that have an unused cause."""
    nacked: set[Position] = field(default_factory=set)
    """Entries that were ever negatively acknowledged."""
    refused: set[Position] = field(default_factory=set)
    """Entries that may be asked for again: negatively acknowledged, not yet asked for, and not acknowledged
    since."""
    requests_to_rewind: int = 0
    """Exclusive and Failover: causes to ask for everything again, other than negative acknowledgements."""
    copies_to_fail: int = 0
    """Exclusive and Failover: copies that may still fail, each of which is such a cause."""
    asked_again: set[Position] = field(default_factory=set)
    """Entries asked for again that have not arrived since."""
    redeliver_all: int = 0
    """Requests for redelivery of everything that may still show on the wire."""
    sent_far: bool = False
    """A broker has told the consumer that its topic migrated to another cluster."""
    close_answered: bool = False
    """The broker answered the client's close, so it has all acknowledgements of that connection."""
    ids_acknowledged: int = 0
    """The ids in all acknowledgements that the client has written."""
    closed: bool = False
    removed: bool = False
    """The application asked to remove the subscription."""
    too_often: dict[Position, int] = field(default_factory=dict)
    """Entries that exceeded the redelivery limit, with the messages to copy, as bits."""
    uncopied: set[Position] = field(default_factory=set)
    """Entries that could not be copied to the dead-letter or retry topic, and may be asked for."""
    halted: bool = False
    """The application has paused the consumer."""
    wanting: bool = False
    """The application found no message, and none was delivered since."""
    questions: int = 0
    """Seeks, and requests for the last message: each may be sent once on every attachment, and those open
    when a seek fails once more."""
    chunks: dict[Position, int] = field(default_factory=dict)
    """Arrival time of each chunk, for a subscription that is not durable."""
    redelivery_timing: RedeliveryTiming = field(init=False)
    deliveries: ConsumerDeliveries = field(init=False)
    withheld: WithheldEntries = field(init=False)

    def __post_init__(self) -> None:
        self.redelivery_timing = RedeliveryTiming(self.spec)
        self.deliveries = ConsumerDeliveries(self.spec)
        self.withheld = WithheldEntries(self.spec)
        if self.subscription.keys is not None:
            self.subscription.withholders.append(self.withheld)

    @property
    def kind(self) -> SubscriptionType:
        return self.subscription.kind
