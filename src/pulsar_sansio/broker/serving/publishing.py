"""The handlers of PRODUCER, SEND and CLOSE_PRODUCER."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...model.errors import (
    AuthorizationError,
    BrokerError,
    FrameError,
    MetadataError,
    NotAllowed,
    PersistenceError,
    ProducerBusy,
    RemoteProtocolError,
    ServerError,
    ServiceNotReady,
    TooManyRequests,
    TopicTerminated,
)
from ...model.topic_name import TopicName
from ...model.transaction_id import transaction_id
from ...wire import Send, encode_send_receipt, proto
from ..topics import quotas
from ..topics.producing.producer import MODE_NAMES, Producer
from ..topics.producing.producers import NameTaken
from ..topics.topic import Topic
from .connection import Connection, Handler, Refusal, Reserved, Type
from .lookups import check_name, check_properties, code, parse_topic, refuse_request
from .subscribing import check_room

if TYPE_CHECKING:
    from ..topics.registry import AnyTopic

DROPPED = -1
"""Ledger and entry id in the receipt of a duplicate, which is not stored."""


OF_ONE_MESSAGE = (ServerError.NotAllowedError, ServerError.ChecksumError)
"""Errors of a SEND after which the broker takes the messages that follow."""


def on_producer(connection: Connection, command: proto.CommandProducer) -> None:
    """Check a PRODUCER in the order of BROKER-45, then create the producer (WIRE-06)."""
    connection.reopens(command.producer_id)
    try:
        topic_name = parse_topic(command.topic)
        _authorize(connection, topic_name, command.initial_subscription_name)
        check_name("Producer name", command.producer_name)
        check_name("Subscription name", command.initial_subscription_name)
        check_properties("Producer properties", command.metadata)
        check_properties("Schema properties", command.schema.properties)
        present = connection.producers.get(command.producer_id)
        if present is not None:
            if isinstance(present, Reserved) or not present.ready or present.closing:
                raise connection.still_present("Producer")
            _answer_again(connection, command, present)
            return
        if len(connection.producers) >= connection.services.config.max_producers_per_connection:
            raise TooManyRequests("Too many producers on one connection")
        _create(connection, command, connection.broker.topics.for_use(topic_name, create=True), probe=True)
    except BrokerError as error:
        connection.refuse(command.request_id, error)


def _authorize(connection: Connection, topic: TopicName, initial_subscription: str) -> None:
    """Raises `AuthorizationError`."""
    authorization, roles = connection.broker.authorization, connection.roles
    if not authorization.may_produce(roles, topic) or (
        initial_subscription and not authorization.may_consume(roles, topic, initial_subscription)
    ):
        raise AuthorizationError("Client is not authorized to Produce")


def _answer_again(connection: Connection, command: proto.CommandProducer, present: Producer) -> None:
    answer = proto.CommandProducerSuccess(
        request_id=command.request_id,
        producer_name=present.name,
        last_sequence_id=-1,
        schema_version=present.schema_version,
        producer_ready=True,
    )
    connection.send(Type.PRODUCER_SUCCESS, answer)


def _create(connection: Connection, command: proto.CommandProducer, topic: "AnyTopic", probe: bool) -> None:
    """Raises the refusal. `probe`: a producer that holds the name may be probed for liveness first."""
    broker = connection.broker
    policies = topic.policies
    if topic.migrated_to is not None:
        if not connection.takes_migration:
            raise ServiceNotReady(f"Topic {topic.name} has migrated to another cluster")
        connection.send_migrated(proto.CommandTopicMigrated.Producer, command.producer_id, topic.migrated_to)
        connection.send_close_producer(command.producer_id)
        return
    if isinstance(topic, Topic):
        quotas.check(topic)
        if topic.terminated_at is None and not topic.has_room():
            raise _no_room(topic)
    limit = policies.max_producers
    if limit and len(topic.producers.by_name) >= limit:
        raise ProducerBusy("Topic reached max producers limit")
    limit = connection.services.config.max_producers_per_address
    if limit and _of_address(connection, topic) >= limit:
        raise ProducerBusy(f"Topic '{topic.name}' reached max same address producers limit")
    if policies.encryption_required and not command.encrypted:
        raise MetadataError(f"Encryption is required in {topic.name}")
    schema_version = b""
    if command.HasField("schema"):
        schema_version = broker.schemas.register(
            topic.topic_name, command.schema, policies, connection.services.wall_time
        )
    else:
        broker.schemas.check_producer(topic.topic_name, policies)
    if topic.terminated_at is not None:
        raise TopicTerminated("Topic was already terminated")
    initial = command.initial_subscription_name
    if initial and isinstance(topic, Topic) and initial not in topic.subscriptions:
        if not policies.auto_subscription_creation:
            raise NotAllowed(
                f"Subscription {initial} does not exist, and subscriptions are not created automatically"
            )
        check_room(topic)
        topic.subscribe(initial, topic.log.first - 1, durable=True)
    name = command.producer_name or connection.services.new_producer_name()
    producer = Producer(connection, command, name, topic, connection.services.wall_time)
    producer.schema_version = schema_version
    assert producer.mode in MODE_NAMES
    try:
        admitted = topic.producers.join(producer)
    except NameTaken as taken:
        if not probe:
            raise
        _probe(connection, command, topic, taken.present)
        return
    if topic.deduplication is not None:
        topic.deduplication.attached(name)
    connection.producers[producer.id] = producer
    connection.services.journal.confirm(lambda: connection.producer_success(producer, admitted))


def _of_address(connection: Connection, topic: "AnyTopic") -> int:
    """Count the producers of the topic that come from the connection's address."""
    return sum(each.connection.address == connection.address for each in topic.producers.by_name.values())


def _no_room(topic: Topic) -> PersistenceError:
    stored = topic.services.stored_bytes
    return PersistenceError(
        f"The broker has no room for messages: they take {stored.used} bytes of memory, allowed are "
        f"{stored.limit}"
    )


def _probe(
    connection: Connection, command: proto.CommandProducer, topic: "AnyTopic", present: Producer
) -> None:
    """Another connection holds the name: the new producer gets it if that connection is dead (rule
    BROKER-42)."""
    reserved = Reserved()
    connection.producers[command.producer_id] = reserved

    def answered(alive: bool) -> None:
        if connection.producers.get(command.producer_id) is not reserved:
            return  # the client closed the producer, or disconnected
        del connection.producers[command.producer_id]
        try:
            if alive:
                raise NameTaken(present)
            _create(
                connection,
                command,
                connection.broker.topics.for_use(topic.topic_name, create=True),
                probe=False,
            )
        except BrokerError as error:
            connection.refuse(command.request_id, error)

    present.connection.check_liveness(answered)


def on_send(connection: Connection, send: Send) -> None:
    """Publish one message or batch. The receipt leaves once the entry is durable (WIRE-07).

    Where the broker's memory is full, the producers of the topic are closed after their receipts.
    """
    producer = connection.producers.get(send.producer_id)
    if not isinstance(producer, Producer) or producer.fenced or not (producer.ready or producer.closing):
        if connection.closed_recently(send.producer_id):
            return
        raise RemoteProtocolError(f"SEND to producer {send.producer_id}, which is not there or not ready")
    if producer.closing and producer.topic.terminated_at is None:
        return  # CLOSE_PRODUCER is in flight; the client resends to another broker
    topic = producer.topic
    if isinstance(topic, Topic) and topic.terminated_at is None and not topic.has_room():
        topic.producers.disconnect_all(_no_room(topic))
        return
    try:
        _check_transaction(connection, producer, send)
        stored = topic.publish(producer, send)
    except BrokerError as error:
        _send_error(producer, send, error)
        return
    except FrameError as error:
        raise RemoteProtocolError(f"SEND with headers that cannot be parsed: {error}") from error
    if not stored:
        dropped = encode_send_receipt(
            send.producer_id, send.sequence_id, DROPPED, DROPPED, send.highest_sequence_id
        )
        _answer_in_turn(producer, lambda: connection.write(dropped))


def _send_error(producer: Producer, send: Send, error: BrokerError) -> None:
    refusal = proto.CommandSendError(
        producer_id=send.producer_id,
        sequence_id=max(send.sequence_id, send.highest_sequence_id or 0),
        error=code(error),
        message=error.text,
    )
    _answer_in_turn(producer, lambda: producer.connection.send(Type.SEND_ERROR, refusal))


def refuse_send(connection: Connection, send: Send, error: BrokerError) -> None:
    """Refuse a SEND that the broker could store.

    Unless the error is about this message alone, the producer is closed, as Java's topics close theirs after
    a failed write: messages behind it must not overtake it, because the client sends all of them again.
    """
    producer = connection.producers.get(send.producer_id)
    if not isinstance(producer, Producer) or producer.fenced or producer.closing or not producer.ready:
        on_send(connection, send)
        return
    _send_error(producer, send, error)
    if error.code not in OF_ONE_MESSAGE:
        connection.close_producer(producer)


def _check_transaction(connection: Connection, producer: Producer, send: Send) -> None:
    """Raise `NotAllowed` for a message whose transaction cannot take it.

    The Java client gives up that message then. After other refusals it connects again, and sends it again.
    """
    transaction = transaction_id(send.txnid_most_bits, send.txnid_least_bits)
    if transaction is None:
        return
    if not isinstance(producer.topic, Topic):
        raise NotAllowed("Transactions need a persistent topic")
    try:
        connection.broker.coordinators.check_topic(transaction, producer.topic.name)
    except BrokerError as error:
        raise NotAllowed(error.text) from error


def _answer_in_turn(producer: Producer, answer: Callable[[], None]) -> None:
    """Answer a SEND that stores nothing, after the receipts of those before it (BROKER-41).

    While the answer waits, it counts as a pending publish, so that a client cannot accumulate such answers.
    """
    connection = producer.connection
    if not producer.pending:
        answer()
        return
    connection.pending_publishes += 1

    def answer_now() -> None:
        connection.pending_publishes -= 1
        answer()
        connection.check_reading()

    producer.after_receipts(answer_now)


def on_close_producer(connection: Connection, command: proto.CommandCloseProducer) -> None:
    """Answer SUCCESS in every case, after the receipts of earlier messages (WIRE-08)."""
    producer = connection.producers.get(command.producer_id)
    if not isinstance(producer, Producer):
        connection.producers.pop(command.producer_id, None)
        connection.success(command.request_id)
        return

    def done() -> None:
        if connection.producers.get(command.producer_id) is producer:
            connection.detach_producer(producer)
        connection.success(command.request_id)

    producer.close_when_drained(done)


HANDLERS: dict[int, Handler] = {
    Type.PRODUCER: on_producer,
    Type.SEND: on_send,
    Type.CLOSE_PRODUCER: on_close_producer,
}

REFUSALS: dict[int, Refusal] = {
    Type.PRODUCER: refuse_request,
    Type.SEND: refuse_send,
    Type.CLOSE_PRODUCER: refuse_request,
}
"""Command -> its answer with an error, as a rule of faults gives it."""
