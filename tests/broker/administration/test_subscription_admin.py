"""`SubscriptionAdministration`: an administrator's commands for one subscription, and for a namespace."""

import pytest

from pulsar_sansio.broker import AlreadyExists, InUse, NotApplicable, NotFound
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import EARLIEST, MessageId
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World
from tests.broker.transacting import InTransaction

NAMESPACE = "public/default"


def with_messages(count: int = 5, **subscribe: int) -> tuple[World, Peer]:
    """A topic with entries 0:0 to 0:(count - 1), and a subscription s that has acknowledged none."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared, permits=subscribe.get("permits", 0))
    for number in range(count):
        peer.publish(b"%d" % number, number)
    peer.inbox.clear()
    return world, peer


def backlog(world: World, subscription: str = "s") -> int:
    found: int = world.broker.topic_administration.stats(TOPIC)["subscriptions"][subscription]["backlog"]
    return found


class TestCreating:
    def test_begins_at_the_end_or_at_a_position(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        admin.create_subscription(world.now, TOPIC, "end")
        admin.create_subscription(world.now, TOPIC, "all", EARLIEST)
        admin.create_subscription(world.now, TOPIC, "some", MessageId(0, 3), {"a": "1"})
        assert [backlog(world, name) for name in ("end", "all", "some")] == [0, 5, 2]
        assert admin.subscriptions(TOPIC) == ["all", "end", "s", "some"]
        assert admin.subscription_properties(TOPIC, "some") == {"a": "1"}

    def test_is_refused_twice_with_a_wrong_name_and_without_memory(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        with pytest.raises(AlreadyExists):
            admin.create_subscription(world.now, TOPIC, "s")
        for name in ("", " ", "x" * 100_000):
            with pytest.raises(InvalidConfiguration, match="the subscription's name"):
                admin.create_subscription(world.now, TOPIC, name)
        world.broker.topic_administration.create_topic(world.now, "non-persistent://public/default/np")
        with pytest.raises(NotApplicable):
            admin.create_subscription(world.now, "non-persistent://public/default/np", "x")


class TestDeleting:
    def test_needs_force_while_consumers_are_connected(self) -> None:
        world, peer = with_messages()
        admin = world.broker.subscription_administration
        with pytest.raises(InUse):
            admin.delete_subscription(world.now, TOPIC, "s")
        admin.delete_subscription(world.now, TOPIC, "s", force=True)
        world.pump()
        peer.expect(Type.CLOSE_CONSUMER)
        with pytest.raises(NotFound, match="no subscription s of"):
            admin.delete_subscription(world.now, TOPIC, "s")

    def test_everywhere_in_a_namespace(self) -> None:
        world, peer = with_messages()
        admin = world.broker.subscription_administration
        with pytest.raises(InUse):
            admin.unsubscribe_everywhere(world.now, NAMESPACE, "s")
        peer.close_consumer()
        admin.unsubscribe_everywhere(world.now, NAMESPACE, "s")
        assert admin.subscriptions(TOPIC) == []


class TestSkipping:
    def test_so_many_entries_or_all(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        admin.skip_messages(world.now, TOPIC, "s", 2)
        assert backlog(world) == 3
        admin.skip_messages(world.now, TOPIC, "s", 100)
        assert backlog(world) == 0

    def test_counts_unacknowledged_entries_only(self) -> None:
        world, peer = with_messages()
        peer.ack((0, 1, None))
        world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 2)
        assert backlog(world) == 2

    def test_lets_a_blocked_consumer_go_on(self) -> None:
        world, peer = with_messages()
        peer.flow(1)
        (first,) = peer.messages()
        assert first.entry_id == 0
        world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 3)
        peer.flow(1)
        (following,) = peer.messages()
        assert following.entry_id >= 3

    def test_in_a_whole_namespace(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        admin.create_subscription(world.now, TOPIC, "other", EARLIEST)
        admin.clear_backlogs(world.now, NAMESPACE, "s")
        assert (backlog(world), backlog(world, "other")) == (0, 5)
        admin.clear_backlogs(world.now, NAMESPACE)
        assert backlog(world, "other") == 0

    def test_passes_over_open_transactions(self) -> None:
        """As in a Java broker, skipped messages are gone, whatever their transactions do later."""
        world, peer = with_messages(1, permits=9)
        transaction = InTransaction(peer)
        transaction.join_subscription()
        assert transaction.ack((0, 0, None)) == ""
        transaction.publish(b"inside", 1)
        peer.publish(b"behind", 2)
        world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s")
        peer.inbox.clear()
        assert transaction.abort() == ""
        peer.nothing()
        again = InTransaction(peer)
        again.publish(b"again", 3)
        world.broker.subscription_administration.clear_backlogs(world.now, NAMESPACE)
        assert again.end() == ""
        peer.nothing()

    def test_counts_markers_and_aborted_entries(self) -> None:
        """The messages to skip are entries, as in a Java broker."""
        world, peer = with_messages(1)
        transaction = InTransaction(peer)
        transaction.publish(b"aborted", 1)
        transaction.abort()
        peer.publish(b"last", 2)
        peer.inbox.clear()
        world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 2)
        peer.flow(9)
        assert next(each for number, each in peer.inbox if number == Type.MESSAGE).entry_id == 3


class TestExpiring:
    def test_up_to_an_entry(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        assert admin.expire_messages(world.now, TOPIC, "s", MessageId(0, 2))
        assert backlog(world) == 2
        assert not admin.expire_messages(world.now, TOPIC, "s", MessageId(0, 99))
        assert backlog(world) == 2

    def test_by_age(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        assert not admin.expire_messages(world.now, TOPIC, "s", 60.0)
        world.advance(120)
        assert admin.expire_messages(world.now, TOPIC, "s", 60.0)
        assert backlog(world) == 0

    def test_up_to_an_entry_passes_over_open_transactions(self) -> None:
        """As in a Java broker, expired messages are gone, whatever their transactions do later."""
        world, peer = with_messages(1, permits=9)
        transaction = InTransaction(peer)
        transaction.publish(b"inside", 1)
        peer.publish(b"behind", 2)
        admin = world.broker.subscription_administration
        assert admin.expire_messages(world.now, TOPIC, "s", MessageId(0, 2))
        peer.inbox.clear()
        assert transaction.end() == ""
        peer.nothing()


class TestMoving:
    @pytest.mark.parametrize(
        ("position", "inclusive", "left"),
        [
            (MessageId(0, 2), True, 3),
            (MessageId(0, 2), False, 2),
            (MessageId(0, 99), True, 0),
            (EARLIEST, True, 5),
            (WALL, True, 5),
            (2**62, True, 0),
        ],
    )
    def test_to_a_message_or_a_time(self, position: MessageId | int, inclusive: bool, left: int) -> None:
        world, peer = with_messages()
        admin = world.broker.subscription_administration
        admin.skip_messages(world.now, TOPIC, "s")
        admin.reset_cursor(world.now, TOPIC, "s", position, inclusive=inclusive)
        world.pump()
        peer.expect(Type.CLOSE_CONSUMER)
        assert backlog(world) == left

    @pytest.mark.parametrize(
        ("index", "inclusive", "bits"), [(1, True, 0b110), (1, False, 0b100), (2, False, None)]
    )
    def test_into_a_batch(self, index: int, inclusive: bool, bits: int | None) -> None:
        world = World()
        peer = world.connect()
        peer.producer()
        peer.subscribe(permits=0)
        peer.publish_batch([b"a", b"b", b"c"], 0)
        admin = world.broker.subscription_administration
        admin.reset_cursor(world.now, TOPIC, "s", MessageId(0, 0, -1, index), inclusive=inclusive)
        world.pump()
        again = world.connect()
        again.subscribe()
        assert [message.ack_set for message in again.messages()] == ([] if bits is None else [bits])

    @pytest.mark.parametrize("position", [None, True, "latest", 1.5])
    def test_a_position_that_is_none_is_refused(self, position: object) -> None:
        world, _ = with_messages()
        with pytest.raises(InvalidConfiguration, match="position: a message id or milliseconds"):
            world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", position)  # type: ignore[arg-type]


class TestReading:
    def test_the_nth_unacknowledged_entry(self) -> None:
        world, peer = with_messages()
        peer.ack((0, 0, None), (0, 2, None))
        admin = world.broker.subscription_administration
        assert [admin.peek(TOPIC, "s", number).payload for number in (1, 2, 3)] == [b"1", b"3", b"4"]
        with pytest.raises(NotFound, match="no message 4"):
            admin.peek(TOPIC, "s", 4)

    def test_the_backlog_from_a_position_on(self) -> None:
        world, peer = with_messages()
        peer.publish_batch([b"a", b"b", b"c"], 5)
        peer.ack((0, 1, None), (0, 5, 0b110))
        admin = world.broker.subscription_administration
        whole = admin.analyze_backlog(TOPIC, "s")
        assert (whole.entries, whole.messages) == (5, 6)
        assert (whole.first, whole.last) == (MessageId(0, 0), MessageId(0, 5))
        rest = admin.analyze_backlog(TOPIC, "s", MessageId(0, 4))
        assert (rest.entries, rest.messages, rest.first) == (2, 3, MessageId(0, 4))
        admin.skip_messages(world.now, TOPIC, "s")
        assert admin.analyze_backlog(TOPIC, "s") == (0, 0, None, None)

    def test_properties_survive_the_broker(self) -> None:
        world, _ = with_messages()
        admin = world.broker.subscription_administration
        admin.set_subscription_properties(world.now, TOPIC, "s", {"a": "1"})
        world.pump()
        world.start()
        assert world.broker.subscription_administration.subscription_properties(TOPIC, "s") == {"a": "1"}


@pytest.mark.parametrize("topic", ["persistent://public/default/none", TOPIC])
def test_what_does_not_exist_is_not_found(topic: str) -> None:
    world, _ = with_messages()
    admin = world.broker.subscription_administration
    for command in (
        lambda: admin.skip_messages(world.now, topic, "x"),
        lambda: admin.expire_messages(world.now, topic, "x", 1.0),
        lambda: admin.reset_cursor(world.now, topic, "x", 0),
        lambda: admin.peek(topic, "x", 1),
        lambda: admin.analyze_backlog(topic, "x"),
        lambda: admin.subscription_properties(topic, "x"),
        lambda: admin.delete_subscription(world.now, topic, "x"),
    ):
        with pytest.raises(NotFound):
            command()
