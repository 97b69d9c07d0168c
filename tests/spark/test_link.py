"""The blocking driver of the core: what it asks of a broker, and how long it lives."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from pulsar_sansio import LATEST, ConsumerBusy, PulsarError, TopicNotFound
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_spark import link as link_module
from pulsar_spark.errors import LinkTimeout
from pulsar_spark.link import Link, last_of, open_link, wall_time
from pulsar_spark.reading.offsets import NOTHING, Position
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.sending import Sender, send
from tests.spark.scenes.serving import served

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def none_stays_open() -> Iterator[None]:
    yield
    for each in link_module._links.values():
        each.close()
    link_module._links.clear()


@pytest.fixture
def link(broker: SparkBroker) -> Iterator[Link]:
    link = Link(broker.url)
    yield link
    link.close()


def last_position(link: Link, topic: str) -> Position:
    with link.reading(topic, LATEST, paused=True) as reader:
        return last_of(reader.where())


# --- topics and positions ----------------------------------------------------------------------------


def test_topics_and_their_partitions(broker: SparkBroker, link: Link, topic: str) -> None:
    broker.admin.create_partitioned_topic(f"{topic}-parts", 3)
    broker.admin.create_topic(f"{topic}-plain")
    local = topic.rpartition("/")[2]
    assert link.partitions(f"{topic}-parts") == 3
    assert link.partitions(f"{topic}-plain") == 0
    assert link.topics("public/default", f"{local}-.*") == [f"{topic}-parts", f"{topic}-plain"]
    assert {f"{topic}-parts", f"{topic}-plain"} <= set(link.topics("public/default"))


def test_asking_brings_nothing_into_being(broker: SparkBroker, link: Link, topic: str) -> None:
    with pytest.raises(TopicNotFound):
        last_position(link, topic)
    with pytest.raises(TopicNotFound):
        link.hold(topic, "s")
    with suppress(TopicNotFound):
        link.partitions(topic)
    assert topic not in link.topics("public/default")


def test_the_first_and_the_last_position(broker: SparkBroker, link: Link, topic: str) -> None:
    sender = Sender(broker.url, topic)
    first = sender.send([b"1"])[0][:2]
    assert last_position(link, topic) == first
    last = sender.send([b"2", b"3"])[-1][:2]
    assert last_position(link, topic) == last
    assert link.first_position(topic) < first
    sender.close()


def test_the_position_at_a_time(broker: SparkBroker, link: Link, topic: str) -> None:
    sender = Sender(broker.url, topic)
    base = wall_time() - 60_000
    entries = [sender.send([b"x"], base + 1_000 * n)[0][:2] for n in range(5)]
    assert link.position_at(topic, base + 2_000) == entries[1]
    assert link.position_at(topic, base + 1_500) == entries[1]
    assert link.position_at(topic, base) < entries[0]
    assert link.position_at(topic, base + 100_000) == entries[4]
    sender.close()


def test_a_topic_that_is_deleted_while_it_is_watched(broker: SparkBroker, link: Link, topic: str) -> None:
    send(broker.url, topic, [b"x"])
    with link.reading(topic, LATEST, paused=True) as reader:
        broker.admin.delete_topic(topic, force=True)
        with pytest.raises((PulsarError, LinkTimeout)):
            reader.where(timeout=10.0)
    assert topic not in link.topics("public/default")


# --- subscriptions -----------------------------------------------------------------------------------


@pytest.mark.breaks("INV-C4", why="others have read what is acknowledged")
def test_a_subscription_is_held_and_moved_on(broker: SparkBroker, link: Link, topic: str) -> None:
    sender = Sender(broker.url, topic)
    first = sender.send([b"1"] * 3)[0][:2]
    last = sender.send([b"2"] * 3)[0][:2]
    hold = link.hold(topic, "s")
    before = hold.mark_delete()
    assert before is not None
    assert before < first
    hold.acknowledge_up_to(first)
    assert hold.mark_delete() == first
    hold.acknowledge_up_to(last)
    assert hold.mark_delete() == last
    with served(link), closing(Link(broker.url, operation_timeout=20.0)) as other:
        # A peer that does not answer the broker's PING would lose the connection.
        with pytest.raises(ConsumerBusy):
            other.hold(topic, "s", timeout=60.0)
    hold.close()
    assert link.hold(topic, "s").mark_delete() == last
    sender.close()


# --- the link itself ---------------------------------------------------------------------------------


def test_one_for_each_url_and_configuration(broker: SparkBroker, topic: str) -> None:
    first = open_link(broker.url)
    assert open_link(broker.url) is first
    other = open_link(broker.url, operation_timeout=10.0)
    assert other is not first
    other.close()
    assert open_link(broker.url, operation_timeout=10.0) is not other


def test_one_that_was_left_alone_is_not_used_again(broker: SparkBroker) -> None:
    first = open_link(broker.url)
    topics = first.topics("public/default")
    first.served = time.monotonic() - link_module.MAX_IDLE - 1
    second = open_link(broker.url)
    assert second is not first
    assert first.closed
    assert second.topics("public/default") == topics


def test_a_fork_has_its_own(broker: SparkBroker) -> None:
    """Its parent's goes on."""
    first = open_link(broker.url)
    topics = first.topics("public/default")
    child = os.fork()
    if not child:
        os._exit(0 if open_link(broker.url) is not first and first.closed else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert open_link(broker.url) is first
    assert first.topics("public/default") == topics


def test_a_lost_connection_is_replaced(broker: SparkBroker, link: Link, topic: str) -> None:
    send(broker.url, topic, [b"x"])
    last = last_position(link, topic)
    for sock in link._sockets.values():
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    assert last_position(link, topic) == last


def test_closing_twice_is_harmless(broker: SparkBroker, topic: str) -> None:
    link = Link(broker.url)
    link.topics("public/default")
    link.close()
    link.close()
    assert not link._sockets


def test_no_process_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    link = Link(f"pulsar://127.0.0.1:{port}")
    with pytest.raises(
        LinkTimeout, match=rf"the partitions of t: not within 0\.3 s \(pulsar://127.0.0.1:{port}\)"
    ):
        link.partitions("t", timeout=0.3)
    link.close()


@pytest.mark.unwatched(why="what is written is nothing")
def test_a_peer_that_reads_slowly() -> None:
    """Bytes that the peer does not take wait; nothing else waits, and the machine goes on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken: list[int] = []

        def read() -> None:
            peer, _ = server.accept()
            time.sleep(0.2)
            with peer:
                while data := peer.recv(1 << 16):
                    taken.append(len(data))

        thread = threading.Thread(target=read)
        thread.start()
        link = Link(f"pulsar://127.0.0.1:{port}")
        with pytest.raises(LinkTimeout):
            link.partitions("t", timeout=0.1)
        (number,) = link._sockets
        connection = link.client._links.open[number]
        assert isinstance(connection, Connection)
        connection.write([bytes(1 << 20) for _ in range(20)])
        link.serve()
        assert link._unwritten
        link.wait(lambda: not link._unwritten or None, 20.0, "the peer")
        link.drop()
        thread.join(20.0)
    assert sum(taken) >= 20 << 20


def test_an_empty_topic_has_no_last_position(broker: SparkBroker, link: Link, topic: str) -> None:
    broker.admin.create_topic(topic)
    assert last_position(link, topic) == NOTHING
