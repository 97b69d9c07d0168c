"""The themes of conversations: which actions their clients choose among, and how often."""

from collections.abc import Callable
from typing import NamedTuple

from pulsar_sansio.wire import proto
from tests.differential.generator import asking, consuming, producing, transacting, wrong
from tests.differential.generator.script import Script
from tests.differential.steps import NAMESPACE

SubType = proto.CommandSubscribe.SubType

Action = Callable[[Script], None]


class Theme(NamedTuple):
    """The actions of the clients of a conversation, by weight. `wrong`: the share of wrong actions."""

    actions: dict[Action, float]
    topics: tuple[str, ...] = ("a",)
    kinds: tuple[int, ...] = (SubType.Exclusive,)
    subscriptions: tuple[str, ...] = ("s",)
    wrong: float = 0.12
    first: tuple[Action, ...] = ()


_CONSUMING: dict[Action, float] = {
    producing.send: 4,
    producing.send_batch: 1.5,
    consuming.subscribe: 2,
    consuming.flow: 2,
    consuming.acknowledge: 2,
    consuming.acknowledge_cumulatively: 0.7,
    consuming.acknowledge_in_batch: 1,
    consuming.redeliver: 1.2,
    consuming.close_consumer: 1,
    asking.another_connection: 0.5,
    asking.drop: 0.4,
}

THEMES: tuple[Theme, ...] = (
    Theme(
        _CONSUMING
        | {
            consuming.seek: 1,
            consuming.last_message_id: 1,
            consuming.unsubscribe: 0.5,
            consuming.statistics: 0.3,
        }
    ),
    Theme(_CONSUMING, kinds=(SubType.Shared,)),
    Theme(
        _CONSUMING
        | {
            consuming.subscribe_with_options: 1,
        },
        kinds=(SubType.Failover,),
    ),
    Theme(
        _CONSUMING
        | {
            producing.send_with_key: 5,
            consuming.subscribe_sticky: 0.7,
        },
        kinds=(SubType.Key_Shared,),
    ),
    Theme(
        {
            producing.producer_with_access_mode: 4,
            producing.producer_with_topic_epoch: 1,
            producing.open_producer: 1,
            producing.send: 3,
            producing.close_producer: 2,
            asking.another_connection: 1,
            asking.drop: 0.7,
            producing.producer_again: 1,
            producing.producer_with_subscription: 0.5,
        }
    ),
    Theme(
        {
            producing.open_producer: 2,
            producing.send: 3,
            producing.send_batch: 1,
            producing.send_again: 3,
            producing.producer_again: 1,
            producing.close_producer: 1,
            consuming.subscribe: 1,
            asking.drop: 0.3,
            asking.unload: 0.4,
        },
        first=(producing.deduplicate,),
    ),
    Theme(
        {
            producing.send: 3,
            producing.send_batch: 1,
            consuming.read: 3,
            consuming.flow: 2,
            consuming.seek: 2,
            consuming.last_message_id: 2,
            consuming.unsubscribe: 0.4,
        },
    ),
    Theme(
        {
            asking.create_schema: 3,
            asking.get_schema: 3,
            producing.producer_with_schema: 2,
            consuming.subscribe_with_schema: 2,
            producing.open_producer: 0.5,
            producing.send: 1,
            producing.close_producer: 0.4,
        },
        wrong=0.06,
    ),
    Theme(
        {
            transacting.connect_coordinator: 1,
            transacting.begin: 1.5,
            transacting.add_partition: 1.5,
            transacting.add_subscription: 1,
            transacting.send_in_transaction: 3,
            producing.send: 1,
            consuming.subscribe: 1,
            consuming.flow: 1.5,
            transacting.acknowledge_in_transaction: 1.5,
            transacting.end: 2,
            consuming.last_message_id: 0.5,
        },
        kinds=(SubType.Shared, SubType.Exclusive),
    ),
    Theme(
        {
            asking.list_topics: 3,
            asking.watch_topics: 2,
            asking.close_watcher: 0.5,
            producing.open_producer: 2,
            asking.create_topic: 1,
            asking.delete_topic: 1,
            asking.create_partitioned_topic: 0.6,
            asking.partitions: 2,
            asking.lookup: 2,
        },
        topics=("a", "b", f"non-persistent://{NAMESPACE}/n", "p-partition-0"),
    ),
    Theme(
        _CONSUMING
        | {
            consuming.seek: 0.5,
            consuming.last_message_id: 0.5,
            consuming.read: 0.5,
            consuming.unsubscribe: 0.5,
        },
        topics=(f"non-persistent://{NAMESPACE}/n",),
        kinds=(SubType.Exclusive, SubType.Shared),
    ),
    Theme(
        _CONSUMING
        | {asking.unload: 1, asking.terminate: 0.7, asking.delete_topic: 0.7, consuming.last_message_id: 0.7},
        kinds=(SubType.Exclusive, SubType.Shared),
    ),
    Theme(
        _CONSUMING
        | {
            producing.send_delayed: 3,
            producing.pause: 1,
        },
        kinds=(SubType.Shared,),
        wrong=0.05,
    ),
    Theme(
        _CONSUMING
        | {
            consuming.subscribe_with_options: 3,
            consuming.read: 1,
            consuming.unsubscribe: 1,
            consuming.seek: 1,
        },
        topics=("a", "b"),
        kinds=(SubType.Exclusive, SubType.Shared),
        subscriptions=("s", "r"),
        wrong=0.5,
    ),
)

WRONG: tuple[Action, ...] = (
    wrong.wrong_producer_id,
    wrong.wrong_checksum,
    wrong.unknown_consumer,
    wrong.unknown_consumer,
    wrong.no_permits,
    wrong.unknown_positions,
    wrong.seek_to_unknown,
    wrong.subscribe_again,
    wrong.other_kind,
    wrong.wrong_names,
    wrong.wrong_names,
    wrong.wrong_subscription,
    wrong.wrong_namespace,
    wrong.unknown_transaction,
    wrong.connect_again,
    producing.producer_again,
)
