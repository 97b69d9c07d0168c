"""The handlers of SUBSCRIBE and of all commands that name a consumer."""

from typing import TYPE_CHECKING

from ...model.errors import (
    AuthorizationError,
    BrokerError,
    ConsumerBusy,
    ConsumerNotFound,
    MetadataError,
    NotAllowed,
    ProducerBusy,
    RemoteProtocolError,
    ServerError,
    SubscriptionNotFound,
    TooManyRequests,
    UnsupportedVersion,
)
from ...model.transaction_id import TransactionId, transaction_id
from ...wire import CUMULATIVE, Ack, Flow, bits_from_words, proto
from ..dispatching.consumer import Consumer, SubType
from ..dispatching.shared import Shared
from ..dispatching.single_active import ConflictingConsumer
from ..services import wall_text
from ..topics.compaction.compacted_view import CompactedView
from ..topics.subscription import Subscription
from ..topics.topic import Topic
from .connection import Connection, Handler, Refusal, Reserved, Type
from .lookups import check_name, check_properties, parse_topic, refuse_request, server_error

if TYPE_CHECKING:
    from ..topics.nonpersistent import NonPersistentSubscription
    from ..topics.registry import AnyTopic

MAX_CONSUMER_METADATA = 1024
"""The number of characters of names and values together; also the number of pairs."""

RESERVED_PREFIX = "pulsar.repl"
RESERVED_NAME = "pulsar.dedup"
NOT_FOUND = "Consumer not found"
NO_ROOM_FOR_SUBSCRIPTIONS = "Exceed the maximum number of subscriptions of the topic: {}"
LOST = "The topic is served by another broker"

RECEIPT_VERSION = 17
"""The first protocol version in which an ACK with a request id is answered."""

MAX_PERMITS = 2**31 - 1
"""The limit for the sum of a consumer's permits."""


def _signed(number: int) -> int:
    """Convert an id from its unsigned form on the wire: 2^64-1 means -1."""
    return number - 2**64 if number >= 2**63 else number


# --- SUBSCRIBE ----------------------------------------------------------------------------------------


def on_subscribe(connection: Connection, command: proto.CommandSubscribe) -> None:
    """Check a SUBSCRIBE in the order of BROKER-01, then attach the consumer (WIRE-09)."""
    try:
        topic_name = parse_topic(command.topic)
        authorization = connection.broker.authorization
        if not authorization.may_consume(connection.roles, topic_name, command.subscription):
            raise AuthorizationError("Client is not authorized to subscribe")
        check_name("Subscription name", command.subscription)
        check_name("Consumer name", command.consumer_name)
        size = sum(len(pair.key) + len(pair.value) for pair in command.metadata)
        if size > MAX_CONSUMER_METADATA or len(command.metadata) > MAX_CONSUMER_METADATA:
            raise MetadataError(f"Metadata of {size} characters, allowed are {MAX_CONSUMER_METADATA}")
        check_properties("Subscription properties", command.subscription_properties)
        check_properties("Schema properties", command.schema.properties)
        present = connection.consumers.get(command.consumer_id)
        if present is not None:
            if isinstance(present, Reserved) or not present.ready:
                raise connection.still_present("Consumer")
            connection.success(command.request_id)
            return
        if len(connection.consumers) >= connection.services.config.max_consumers_per_connection:
            raise TooManyRequests("Too many consumers on one connection")
        topic = connection.broker.topics.for_use(topic_name, create=command.force_topic_creation)
        _subscribe(connection, command, topic, probe=True)
    except BrokerError as error:
        connection.refuse(command.request_id, error)


def _of_address(connection: Connection, topic: "AnyTopic") -> int:
    """Count the consumers of the topic that come from the connection's address."""
    return sum(
        each.connection.address == connection.address
        for subscription in topic.subscriptions.values()
        for each in subscription.consumers
    )


def _subscribe(
    connection: Connection, command: proto.CommandSubscribe, topic: "AnyTopic", probe: bool
) -> None:
    """Raises the refusal. `probe`: a consumer that excludes the new one may be probed for liveness first;
    False after the probe, when the SUBSCRIBE is counted already."""
    broker = connection.broker
    policies = topic.policies
    if policies.max_consumers and topic.consumer_count >= policies.max_consumers:
        raise ConsumerBusy("Topic reached max consumers limit")
    limit = connection.services.config.max_consumers_per_address
    if limit and _of_address(connection, topic) >= limit:
        raise ConsumerBusy("Topic reached max same address consumers limit")
    name = command.subscription
    durable = command.durable and topic.persistent
    if durable and name not in topic.subscriptions and not policies.auto_subscription_creation:
        raise SubscriptionNotFound("Subscription does not exist")
    if command.HasField("schema"):
        broker.schemas.check_consumer(topic, command.schema)
    kind = proto.CommandSubscribe.SubType.Name(command.subType)
    if policies.subscription_types and kind not in policies.subscription_types:
        raise NotAllowed(f"Topic[{{{topic.name}}}] doesn't support {kind} sub type!")
    if command.read_compacted and command.subType in (SubType.Shared, SubType.Key_Shared):
        raise NotAllowed("readCompacted only allowed on failover or exclusive subscriptions")
    if topic.persistent and not name.strip():
        raise ProducerBusy("Empty subscription name")
    if connection.protocol_version < 4:
        raise UnsupportedVersion("Consumer doesn't support batch-message")
    if name.startswith(RESERVED_PREFIX) or (topic.persistent and name == RESERVED_NAME):
        raise ProducerBusy(f"Subscription with reserved subscription name attempted: {name}")
    if probe and isinstance(topic, Topic):
        topic.rates.check_subscribe((connection.peer, command.consumer_name, command.consumer_id))
    consumer = Consumer(connection, command, connection.services.wall_time)
    subscription = topic.subscriptions.get(name)
    try:
        if subscription is not None:
            subscription.check(consumer, durable)
        elif command.subType == SubType.Key_Shared:
            topic.check_first_key_shared(consumer)
    except ConflictingConsumer as conflict:
        if not probe:
            raise
        _probe(connection, command, topic, conflict)
        return
    consumer.set_key_filter()
    if subscription is None:
        check_room(topic)
        subscription = _new_subscription(topic, command, durable)
    subscription.add(consumer)
    connection.consumers[consumer.id] = consumer
    connection.services.journal.confirm(lambda: _subscribed(connection, command.request_id, consumer))


def check_room(topic: "AnyTopic") -> None:
    """Raises `NotAllowed` where configuration or policies allow clients no more subscriptions."""
    present = len(topic.subscriptions)
    most = topic.services.config.max_subscriptions_per_topic
    if present >= most or not topic.policies.allows_subscription(present):
        raise NotAllowed(NO_ROOM_FOR_SUBSCRIPTIONS.format(topic.name))


def _new_subscription(
    topic: "AnyTopic", command: proto.CommandSubscribe, durable: bool
) -> "Subscription | NonPersistentSubscription":
    """Create a subscription at its initial position, or at its start id (BROKER-17)."""
    if not isinstance(topic, Topic):
        return topic.subscribe(command.subscription, -1, False)
    log = topic.log
    view = topic.compaction.view if command.read_compacted else None
    if command.initialPosition == proto.CommandSubscribe.Earliest:
        mark_delete = min(log.first, log.first if view is None else view.first) - 1
    else:
        mark_delete = log.end - 1
    if not durable and command.HasField("start_message_id"):
        start = command.start_message_id
        before = _signed(start.ledgerId), _signed(start.entryId) - 1
        # A start behind the last entry does not count: the initial position does.
        if before <= log.position(log.end - 1):
            # One entry back: that entry is delivered, and the client discards messages before its start.
            mark_delete = _offset_of(topic, view, start) - 1
    if command.start_message_rollback_duration_sec:
        since = topic.services.wall_time - command.start_message_rollback_duration_sec * 1000
        mark_delete = log.find_publish_time(since) - 1
    properties = tuple((pair.key, pair.value) for pair in command.subscription_properties)
    return topic.subscribe(command.subscription, mark_delete, durable, properties)


def _offset_of(topic: Topic, view: CompactedView | None, target: proto.MessageIdData) -> int:
    """Return the offset of an id; a view also finds entries whose ledgers are deleted."""
    ledger_id, entry_id = _signed(target.ledgerId), _signed(target.entryId)
    offset = topic.log.offset(ledger_id, entry_id)
    left = None if view is None else view.offset(ledger_id, entry_id)
    return offset if left is None else min(offset, left)


def _subscribed(connection: Connection, request_id: int, consumer: Consumer) -> None:
    """Send SUCCESS, unless the consumer was detached meanwhile (rule BROKER-10)."""
    if connection.consumers.get(consumer.id) is consumer and not consumer.closed:
        if consumer.subscription.moves_to is not None and connection.takes_migration:
            connection.close_consumer(consumer)
            return
        consumer.ready = True
        connection.success(request_id)
        dispatcher = consumer.subscription.dispatcher
        assert dispatcher is not None
        dispatcher.on_subscribed(consumer)
        consumer.subscription.check_end_of_topic()


def _probe(
    connection: Connection, command: proto.CommandSubscribe, topic: "AnyTopic", conflict: ConflictingConsumer
) -> None:
    """An Exclusive consumer is connected: the new consumer replaces it if its connection is dead."""
    reserved = Reserved()
    connection.consumers[command.consumer_id] = reserved

    def answered(alive: bool) -> None:
        if connection.consumers.get(command.consumer_id) is not reserved:
            return  # the client closed the consumer, or disconnected
        del connection.consumers[command.consumer_id]
        try:
            if alive:
                raise conflict
            again = connection.broker.topics.for_use(topic.topic_name, create=command.force_topic_creation)
            _subscribe(connection, command, again, probe=False)
        except BrokerError as error:
            connection.refuse(command.request_id, error)

    conflict.present.connection.check_liveness(answered)


# --- messages -----------------------------------------------------------------------------------------


def on_flow(connection: Connection, flow: Flow) -> None:
    """Grant permits, unless the consumer is unknown. A FLOW without permits ends the connection (rule
    BROKER-26)."""
    permits = flow.message_permits
    consumer = connection.consumers.get(flow.consumer_id)
    if isinstance(consumer, Consumer) and consumer.ready:
        if permits <= 0:
            raise RemoteProtocolError("FLOW without permits")
        if consumer.permits + consumer.saved_permits + permits > MAX_PERMITS:
            raise RemoteProtocolError(f"FLOW adds up to more than {MAX_PERMITS} permits")
        consumer.subscription.grant(consumer, permits)


def on_ack(connection: Connection, ack: Ack) -> None:
    """Acknowledge; send a requested ACK_RESPONSE once the acknowledgement is durable (WIRE-12)."""
    consumer = connection.consumers.get(ack.consumer_id)
    if not isinstance(consumer, Consumer):
        return  # An unknown consumer is ignored, and gets no response even to a request.
    request_id = ack.request_id if connection.protocol_version >= RECEIPT_VERSION else None
    subscription = consumer.subscription
    transaction = transaction_id(ack.txnid_most_bits, ack.txnid_least_bits)
    if transaction is not None:
        _acknowledge_in_transaction(connection, consumer, ack, transaction)
        return
    if ack.ack_type == CUMULATIVE:
        if len(ack.message_ids) != 1:
            return
        subscription.acknowledge_cumulative(consumer, *ack.message_ids[0])
    else:
        subscription.acknowledge(consumer, ack.message_ids)
    if request_id is not None:
        consumer_id = ack.consumer_id

        def confirm() -> None:
            code = ServerError.ServiceNotReady if subscription.topic.lost else None
            _ack_response(connection, consumer_id, request_id, code, LOST if code else "")

        subscription.confirm(confirm)


def _acknowledge_in_transaction(
    connection: Connection, consumer: Consumer, ack: Ack, transaction: TransactionId
) -> None:
    """Take acknowledgements that take effect when the transaction is committed; ACK_RESPONSE always follows
    a request."""
    subscription = consumer.subscription
    error: BrokerError | None = None
    try:
        if not isinstance(subscription, Subscription):
            raise NotAllowed("Acknowledgements in a transaction need a persistent topic")
        topic = subscription.topic.name
        connection.broker.coordinators.check_subscription(transaction, topic, subscription.name)
        if ack.ack_type == CUMULATIVE:
            if len(ack.message_ids) != 1:
                raise NotAllowed(f"A cumulative acknowledgement of {len(ack.message_ids)} messages")
            subscription.pending_ack_handle.acknowledge_cumulative(*ack.message_ids[0], transaction)
        else:
            subscription.pending_ack_handle.acknowledge(consumer, ack.message_ids, transaction)
    except BrokerError as refusal:
        error = refusal
    request_id = ack.request_id
    if request_id is not None:
        code, text = (None, "") if error is None else (error.code, error.text)
        connection.services.journal.confirm(
            lambda: _ack_response(connection, ack.consumer_id, request_id, code, text)
        )


def _ack_response(
    connection: Connection, consumer_id: int, request_id: int, error: ServerError | None, text: str
) -> None:
    answer = proto.CommandAckResponse(consumer_id=consumer_id, request_id=request_id)
    if error is not None:
        answer.error = server_error(error)
        answer.message = text
    connection.send(Type.ACK_RESPONSE, answer)


def refuse_ack(connection: Connection, ack: Ack, error: BrokerError) -> None:
    """Acknowledge nothing; a client that asked for no response hears nothing, as from a Java broker."""
    if ack.request_id is not None and connection.protocol_version >= RECEIPT_VERSION:
        _ack_response(connection, ack.consumer_id, ack.request_id, error.code, error.text)


def on_redeliver(connection: Connection, command: proto.CommandRedeliverUnacknowledgedMessages) -> None:
    consumer = connection.consumers.get(command.consumer_id)
    if not isinstance(consumer, Consumer) or not consumer.ready:
        return
    epoch = command.consumer_epoch if command.HasField("consumer_epoch") else None
    ids = [(_signed(each.ledgerId), _signed(each.entryId)) for each in command.message_ids]
    consumer.subscription.redeliver(consumer, ids, epoch)


def _done(
    connection: Connection, request_id: int, subscription: "Subscription | NonPersistentSubscription"
) -> None:
    """Send SUCCESS for a durable change, unless another broker took the topic without that change."""
    if subscription.topic.lost:
        connection.error(request_id, ServerError.ServiceNotReady, LOST)
    else:
        connection.success(request_id)


# --- requests -----------------------------------------------------------------------------------------


def _consumer(connection: Connection, consumer_id: int) -> Consumer:
    """Raises `MetadataError` where the connection has no such consumer."""
    consumer = connection.consumers.get(consumer_id)
    if not isinstance(consumer, Consumer):
        raise MetadataError(NOT_FOUND)
    return consumer


def on_seek(connection: Connection, command: proto.CommandSeek) -> None:
    """Send CLOSE_CONSUMER to every consumer, then SUCCESS (GAP-35)."""
    try:
        if not command.HasField("message_id") and not command.HasField("message_publish_time"):
            raise MetadataError("Message id and message publish time were not present")
        consumer = _consumer(connection, command.consumer_id)
        subscription = consumer.subscription
        if not isinstance(subscription, Subscription):
            connection.success(command.request_id)  # It has no position.
            return
        topic = subscription.topic
        view = topic.compaction.view if consumer.read_compacted else None
        remaining = None
        if command.HasField("message_id"):
            target = command.message_id
            offset = _offset_of(topic, view, target)
            if target.ack_set:
                remaining = bits_from_words(list(target.ack_set))
        else:
            offset = topic.log.find_publish_time(command.message_publish_time)
            left = None if view is None else view.find_publish_time(command.message_publish_time)
            offset = offset if left is None else min(offset, left)
        subscription.seek(offset - 1, remaining)
    except BrokerError as error:
        connection.refuse(command.request_id, error)
        return
    request_id = command.request_id
    subscription.confirm(lambda: _done(connection, request_id, subscription))


def on_get_last_message_id(connection: Connection, command: proto.CommandGetLastMessageId) -> None:
    try:
        consumer = _consumer(connection, command.consumer_id)
        subscription = consumer.subscription
        if not isinstance(subscription, Subscription):
            raise BrokerError("GetLastMessageId is not possible on a non-persistent topic")
    except BrokerError as error:
        connection.refuse(command.request_id, error)
        return
    topic = subscription.topic
    answer = proto.CommandGetLastMessageIdResponse(request_id=command.request_id)
    view = topic.compaction.view if consumer.read_compacted else None
    if view is not None and topic.transactions.last_visible <= view.horizon:
        ledger_id, entry_id, batch_index = view.last_position
    else:
        ledger_id, entry_id, batch_index = topic.last_position()
    answer.last_message_id.ledgerId = ledger_id % 2**64
    answer.last_message_id.entryId = entry_id % 2**64
    answer.last_message_id.partition = topic.partition
    answer.last_message_id.batch_index = batch_index
    ledger_id, entry_id = topic.log.position(subscription.cursor.mark_delete)
    if ledger_id >= 0:
        answer.consumer_mark_delete_position.ledgerId = ledger_id
        answer.consumer_mark_delete_position.entryId = entry_id % 2**64
    connection.send(Type.GET_LAST_MESSAGE_ID_RESPONSE, answer)


def on_consumer_stats(connection: Connection, command: proto.CommandConsumerStats) -> None:
    answer = proto.CommandConsumerStatsResponse(request_id=command.request_id)
    consumer = connection.consumers.get(command.consumer_id)
    if not isinstance(consumer, Consumer):
        refuse_consumer_stats(connection, command, ConsumerNotFound(NOT_FOUND))
        return
    subscription = consumer.subscription
    dispatcher = subscription.dispatcher
    answer.consumerName = consumer.name
    answer.availablePermits = consumer.permits % 2**64
    # Pulsar counts them for Shared and Key_Shared alone.
    answer.unackedMessages = dispatcher.unacked(consumer) if isinstance(dispatcher, Shared) else 0
    answer.blockedConsumerOnUnackedMsgs = consumer.blocked
    answer.address = connection.peer
    answer.connectedSince = wall_text(consumer.connected_at)
    answer.type = SubType.Name(consumer.kind)
    answer.msgBacklog = subscription.backlog
    connection.send(Type.CONSUMER_STATS_RESPONSE, answer)


def refuse_consumer_stats(
    connection: Connection, command: proto.CommandConsumerStats, error: BrokerError
) -> None:
    answer = proto.CommandConsumerStatsResponse(
        request_id=command.request_id, error_code=server_error(error.code), error_message=error.text
    )
    connection.send(Type.CONSUMER_STATS_RESPONSE, answer)


def on_unsubscribe(connection: Connection, command: proto.CommandUnsubscribe) -> None:
    try:
        consumer = _consumer(connection, command.consumer_id)
        consumer.subscription.unsubscribe(consumer, command.force)
    except BrokerError as error:
        connection.error(command.request_id, error.code, error.text)
        return
    request_id = command.request_id
    subscription = consumer.subscription
    connection.services.journal.confirm(lambda: _done(connection, request_id, subscription))


def on_close_consumer(connection: Connection, command: proto.CommandCloseConsumer) -> None:
    """Answer SUCCESS, also for unknown ids. Unacknowledged messages are redelivered (WIRE-16)."""
    consumer = connection.consumers.pop(command.consumer_id, None)
    if isinstance(consumer, Consumer):
        connection.detach_consumer(consumer)
    connection.success(command.request_id)


HANDLERS: dict[int, Handler] = {
    Type.SUBSCRIBE: on_subscribe,
    Type.FLOW: on_flow,
    Type.ACK: on_ack,
    Type.REDELIVER_UNACKNOWLEDGED_MESSAGES: on_redeliver,
    Type.SEEK: on_seek,
    Type.GET_LAST_MESSAGE_ID: on_get_last_message_id,
    Type.CONSUMER_STATS: on_consumer_stats,
    Type.UNSUBSCRIBE: on_unsubscribe,
    Type.CLOSE_CONSUMER: on_close_consumer,
}

REFUSALS: dict[int, Refusal] = {
    Type.SUBSCRIBE: refuse_request,
    Type.ACK: refuse_ack,
    Type.SEEK: refuse_request,
    Type.GET_LAST_MESSAGE_ID: refuse_request,
    Type.CONSUMER_STATS: refuse_consumer_stats,
    Type.UNSUBSCRIBE: refuse_request,
    Type.CLOSE_CONSUMER: refuse_request,
}
"""Command -> its answer with an error, as a rule of faults gives it."""
