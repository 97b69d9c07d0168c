"""`ConsumerSpec`: the options of a consumer, and the enums that they choose from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..encryption import ConsumerCryptoFailureAction, check_decryption
from ..errors import InvalidConfiguration
from ..interceptors import ConsumerInterceptor
from ..message_id import EARLIEST, LATEST, MessageId
from ..schema import Schema
from ..topic_name import is_text
from .batch_receive import BatchReceivePolicy
from .checks import duration, instance, integer, message_id, optional_text, text_mapping
from .key_shared import KeySharedPolicy
from .pattern import TopicsPattern
from .redelivery import MAX_RECONSUMED, DeadLetterPolicy, RedeliveryBackoff
from .topics import check_topics, names_of


class SubscriptionType(Enum):
    """The ways in which a subscription shares its messages among its consumers (rule SUBT-01)."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"
    FAILOVER = "failover"
    KEY_SHARED = "key_shared"

    def __init__(self, name: str) -> None:
        self.cumulative = name in ("exclusive", "failover")
        """True where cumulative acknowledgement is legal (rule ACK-02)."""


class InitialPosition(Enum):
    """The place at which a new subscription begins."""

    LATEST = "latest"
    EARLIEST = "earliest"


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """Options of one consumer.

    `topic`: a topic by its name, several in a tuple, or a `TopicsPattern`. A topic may be partitioned; the
    consumer is then one of all its partitions.
    `subscription_type`: Shared by default, where clients of other languages begin with Exclusive: more
    consumers may join, and messages are acknowledged one by one.
    `consumer_name`: None makes a random one that stays the same over reconnects (rule CONS-03).
    `receiver_queue_size`: messages granted to the broker at a time, 0 to 1 000 000. With 0 the
    consumer fetches nothing in advance: it asks for a message when the application wants one (FLOW-13). The
    broker delivers a batch as a whole even so.
    `auto_scaled_receiver_queue_size`: begin with a queue of 1 and double it, up to `receiver_queue_size`,
    whenever the application was faster; halve it when messages fill the client's `memory_limit`.
    `start_paused`: the consumer asks for no message before `resume`.
    `interceptors`: see `ConsumerInterceptor`; called in this order.
    `schema`: makes values of the payloads (`Message.value`), and is compared with the topic's by the broker;
    None for bytes.
    `batch_receive`: how many messages are enough to wake a waiting application (`Client.batch_receive`).
    `acknowledgement_group_time`: seconds for which acknowledgements are collected; 0 sends each at once.
    `acknowledgement_group_size`: number of collected acknowledgements that are sent at once, 1 to 1 000 000.
    `acknowledgement_receipts`: ask the broker to confirm acknowledgements.
    `batch_index_acknowledgement`: send which messages of a batch are acknowledged. Nothing in the protocol
    tells whether a broker keeps them. A broker that does not keep them redelivers the whole batch, as without
    this option. Off by default, as in the clients of Pulsar 4.0.
    `negative_acknowledgement_delay`: seconds until the consumer asks the broker to redeliver a negatively
    acknowledged message.
    `negative_acknowledgement_backoff`: a delay for each redelivery count, in place of that one (an id by
    itself counts as delivered once).
    `acknowledgement_timeout`: seconds until the consumer asks for redelivery of a message that the
    application received and neither acknowledged nor negatively acknowledged. 0, the default, is never.
    Moments are rounded up to `acknowledgement_timeout_tick`s: never early, late by at most two ticks. The
    tick may not be longer than the timeout. `acknowledgement_timeout_backoff`: a delay that is added to the
    timeout, by redelivery count.
    `dead_letter`: the policy for messages that were redelivered too often and go to another topic; None for
    no such policy.
    `retry`: True lets the application consume messages later: they wait in a topic that the consumer
    subscribes to as well. Without `dead_letter` a message may wait so up to 16 times.
    `initial_position`: used when the subscription does not exist yet.
    `durable`: False makes a subscription that vanishes with its last consumer.
    `start_message_id`: where a non-durable subscription begins; the message itself is skipped unless
    `start_message_id_inclusive`. `start_message_rollback`: instead of an id, seconds: it begins with
    the first message published since so long ago; the broker counts whole ones.
    `priority_level`: 0 is served first (Shared and Failover).
    `properties`: text that the broker shows of the consumer beside its name.
    `subscription_properties`: text that the broker keeps with the subscription, if it creates it now.
    `replicate_subscription_state`: ask the broker to keep the subscription's position in step in the other
    clusters that the namespace is replicated to.
    `read_compacted`: of what the broker has compacted, get only the last message of each key, and everything
    after that; on Exclusive and Failover subscriptions of persistent topics (rule SUBT-12).
    `crypto_key_reader`: what brings the private keys for encrypted messages; the driver says what it takes
    (see `EncryptionKeyWanted`). None decrypts nothing. `crypto_failure_action`: the way of a message that
    cannot be decrypted.
    `key_shared`: the keys that this consumer asks for, on a Key_Shared subscription only; None for the
    broker's defaults.

    These options count for several topics and partitioned topics only:

    `max_total_receiver_queue_size`: divided by the number of a topic's partitions it limits
    `receiver_queue_size` of each, which is at least 1 (rule FLOW-16); 1 to 10 000 000.
    `partitions_update_interval`: seconds between two questions whether there are more partitions, 0.001 and
    more; None never asks.

    These options count for messages in chunks:

    `max_pending_chunked_messages`: incomplete messages kept at a time, 1 to 10 000. For one more the consumer
    drops the oldest, but first a message that cannot be completed any more. `acknowledge_dropped_chunks`:
    the consumer acknowledges the chunks of a dropped message, which is then lost. Without this option the
    chunks stay unacknowledged, and the broker redelivers them when the consumer reconnects.
    `max_chunked_message_size`: bytes, compressed and not; larger ones stay unacknowledged. Together with the
    number above it bounds the memory for incomplete messages.
    `incomplete_chunked_message_timeout`: seconds after which the chunks of a message that is not complete are
    acknowledged; 0 never.
    """

    topic: str | tuple[str, ...] | TopicsPattern
    subscription: str
    subscription_type: SubscriptionType = SubscriptionType.SHARED
    consumer_name: str | None = None
    receiver_queue_size: int = 1000
    auto_scaled_receiver_queue_size: bool = False
    start_paused: bool = False
    batch_receive: BatchReceivePolicy | None = None
    interceptors: tuple[ConsumerInterceptor, ...] = ()
    schema: Schema[Any] | None = None
    acknowledgement_group_time: float = 0.1
    acknowledgement_group_size: int = 1000
    acknowledgement_receipts: bool = False
    batch_index_acknowledgement: bool = False
    negative_acknowledgement_delay: float = 60.0
    negative_acknowledgement_backoff: RedeliveryBackoff | None = None
    acknowledgement_timeout: float = 0.0
    acknowledgement_timeout_tick: float = 1.0
    acknowledgement_timeout_backoff: RedeliveryBackoff | None = None
    dead_letter: DeadLetterPolicy | None = None
    retry: bool = False
    initial_position: InitialPosition = InitialPosition.LATEST
    durable: bool = True
    start_message_id: MessageId | None = None
    start_message_id_inclusive: bool = False
    start_message_rollback: float = 0.0
    priority_level: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    replicate_subscription_state: bool = False
    read_compacted: bool = False
    key_shared: KeySharedPolicy | None = None
    crypto_key_reader: object = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    max_pending_chunked_messages: int = 10
    acknowledge_dropped_chunks: bool = False
    max_chunked_message_size: int = 128 * 1024 * 1024
    incomplete_chunked_message_timeout: float = 60.0
    max_total_receiver_queue_size: int = 50_000
    partitions_update_interval: float | None = 60.0

    def __post_init__(self) -> None:
        check_topics(self.topic, self.receiver_queue_size)
        if not is_text(self.subscription) or not self.subscription.strip():
            raise InvalidConfiguration(f"subscription: a name that is not blank, not {self.subscription!r}")
        instance("subscription_type", self.subscription_type, SubscriptionType, "a SubscriptionType")
        optional_text("consumer_name", self.consumer_name)
        integer("receiver_queue_size", self.receiver_queue_size, 0, 1_000_000)
        duration("acknowledgement_group_time", self.acknowledgement_group_time, maximum=3600.0)
        integer("acknowledgement_group_size", self.acknowledgement_group_size, 1, 1_000_000)
        duration("negative_acknowledgement_delay", self.negative_acknowledgement_delay)
        for name in ("negative_acknowledgement_backoff", "acknowledgement_timeout_backoff"):
            instance(
                name, getattr(self, name), (RedeliveryBackoff, type(None)), "a RedeliveryBackoff or None"
            )
        self._check_timeout()
        instance(
            "dead_letter", self.dead_letter, (DeadLetterPolicy, type(None)), "a DeadLetterPolicy or None"
        )
        instance("retry", self.retry, bool, "True or False")
        instance("initial_position", self.initial_position, InitialPosition, "an InitialPosition")
        for name in (
            "auto_scaled_receiver_queue_size",
            "start_paused",
            "acknowledgement_receipts",
            "batch_index_acknowledgement",
            "durable",
            "start_message_id_inclusive",
            "acknowledge_dropped_chunks",
            "replicate_subscription_state",
            "read_compacted",
        ):
            instance(name, getattr(self, name), bool, "True or False")
        if not isinstance(self.interceptors, tuple) or not all(
            isinstance(each, ConsumerInterceptor) for each in self.interceptors
        ):
            raise InvalidConfiguration(
                f"interceptors: a tuple of ConsumerInterceptor, not {self.interceptors!r}"
            )
        instance("schema", self.schema, (Schema, type(None)), "a Schema or None")
        policy = self.batch_receive
        instance("batch_receive", policy, (BatchReceivePolicy, type(None)), "a BatchReceivePolicy or None")
        if not self.receiver_queue_size and (self.auto_scaled_receiver_queue_size or policy is not None):
            option = "batch_receive" if policy is not None else "auto_scaled_receiver_queue_size"
            raise InvalidConfiguration(f"{option}: only with a receiver_queue_size of 1 and more")
        if self.start_message_id is not None:
            message_id("start_message_id", self.start_message_id)
        if not isinstance(self.topic, str) and self.start_message_id not in (None, EARLIEST, LATEST):
            raise InvalidConfiguration(
                "start_message_id: EARLIEST or LATEST for several topics; another id is of one of them"
            )
        if self.durable and self.start_message_id is not None:
            raise InvalidConfiguration(
                "start_message_id: only with durable=False; a durable subscription has its cursor"
            )
        duration("start_message_rollback", self.start_message_rollback)
        if self.start_message_rollback and (self.durable or self.start_message_id is not None):
            raise InvalidConfiguration(
                "start_message_rollback: only with durable=False, and without start_message_id"
            )
        integer("priority_level", self.priority_level, 0, 2**31 - 1)
        integer("max_pending_chunked_messages", self.max_pending_chunked_messages, 1, 10_000)
        integer("max_chunked_message_size", self.max_chunked_message_size, 1024, 2**31 - 1)
        duration("incomplete_chunked_message_timeout", self.incomplete_chunked_message_timeout)
        check_decryption(self.crypto_key_reader, self.crypto_failure_action)
        text_mapping("properties", self.properties)
        text_mapping("subscription_properties", self.subscription_properties)
        instance("key_shared", self.key_shared, (KeySharedPolicy, type(None)), "a KeySharedPolicy or None")
        if self.key_shared is not None and self.subscription_type is not SubscriptionType.KEY_SHARED:
            raise InvalidConfiguration(
                f"key_shared: only on a key_shared subscription, not on a {self.subscription_type.value} one"
            )
        integer("max_total_receiver_queue_size", self.max_total_receiver_queue_size, 1, 10_000_000)
        if self.partitions_update_interval is not None:
            duration("partitions_update_interval", self.partitions_update_interval, minimum=0.001)
        if self.read_compacted and not self.subscription_type.cumulative:
            raise InvalidConfiguration(
                f"read_compacted: only on an exclusive or failover subscription, not on a "
                f"{self.subscription_type.value} one"
            )
        if self.read_compacted and not all(name.persistent for name in names_of(self.topic)):
            raise InvalidConfiguration(f"read_compacted: only on a persistent topic, not on {self.topic}")

    def _check_timeout(self) -> None:
        """Rules UNACK-01, UNACK-08."""
        duration("acknowledgement_timeout", self.acknowledgement_timeout)
        duration("acknowledgement_timeout_tick", self.acknowledgement_timeout_tick, minimum=0.001)
        if 0 < self.acknowledgement_timeout < self.acknowledgement_timeout_tick:
            raise InvalidConfiguration(
                f"acknowledgement_timeout: 0, or at least the acknowledgement_timeout_tick of "
                f"{self.acknowledgement_timeout_tick:g} s, not {self.acknowledgement_timeout!r}"
            )
        if self.acknowledgement_timeout_backoff is not None and not self.acknowledgement_timeout:
            raise InvalidConfiguration("acknowledgement_timeout_backoff: only with acknowledgement_timeout")

    @property
    def letters(self) -> DeadLetterPolicy | None:
        """The topics of dead letters and of messages to reconsume later; None without such a policy."""
        if self.dead_letter is None and self.retry:
            return DeadLetterPolicy(MAX_RECONSUMED)
        return self.dead_letter
