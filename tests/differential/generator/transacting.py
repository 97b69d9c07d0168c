"""Actions in transactions."""

from pulsar_sansio.wire import INDIVIDUAL, proto
from tests.differential.generator.consuming import acknowledge_ids, subscribe
from tests.differential.generator.producing import open_producer, send
from tests.differential.generator.script import Script
from tests.differential.steps import SYMBOL

Type = proto.BaseCommand.Type


def connect_coordinator(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.TC_CLIENT_CONNECT_REQUEST,
        proto.CommandTcClientConnectRequest(request_id=script.request(), tc_id=0),
    )


def begin(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.NEW_TXN,
        proto.CommandNewTxn(request_id=script.request(), txn_ttl_millis=60_000, tc_id=0),
    )
    script.transactions += 1


def transaction_of(script: Script) -> dict[str, int]:
    if not script.transactions:
        begin(script)
    return {
        "txnid_most_bits": SYMBOL + script.random.randrange(script.transactions),
        "txnid_least_bits": 0,
    }


def add_partition(script: Script) -> None:
    add_topic(script, script.topic(), transaction_of(script))


def add_topic(script: Script, name: str, transaction: dict[str, int]) -> None:
    script.added.add((name, transaction["txnid_most_bits"]))
    script.frame(
        script.connection(),
        Type.ADD_PARTITION_TO_TXN,
        proto.CommandAddPartitionToTxn(request_id=script.request(), partitions=[name], **transaction),
    )


def add_subscription(script: Script) -> None:
    add_to_subscription(script, script.topic(), "s", transaction_of(script))


def add_to_subscription(script: Script, name: str, subscription: str, transaction: dict[str, int]) -> None:
    command = proto.CommandAddSubscriptionToTxn(request_id=script.request())
    command.txnid_most_bits = transaction["txnid_most_bits"]
    command.txnid_least_bits = transaction["txnid_least_bits"]
    command.subscription.add(topic=name, subscription=subscription)
    script.frame(script.connection(), Type.ADD_SUBSCRIPTION_TO_TXN, command)


def send_in_transaction(script: Script) -> None:
    """Send in a transaction that has the topic, mostly."""
    producer = script.one_of(script.producers, open_producer)
    transaction = transaction_of(script)
    if (
        producer.topic,
        transaction["txnid_most_bits"],
    ) not in script.added and script.random.random() < 0.9:
        add_topic(script, producer.topic, transaction)
    send(script, transaction=transaction["txnid_most_bits"] - SYMBOL)


def acknowledge_in_transaction(script: Script) -> None:
    """Acknowledge in a transaction that has the subscription, mostly."""
    if not script.sent:
        return send(script)
    consumer = script.one_of(script.consumers, subscribe)
    sent = script.random.choice(script.sent)
    transaction = transaction_of(script)
    if script.random.random() < 0.9:
        add_to_subscription(script, consumer.topic, consumer.subscription, transaction)
    acknowledge_ids(
        script, INDIVIDUAL, [(SYMBOL + sent.number, 0, None)], request_id=script.request(), **transaction
    )
    return None


def end(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.END_TXN,
        proto.CommandEndTxn(
            request_id=script.request(),
            txn_action=script.random.choice([proto.TxnAction.COMMIT, proto.TxnAction.ABORT]),
            **transaction_of(script),
        ),
    )
