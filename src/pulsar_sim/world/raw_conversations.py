"""Conversations of raw peers with a broker that serves no other client any more (INV-A2).

Owns the exact answers to commands that the clients of a world seldom send. They concern names that are taken,
consumers that exclude each other, refusals in their order, lists and ends of topics, deduplication, and
topics that are not persistent.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.broker.outputs import Disconnect, Output, Transmit
from pulsar_sansio.broker.policies import SubscribeRate
from pulsar_sansio.wire import INDIVIDUAL, encode_ack, proto

from ..engine.failures import ViolationError
from .raw_peer import FIRST_LINK, RawPeer, SubType, T

if TYPE_CHECKING:
    from ..engine.randomness import Stream

MESSAGES = 5


class RawConversations:
    """The conversations with one broker.

    `settle`: lets the broker's driver obey all outputs; `obey` gets those of the links. `own(topic)`: makes
    the broker the owner of a name.
    """

    def __init__(
        self,
        broker: Broker,
        now: int,
        wall_time: int,
        stream: "Stream",
        settle: Callable[[], None],
        own: Callable[[str], None],
    ) -> None:
        self._broker = broker
        self.now = now
        """The present moment, which conversations advance."""
        self._wall_time = wall_time
        self._stream = stream
        self._settle = settle
        self._own = own
        self._peers: dict[int, RawPeer] = {}

    def obey(self, output: Output) -> None:
        """Obey an output of a link."""
        if isinstance(output, Transmit | Disconnect) and output.link in self._peers:
            peer = self._peers[output.link]
            while data := b"".join(self._broker.data_to_send(output.link)):
                peer.take(data)
            if isinstance(output, Disconnect):
                peer.closed = output.reason

    def hold(self, namespace: str) -> None:
        """Have all conversations, in topics of the namespace."""
        one, other = self._peer(), self._peer()
        self._share_messages(one, self._new_topic(namespace, "shared"))
        self._claim_names(one, other, self._new_topic(namespace, "names"))
        self._exclude(one, other, self._new_topic(namespace, "exclusive"))
        self._list_topics(one, namespace)
        self._switch_deduplication(one, self._new_topic(namespace, "deduplicated"))
        self._refuse(one, namespace)
        self._use_nonpersistent(one, other, namespace)
        self._limit_subscribing(one, self._new_topic(namespace, "limited"))
        self._end_topic(one, self._new_topic(namespace, "ended"))
        self._lose_rival(one, self._new_topic(namespace, "rival"))
        for peer in (one, other):
            peer.drop()

    def _peer(self) -> RawPeer:
        link = FIRST_LINK + len(self._peers)
        peer = self._peers[link] = RawPeer(self._broker, link, self.now, self._settle)
        peer.connect()
        return peer

    def _new_topic(self, namespace: str, name: str) -> str:
        topic = f"persistent://{namespace}/{name}"
        self._own(topic)
        self._do(self._broker.topic_administration.create_topic, topic)
        return topic

    def _do(self, command: Callable[..., Any], *arguments: Any) -> Any:
        result = command(self.now, *arguments)
        self._settle()
        return result

    def _pass(self, nanoseconds: int) -> None:
        """Let time pass; every timer fires at its moment."""
        end = self.now + nanoseconds
        while (due := self._broker.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._broker.handle_deadline(self.now)
            self._settle()
            self._wait(self.now)
        self.now = end
        self._wait(end)

    def _wait(self, now: int) -> None:
        """Let all peers know the present moment; those that are not silent answer the broker's PINGs."""
        for peer in self._peers.values():
            peer.now = now
            if not peer.is_silent and peer.closed is None:
                peer.answer_pings()

    # --- messages ---------------------------------------------------------------------------------------

    def _share_messages(self, peer: RawPeer, topic: str) -> None:
        """BROKER-04, BROKER-30, BROKER-31: a consumer gets as many messages as it has permits for, and those
        that it does not acknowledge are redelivered."""
        peer.open_producer(topic, 1, "raw")
        peer.expect(T.PRODUCER_SUCCESS)
        sent = []
        for number in range(MESSAGES):
            payload = b"%d of %d" % (number, MESSAGES)
            peer.publish(1, "raw", number, payload, self._wall_time)
            sent.append((payload, peer.receipt(number)))
        peer.subscribe(topic, "shared", SubType.Shared, 1)
        peer.expect(T.SUCCESS)
        peer.subscribe(topic, "shared", SubType.Shared, 1)  # it is open already
        peer.expect(T.SUCCESS)
        peer.nothing()
        some = 1 + self._stream.below(MESSAGES - 1)
        peer.flow(1, some)
        for payload, position in sent[:some]:
            peer.message(1, payload, position, 0)
        peer.nothing()
        acknowledged = self._stream.below(some)
        peer.acknowledge(1, sent[acknowledged][1])
        peer.send(
            T.REDELIVER_UNACKNOWLEDGED_MESSAGES,
            proto.CommandRedeliverUnacknowledgedMessages(consumer_id=1),
        )
        peer.flow(1, MESSAGES)
        left = [each for each in sent if each is not sent[acknowledged]]
        for payload, position in left:
            peer.message(1, payload, position, 1 if (payload, position) in sent[:some] else 0)
        peer.nothing()
        peer.acknowledge(1, *(position for _, position in left))
        self._ask_last(peer, 1, sent[-1][1])
        peer.send(T.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=1, request_id=peer.request()))
        peer.expect(T.SUCCESS)
        self._ask_unknown(peer, 1)
        peer.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=peer.request()))
        peer.expect(T.SUCCESS)

    def _ask_last(self, peer: RawPeer, consumer_id: int, last: tuple[int, int]) -> None:
        command = proto.CommandGetLastMessageId(consumer_id=consumer_id, request_id=peer.request())
        peer.send(T.GET_LAST_MESSAGE_ID, command)
        answer = peer.expect(T.GET_LAST_MESSAGE_ID_RESPONSE)
        found = answer.last_message_id
        if (found.ledgerId, found.entryId) != last:
            peer.fail(f"the last message is {last}, and not {found}")

    def _ask_unknown(self, peer: RawPeer, consumer_id: int) -> None:
        """BROKER-25: the broker refuses requests about a consumer that is gone, and ignores its permits."""
        for kind, make in (
            (T.UNSUBSCRIBE, proto.CommandUnsubscribe),
            (T.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId),
        ):
            peer.send(kind, make(consumer_id=consumer_id, request_id=peer.request()))
            peer.refused("MetadataError")
        peer.flow(consumer_id, 1)
        peer.nothing()

    # --- names ------------------------------------------------------------------------------------------

    def _claim_names(self, one: RawPeer, other: RawPeer, topic: str) -> None:
        """BROKER-42: the name of a producer belongs to the client that is alive; the id of the refused one is
        free."""
        one.open_producer(topic, 1, "claimed")
        one.expect(T.PRODUCER_SUCCESS)
        for attempt in range(2):
            other.open_producer(topic, 1, "claimed")
            one.pong()
            other.refused("ProducerBusy")
            if not attempt:
                self._pass(1_000_000)
        other.open_producer(topic, 1, "free")
        success = other.expect(T.PRODUCER_SUCCESS)
        if success.producer_name != "free":
            other.fail(f"the producer free is called {success.producer_name}")
        other.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=other.request()))
        other.expect(T.SUCCESS)
        one.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=one.request()))
        one.expect(T.SUCCESS)
        other.open_producer(topic, 1, "claimed")
        other.expect(T.PRODUCER_SUCCESS)
        other.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=other.request()))
        other.expect(T.SUCCESS)

    def _exclude(self, one: RawPeer, other: RawPeer, topic: str) -> None:
        """SUBT-02, BROKER-23: an Exclusive consumer that is alive excludes all others."""
        one.subscribe(topic, "only", SubType.Exclusive, 1)
        one.expect(T.SUCCESS)
        other.subscribe(topic, "only", SubType.Exclusive, 1)
        one.pong()
        other.refused("ConsumerBusy")
        for kind in (SubType.Shared, SubType.Failover, SubType.Key_Shared):
            other.subscribe(topic, "only", kind, 1)
            other.refused("ConsumerBusy")
        other.subscribe(topic, "another", SubType.Failover, 1)
        other.expect(T.SUCCESS)
        self._pass(2_000_000_000)  # the turn of a Failover consumer may come later
        if other.expect(T.ACTIVE_CONSUMER_CHANGE).is_active is not True:
            other.fail("the only consumer is not active")
        for peer in (one, other):
            self._close_consumer(peer, 1)

    def _close_consumer(self, peer: RawPeer, consumer_id: int) -> None:
        command = proto.CommandCloseConsumer(consumer_id=consumer_id, request_id=peer.request())
        peer.send(T.CLOSE_CONSUMER, command)
        peer.expect(T.SUCCESS)
        peer.nothing()

    def _lose_rival(self, peer: RawPeer, topic: str) -> None:
        """A consumer and a producer whose client is silent make room for their rivals."""
        silent = self._peer()
        silent.is_silent = True
        silent.subscribe(topic, "only", SubType.Exclusive, 1)
        silent.expect(T.SUCCESS)
        silent.open_producer(topic, 1, "rival")
        silent.expect(T.PRODUCER_SUCCESS)
        peer.subscribe(topic, "only", SubType.Exclusive, 1)
        peer.nothing()
        timeout = self._broker.config.liveness_timeout
        self._pass(round(timeout * 1e9) + 1)
        if silent.closed is None:
            silent.fail("the broker keeps a silent link for a rival")
        peer.expect(T.SUCCESS)
        peer.open_producer(topic, 1, "rival")
        peer.expect(T.PRODUCER_SUCCESS)

    # --- lists of topics --------------------------------------------------------------------------------

    def _list_topics(self, peer: RawPeer, namespace: str) -> None:
        """Each mode lists its topics, a pattern picks some, and an equal hash leaves them out."""
        mode = proto.CommandGetTopicsOfNamespace
        passing = f"non-persistent://{namespace}/never-kept"
        self._own(passing)
        self._do(self._broker.topic_administration.create_topic, passing)
        everything = sorted(self._broker.topic_administration.topics(namespace))
        lasting = [name for name in everything if name.startswith("persistent://")]
        wanted = {
            mode.ALL: everything,
            mode.PERSISTENT: lasting,
            mode.NON_PERSISTENT: [name for name in everything if name not in lasting],
        }
        for each, names in wanted.items():
            answer = self._ask_topics(peer, namespace, mode=each)
            if sorted(answer.topics) != names or answer.filtered or not answer.changed:
                peer.fail(f"mode {each} has {names}, and {answer} comes")
        pattern = f"persistent://{namespace}/.*e.*"
        picked = [name for name in lasting if "e" in name.rpartition("/")[2]]
        answer = self._ask_topics(peer, namespace, mode=mode.PERSISTENT, topics_pattern=pattern)
        if sorted(answer.topics) != picked or not answer.filtered:
            peer.fail(f"{pattern} means {picked}, and {answer} comes")
        again = self._ask_topics(
            peer,
            namespace,
            mode=mode.PERSISTENT,
            topics_pattern=pattern,
            topics_hash=answer.topics_hash,
        )
        if again.changed or again.topics or again.topics_hash != answer.topics_hash:
            peer.fail(f"nothing has changed, and {again} comes")
        self._do(self._broker.topic_administration.delete_topic, passing)

    def _ask_topics(self, peer: RawPeer, namespace: str, **fields: Any) -> Any:
        command = proto.CommandGetTopicsOfNamespace(request_id=peer.request(), namespace=namespace, **fields)
        peer.send(T.GET_TOPICS_OF_NAMESPACE, command)
        return peer.expect(T.GET_TOPICS_OF_NAMESPACE_RESPONSE)

    # --- policies ---------------------------------------------------------------------------------------

    def _switch_deduplication(self, peer: RawPeer, topic: str) -> None:
        """BROKER-39: with deduplication a sequence id is stored once, without it as often as it comes."""
        set_policy = self._broker.administration.set_policy
        peer.open_producer(topic, 1, "repeating")
        peer.expect(T.PRODUCER_SUCCESS)
        for wanted in (True, False, True, False):
            self._do(set_policy, topic, "deduplication", wanted)
            sequence_id = 1 + self._stream.below(5)
            positions = []
            for _ in range(2):
                peer.publish(1, "repeating", sequence_id, b"again", self._wall_time)
                positions.append(peer.receipt(sequence_id))
            stored = [each for each in positions if each[0] >= 0]
            if len(stored) != (1 if wanted else 2):
                peer.fail(f"deduplication {wanted}: {positions}")
        self._do(set_policy, topic, "deduplication", None)
        peer.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=peer.request()))
        peer.expect(T.SUCCESS)

    # --- refusals ---------------------------------------------------------------------------------------

    def _refuse(self, peer: RawPeer, namespace: str) -> None:
        """BROKER-01, BROKER-14: of several refusals the broker sends the first in the order of its checks."""
        topic = self._new_topic(namespace, "refusing")
        missing = f"persistent://{namespace}/missing"
        self._own(missing)
        long = "n" * 100_000
        set_policy = self._broker.administration.set_policy
        for subscription, kind, code, more in (
            (long, SubType.Exclusive, "ProducerBusy", {"topic": missing, "force_topic_creation": False}),
            ("s", SubType.Exclusive, "TopicNotFound", {"topic": missing, "force_topic_creation": False}),
            (" ", SubType.Shared, "NotAllowedError", {"read_compacted": True}),
            (" ", SubType.Shared, "ProducerBusy", {}),
            ("pulsar.dedup", SubType.Shared, "ProducerBusy", {}),
            ("pulsar.repl.x", SubType.Shared, "ProducerBusy", {}),
        ):
            fields: dict[str, Any] = dict(more)
            peer.subscribe(fields.pop("topic", topic), subscription, kind, 7, **fields)
            peer.refused(code)
        self._do(set_policy, topic, "subscription_types", ("Shared",))
        self._do(set_policy, topic, "auto_subscription_creation", False)
        peer.subscribe(topic, "s", SubType.Exclusive, 7)
        peer.refused("SubscriptionNotFound")
        self._do(set_policy, topic, "auto_subscription_creation", None)
        peer.subscribe(topic, "s", SubType.Exclusive, 7, read_compacted=True)
        peer.refused("NotAllowedError")
        self._do(set_policy, topic, "subscription_types", None)
        peer.subscribe(topic, "s", SubType.Shared, 7)
        peer.expect(T.SUCCESS)
        self._limit(peer, topic, "max_consumers", "ConsumerBusy", "s")
        self._limit(peer, topic, "max_consumers_per_subscription", "ConsumerBusy", "s")
        self._limit(peer, topic, "max_subscriptions", "NotAllowedError", "t")
        self._close_consumer(peer, 7)
        self._do(set_policy, topic, "max_producers", 1)
        peer.open_producer(topic, 7, "first")
        peer.expect(T.PRODUCER_SUCCESS)
        peer.open_producer(topic, 8, "second")
        peer.refused("ProducerBusy")
        peer.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=7, request_id=peer.request()))
        peer.expect(T.SUCCESS)
        self._do(set_policy, topic, "max_producers", None)

    def _limit(self, peer: RawPeer, topic: str, policy: str, code: str, subscription: str) -> None:
        """The broker refuses the second consumer or subscription with room for one, and not with room for
        two."""
        set_policy = self._broker.administration.set_policy
        self._do(set_policy, topic, policy, 1)
        peer.subscribe(topic, subscription, SubType.Shared, 8)
        peer.refused(code)
        self._do(set_policy, topic, policy, 2)
        peer.subscribe(topic, subscription, SubType.Shared, 8)
        peer.expect(T.SUCCESS)
        self._close_consumer(peer, 8)
        self._do(set_policy, topic, policy, None)

    # --- topics that are not persistent -----------------------------------------------------------------

    def _use_nonpersistent(self, one: RawPeer, other: RawPeer, namespace: str) -> None:
        """TOPIC-06: consumers exclude each other as on persistent topics, and get what comes while they have
        permits."""
        topic = f"non-persistent://{namespace}/passing"
        self._own(topic)
        one.subscribe(topic, "only", SubType.Exclusive, 1)
        one.expect(T.SUCCESS)
        other.subscribe(topic, "only", SubType.Exclusive, 1)
        one.pong()
        other.refused("ConsumerBusy")
        other.subscribe(topic, "only", SubType.Shared, 1)
        other.refused("ConsumerBusy")
        other.subscribe(topic, "shared", SubType.Shared, 1)
        other.expect(T.SUCCESS)
        one.flow(1, 1)
        other.open_producer(topic, 1, "passing")
        other.expect(T.PRODUCER_SUCCESS)
        for number in range(2):
            other.publish(1, "passing", number, b"passing", self._wall_time)
            other.expect(T.SEND_RECEIPT)
        found = one.expect(T.MESSAGE)
        if found.consumer_id != 1:
            one.fail(f"a message for consumer {found.consumer_id}")
        one.nothing()
        other.nothing()
        self._check_nonpersistent(topic)
        self._close_consumer(one, 1)
        self._close_consumer(other, 1)
        other.send(T.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=1, request_id=other.request()))
        other.expect(T.SUCCESS)
        self._do(self._broker.topic_administration.delete_topic, topic)

    def _check_nonpersistent(self, topic: str) -> None:
        """One of two messages was delivered, in a subscription of two."""
        stats = self._broker.topic_administration.stats(topic)
        (publisher,) = stats["publishers"]
        subscriptions = stats["subscriptions"]
        found = {
            "msgInCounter": stats["msgInCounter"],
            "bytesInCounter": stats["bytesInCounter"] // 2,
            "msgOutCounter": stats["msgOutCounter"],
            "bytesOutCounter": stats["bytesOutCounter"],
            "only": subscriptions["only"]["msgOutCounter"],
            "shared": subscriptions["shared"]["msgOutCounter"],
            "flow of only": subscriptions["only"]["lastConsumedFlowTimestamp"] > 0,
            "flow of shared": subscriptions["shared"]["lastConsumedFlowTimestamp"] > 0,
        }
        size = stats["bytesOutCounter"]
        wanted = {
            "msgInCounter": 2,
            "bytesInCounter": size,
            "msgOutCounter": 1,
            "bytesOutCounter": max(1, size),
            "only": 1,
            "shared": 0,
            "flow of only": True,
            "flow of shared": False,
        }
        if found != wanted or publisher["producerName"] != "passing":
            raise ViolationError("INV-A2", f"{topic}: {found} are the counts, {wanted} expected")

    def _limit_subscribing(self, peer: RawPeer, topic: str) -> None:
        """BROKER-15: the rate of SUBSCRIBE holds for a topic that is loaded again, too."""
        set_policy = self._broker.administration.set_policy
        self._do(set_policy, topic, "subscribe_rate", SubscribeRate(1, 30))
        self._do(self._broker.topic_administration.unload, topic)
        peer.subscribe(topic, "limited", SubType.Shared, 9)
        peer.expect(T.SUCCESS)
        self._close_consumer(peer, 9)
        peer.subscribe(topic, "limited", SubType.Shared, 9)
        peer.refused("NotAllowedError")
        self._pass(30_000_000_001)
        peer.subscribe(topic, "limited", SubType.Shared, 9)
        peer.expect(T.SUCCESS)
        self._close_consumer(peer, 9)

    # --- the end of a topic -----------------------------------------------------------------------------

    def _end_topic(self, peer: RawPeer, topic: str) -> None:
        """BROKER-43: consumers that have acknowledged everything learn of the end, also those that come
        later; producers are refused."""
        peer.open_producer(topic, 1, "ending")
        peer.expect(T.PRODUCER_SUCCESS)
        peer.publish(1, "ending", 0, b"last", self._wall_time)
        last = peer.receipt(0)
        peer.subscribe(topic, "ending", SubType.Shared, 1)
        peer.expect(T.SUCCESS)
        peer.flow(1, 10)
        peer.message(1, b"last", last, 0)
        self._do(self._broker.topic_administration.terminate, topic)
        ended = peer.expect(T.CLOSE_PRODUCER) if peer.inbox else None
        peer.nothing()
        peer.feed(encode_ack(1, INDIVIDUAL, [(*last, None)]))
        self._pass(2_000_000_000)  # the cursor is written within this time
        if peer.expect(T.REACHED_END_OF_TOPIC).consumer_id != 1:
            peer.fail("the end of another consumer")
        self._close_consumer(peer, 1)
        peer.subscribe(topic, "ending", SubType.Shared, 2)
        peer.expect(T.SUCCESS)
        peer.expect(T.REACHED_END_OF_TOPIC)
        self._close_consumer(peer, 2)
        if ended is None:
            peer.publish(1, "ending", 1, b"late", self._wall_time)
            peer.expect(T.SEND_ERROR)
