"""Several brokers over one store: lookups lead to the owner, topics move, a stale owner confirms nothing."""

from typing import Any

import pytest

from pulsar_sansio.broker import Broker, BrokerConfig, MemoryStore
from pulsar_sansio.broker.admin_errors import AlreadyExists
from pulsar_sansio.broker.outputs import Persist, Released
from pulsar_sansio.broker.owner import OtherBroker
from pulsar_sansio.broker.storage.store import StoredTopic
from pulsar_sansio.model.errors import LocalProtocolError, ServiceNotReady
from pulsar_sansio.wire import proto
from tests.broker.peer import SECOND, TOPIC, WALL, Type, World

Lookup = proto.CommandLookupTopicResponse

B = "pulsar://b:6650"
SECURE_B = "pulsar+ssl://b:6651"


class Node(World):
    """A broker that is one of several; `answer`: its `Owner`'s answer for topics that it does not serve."""

    def __init__(
        self, answer: OtherBroker | ServiceNotReady | None = None, store: MemoryStore | None = None
    ) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bool]] = []
        self.released: list[str] = []
        super().__init__(BrokerConfig(service_url="pulsar://a:6650"), store)

    def start(self) -> None:
        super().start()
        self.broker = Broker(
            self.now, self.config, self.store.load(), seed=1, wall_time=WALL, owner=self.who_serves
        )
        self.pump()

    def who_serves(self, topic: str, authoritative: bool) -> OtherBroker | None:
        self.asked.append((topic, authoritative))
        if isinstance(self.answer, ServiceNotReady):
            raise self.answer
        return self.answer

    def pump(self) -> None:
        outputs = self.broker.context.outputs
        for output in [each for each in outputs if isinstance(each, Released)]:
            outputs.remove(output)
            self.released.append(output.topic)
        super().pump()

    def stored(self) -> StoredTopic:
        return self.store.load().topics[TOPIC]


def lookup(node: Node, authoritative: bool = False) -> Any:
    peer = node.connect()
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic=TOPIC, request_id=5, authoritative=authoritative))
    return peer.expect(Type.LOOKUP_RESPONSE)


def test_a_lookup_leads_to_the_owner() -> None:
    answer = lookup(Node(OtherBroker(B, SECURE_B)))
    assert answer.response == Lookup.Connect
    assert answer.authoritative
    assert (answer.brokerServiceUrl, answer.brokerServiceUrlTls) == (B, SECURE_B)


@pytest.mark.parametrize("authoritative", [False, True])
def test_a_lookup_is_redirected(authoritative: bool) -> None:
    """LOOKUP-06."""
    node = Node(OtherBroker(B, redirect=True, authoritative=authoritative))
    answer = lookup(node, authoritative=True)
    assert answer.response == Lookup.Redirect
    assert answer.authoritative is authoritative
    assert answer.brokerServiceUrl == B
    assert not answer.HasField("brokerServiceUrlTls")
    assert node.asked == [(TOPIC, True)]


def test_a_lookup_when_no_broker_serves_the_topic() -> None:
    answer = lookup(Node(ServiceNotReady("no broker")))
    assert answer.response == Lookup.Failed
    assert answer.error == proto.ServiceNotReady


def test_a_topic_held_here_is_served_whatever_its_owner_is_said_to_be() -> None:
    node = Node()
    node.connect().producer()
    node.answer = OtherBroker(B)
    assert lookup(node).brokerServiceUrl == "pulsar://a:6650"


@pytest.mark.parametrize("answer", [OtherBroker(B), ServiceNotReady("no broker")])
def test_no_client_is_admitted_to_a_topic_of_another_broker(answer: OtherBroker | ServiceNotReady) -> None:
    """Rule BROKER-12."""
    node = Node(answer)
    peer = node.connect()
    peer.ask_producer()
    peer.expect_error("ServiceNotReady")
    peer.ask_subscribe()
    peer.expect_error("ServiceNotReady")
    assert node.broker.topics.by_name == {}


def test_a_namespace_that_is_not_there_is_served_by_no_broker() -> None:
    """The refusal says that the namespace is missing: no broker has it."""
    node = Node(OtherBroker(B))
    peer = node.connect()
    peer.ask_producer("persistent://no/where/t")
    peer.expect_error("TopicNotFound")
    peer.ask_subscribe(topic="persistent://no/where/t")
    peer.expect_error("TopicNotFound")
    assert node.asked == []


@pytest.mark.parametrize("moved_to", [None, OtherBroker(B), OtherBroker(B, SECURE_B)])
def test_a_released_topic_disconnects_all_clients(moved_to: OtherBroker | None) -> None:
    """GAP-37; receipts of accepted messages come first."""
    node = Node()
    peer, other = node.connect(), node.connect()
    peer.producer()
    other.subscribe()
    node.hold_writes = True
    peer.publish(b"one")
    node.broker.ownership.release(node.now, TOPIC, moved_to)
    node.pump()
    gone = other.expect(Type.CLOSE_CONSUMER)
    peer.nothing()
    assert node.released == []
    node.answer = OtherBroker(B)
    peer.ask_producer(producer_id=1)
    peer.expect_error("ServiceNotReady")
    node.sync()
    peer.expect(Type.SEND_RECEIPT)
    closed = peer.expect(Type.CLOSE_PRODUCER)
    assert node.released == [TOPIC]
    assert node.broker.topics.by_name == {}
    for close in (gone, closed):
        assert close.request_id == 2**64 - 1
        assert close.HasField("assignedBrokerServiceUrl") is (moved_to is not None)
        assert close.HasField("assignedBrokerServiceUrlTls") is (
            moved_to is not None and bool(moved_to.service_url_tls)
        )
    if moved_to is not None:
        assert closed.assignedBrokerServiceUrl == B


def test_late_messages_are_ignored_for_one_interval_from_the_release_on() -> None:
    """GAP-37: also where the broker has had no input for a while before."""
    node = Node()
    peer = node.connect()
    peer.producer()
    node.now = 20 * SECOND
    node.broker.ownership.release(node.now, TOPIC)
    node.pump()
    peer.expect(Type.CLOSE_PRODUCER)
    node.now = 49 * SECOND
    peer.publish(b"late")
    assert peer.closed is None
    peer.nothing()
    node.now = 51 * SECOND
    peer.publish(b"too late")
    assert peer.closed is not None


def test_acknowledgements_that_wait_are_written_before_a_topic_is_released() -> None:
    node = Node()
    peer = node.connect()
    peer.producer()
    peer.publish(b"one")
    peer.expect(Type.SEND_RECEIPT)
    peer.subscribe()
    peer.ack(*peer.messages())
    node.broker.ownership.release(node.now, TOPIC)
    node.pump()
    assert node.released == [TOPIC]
    assert node.stored().cursors["s"].mark_delete == 0


def test_what_is_being_released_is_not_created_anew() -> None:
    """The topic exists until it is durable, and then on another broker: a second one would overwrite it. Rule
    STORE-10."""
    node = Node()
    node.hold_writes = True
    node.broker.topic_administration.create_partitioned_topic(node.now, TOPIC, 2)
    node.pump()
    first = f"{TOPIC}-partition-0"
    node.broker.ownership.release(node.now, first)
    with pytest.raises(AlreadyExists):
        node.broker.topic_administration.create_topic(node.now, first)
    node.broker.topic_administration.update_partitions(node.now, TOPIC, 3)
    assert sorted(node.broker.topics.by_name) == [f"{TOPIC}-partition-{index}" for index in (1, 2)]
    node.sync()
    assert node.released == [first]


def test_a_topic_goes_on_where_it_is_adopted() -> None:
    a = Node()
    b = Node(OtherBroker("pulsar://a:6650"), a.store)
    peer = a.connect()
    peer.producer()
    for number in range(3):
        peer.publish(b"%d" % number, number)
    before = peer.receipts()
    peer.subscribe()
    peer.ack(peer.messages()[0])
    a.broker.ownership.release(a.now, TOPIC)
    a.pump()
    b.broker.ownership.adopt(b.now, TOPIC, a.stored())
    b.pump()
    newcomer = b.connect()
    newcomer.subscribe()
    assert newcomer.payloads() == [b"1", b"2"]
    newcomer.producer()
    newcomer.publish(b"3", 3)
    receipt = newcomer.expect(Type.SEND_RECEIPT)
    assert (receipt.ledger_id, receipt.entry_id) > before[-1][1:]


def test_a_topic_is_adopted_once_and_released_where_it_is() -> None:
    node = Node()
    node.connect().producer()
    with pytest.raises(LocalProtocolError, match="is served here"):
        node.broker.ownership.adopt(node.now, TOPIC, StoredTopic())
    with pytest.raises(LocalProtocolError, match="no topic"):
        node.broker.ownership.release(node.now, "persistent://public/default/other")


def test_topics_are_listed_whichever_broker_serves_them() -> None:
    """GET_TOPICS_OF_NAMESPACE and WATCH_TOPIC_LIST list the topics of the cluster (PATTERN-02)."""
    node = Node()
    peer = node.connect()
    watch = proto.CommandWatchTopicList(
        request_id=1, watcher_id=3, namespace="public/default", topics_pattern="public/default/.*"
    )
    peer.send(Type.WATCH_TOPIC_LIST, watch)
    assert list(peer.expect(Type.WATCH_TOPIC_LIST_SUCCESS).topic) == []
    node.broker.ownership.topic_made(node.now, TOPIC)
    node.advance(0.0)
    assert list(peer.expect(Type.WATCH_TOPIC_UPDATE).new_topics) == [TOPIC]
    peer.producer()
    node.broker.ownership.release(node.now, TOPIC)
    node.pump()
    peer.expect(Type.CLOSE_PRODUCER)
    node.advance(0.0)
    peer.nothing()
    assert node.broker.topics.names.listed("public/default") == [TOPIC]
    node.broker.ownership.topic_gone(node.now, TOPIC)
    node.broker.ownership.topic_gone(node.now, TOPIC)
    node.advance(0.0)
    assert list(peer.expect(Type.WATCH_TOPIC_UPDATE).deleted_topics) == [TOPIC]
    peer.nothing()


def fenced(node: Node) -> list[Persist]:
    """The store refuses the write in progress, and the broker is told."""
    refused = list(node.held)
    node.held.clear()
    node.broker.ownership.lose(node.now, TOPIC, OtherBroker(B))
    for persist in refused:
        node.broker.persisted(node.now, persist.write)
    node.pump()
    return refused


def test_a_stale_owner_confirms_nothing() -> None:
    """Rule STORE-11."""
    node = Node()
    peer, other = node.connect(), node.connect()
    peer.producer()
    other.subscribe()
    node.hold_writes = True
    peer.publish(b"taken", 0)
    peer.publish(b"waiting", 1)
    assert fenced(node)
    assert peer.expect(Type.CLOSE_PRODUCER).assignedBrokerServiceUrl == B
    peer.nothing()
    assert other.expect(Type.CLOSE_CONSUMER).assignedBrokerServiceUrl == B
    peer.publish(b"late", 2)
    peer.nothing()
    assert peer.closed is None
    assert [persist.records for persist in node.held] in ([], [[]])


@pytest.mark.parametrize("made_again", [False, True])
def test_nor_anything_of_a_topic_that_it_has_deleted(made_again: bool) -> None:
    node = Node()
    peer, other = node.connect(), node.connect()
    peer.producer()
    node.hold_writes = True
    peer.publish(b"taken", 0)
    node.broker.topic_administration.delete_topic(node.now, TOPIC, force=True)
    node.pump()
    peer.nothing()
    if made_again:
        other.ask_producer()
    fenced(node)
    peer.expect(Type.CLOSE_PRODUCER)
    peer.nothing()
    if made_again:
        other.expect(Type.CLOSE_PRODUCER)
        other.nothing()


@pytest.mark.parametrize("what", ["acknowledgement", "unsubscription"])
@pytest.mark.parametrize("how", ["served", "released", "deleted", "made again"])
def test_nor_what_is_not_published(how: str, what: str) -> None:
    """Acknowledgements and other requests are refused, and no `Released` follows."""
    node = Node()
    peer, other = node.connect(), node.connect()
    publisher = node.connect()
    publisher.producer()
    publisher.publish(b"one")
    publisher.expect(Type.SEND_RECEIPT)
    peer.subscribe()
    (message,) = peer.messages()
    node.hold_writes = True
    if what == "acknowledgement":
        peer.ack(message, request_id=77)
    else:
        peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=77))
    peer.nothing()
    if how == "released":
        node.broker.ownership.release(node.now, TOPIC)
    elif how != "served":
        node.broker.topic_administration.delete_topic(node.now, TOPIC, force=True)
    node.pump()
    if how == "made again":
        other.ask_producer()
    fenced(node)
    if what == "acknowledgement":
        peer.expect(Type.CLOSE_CONSUMER)
        response = peer.expect(Type.ACK_RESPONSE)
        assert (response.request_id, response.error) == (77, proto.ServiceNotReady)
    else:
        peer.expect_error("ServiceNotReady")
    assert node.stored().cursors["s"].mark_delete == -1
    assert node.released == []


def test_a_close_of_the_client_is_answered_when_its_topic_is_lost() -> None:
    """The answer follows the broker's notice, which says that the messages are not confirmed (GAP-37)."""
    node = Node()
    peer = node.connect()
    peer.producer()
    node.hold_writes = True
    peer.publish(b"taken")
    peer.send(Type.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=0, request_id=9))
    peer.nothing()
    fenced(node)
    peer.expect(Type.CLOSE_PRODUCER)
    assert peer.expect(Type.SUCCESS).request_id == 9


def test_also_of_a_producer_that_is_fenced_out() -> None:
    node = Node()
    peer, other = node.connect(), node.connect()
    peer.producer()
    node.hold_writes = True
    peer.publish(b"taken")
    other.ask_producer(producer_access_mode=proto.ExclusiveWithFencing)
    peer.send(Type.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=0, request_id=9))
    peer.nothing()
    fenced(node)
    peer.expect(Type.CLOSE_PRODUCER)
    assert peer.expect(Type.SUCCESS).request_id == 9


def test_what_another_topic_has_under_way_is_confirmed_as_ever() -> None:
    node = Node()
    peer = node.connect()
    peer.producer()
    peer.producer("persistent://public/default/other", 1)
    node.hold_writes = True
    peer.publish(b"lost", 0, 0)
    peer.publish(b"kept", 0, 1)
    fenced(node)
    node.sync()
    peer.expect(Type.CLOSE_PRODUCER)
    assert peer.expect(Type.SEND_RECEIPT).producer_id == 1
    peer.nothing()


def test_what_waited_for_records_of_a_lost_topic_is_done_all_the_same() -> None:
    node = Node()
    peer = node.connect()
    other = "persistent://public/default/other"
    peer.producer()
    peer.producer(other, 1)
    node.hold_writes = True
    peer.publish(b"taken", 0)
    peer.publish(b"waiting", 1)
    node.broker.ownership.release(node.now, other)
    node.pump()
    fenced(node)
    node.sync()
    assert node.released == [other]


def test_an_older_broker() -> None:
    """`protocol_version` and `feature_flags` set what the broker announces; an ACK gets no answer."""
    world = World(BrokerConfig(protocol_version=16, feature_flags=False), MemoryStore())
    peer = world.raw()
    peer.send(
        Type.CONNECT,
        proto.CommandConnect(client_version="test", protocol_version=21, auth_method_name="none"),
    )
    connected = peer.expect(Type.CONNECTED)
    assert connected.protocol_version == 16
    assert not connected.HasField("feature_flags")
    peer.producer()
    peer.publish(b"one")
    peer.expect(Type.SEND_RECEIPT)
    peer.subscribe()
    peer.ack(*peer.messages(), request_id=7)
    peer.nothing()
