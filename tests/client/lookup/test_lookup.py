"""`Lookup`: equal lookups share one request, and each has one limit of time."""

import pytest

from pulsar_sansio.client.lookup.topic_list import TopicList
from pulsar_sansio.client.outputs import (
    Connect,
    Disconnect,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.config import TopicDomain
from pulsar_sansio.model.errors import InvalidServiceUrl, TooManyPartitions
from pulsar_sansio.wire import encode_command, proto
from tests.client.lookup.binary_script import SPEC, looking_up_again
from tests.client.script import (
    URL,
    Command,
    Script,
    frame_connected,
    frame_lookup,
    frame_partitions,
    frame_producer_success,
)


def test_equal_questions_share_one_lookup() -> None:
    """As in java-unload: producer and consumer reconnect after one shared LOOKUP."""
    script = Script()
    client = script.client
    client.open_producer(script.now, SPEC)
    client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER, Command.PRODUCER)


def test_a_request_that_joined_a_lookup_may_be_cancelled() -> None:
    script = Script()
    first = script.client.partitions(script.now, "demo")
    second = script.client.partitions(script.now, "demo")
    other = script.client.partitions(script.now, "other")
    link = script.ready_link()
    asked, about_other = script.sent(link, Command.PARTITIONED_METADATA, Command.PARTITIONED_METADATA)
    script.client.abandon(script.now, first)
    script.feed(link, frame_partitions(about_other.request_id, 1), frame_partitions(asked.request_id, 2))
    script.expect(RequestDone(other, 1), RequestDone(second, 2))
    third = script.client.partitions(script.now, "demo")
    script.check_partitions(link, 3)  # the previous lookup is over
    script.expect(RequestDone(third, 3))


def test_a_request_that_joins_late_asks_again_when_the_others_have_waited_for_too_long() -> None:
    script = Script(operation_timeout=10.0)
    script.client.partitions(script.now, "demo")
    link = script.ready_link()
    script.sent(link, Command.PARTITIONED_METADATA)
    script.advance(9)
    late = script.client.partitions(script.now, "demo")
    assert script.commands(link) == []
    script.advance(1.5)
    script.expect_one(RequestFailed)
    script.check_partitions(link, 4)
    script.expect(RequestDone(late, 4))


def test_a_lookup_has_one_limit_of_time_for_all_its_redirects() -> None:
    """Every step is answered within the operation timeout; together they take longer."""
    script, link = looking_up_again()
    for _ in range(3):
        script.advance(3)
        script.find_topic(link, URL, redirect=True)
    late = script.sent(link, Command.LOOKUP)
    script.advance(0.9)
    assert script.commands(link) == []
    script.advance(0.5)  # 10 s and the backoff before the next attempt are over
    again = script.sent(link, Command.LOOKUP)
    assert not again.authoritative
    script.feed(link, frame_lookup(late.request_id, "pulsar://elsewhere:1"))
    assert script.said() == []
    assert script.commands(link) == []
    script.feed(link, frame_lookup(again.request_id, URL))
    script.sent(link, Command.PRODUCER)


def test_the_limit_of_a_lookup_holds_while_it_waits_for_a_connection() -> None:
    script, link = looking_up_again()
    script.advance(6)
    script.find_topic(link, "pulsar://slow:1", redirect=True)
    slow = script.expect_one(Connect)
    script.advance(4.4)
    again = script.sent(link, Command.LOOKUP)
    script.open(slow.link)
    script.sent(slow.link, Command.CONNECT)
    script.feed(slow.link, frame_connected())
    assert script.commands(slow.link) == []  # no query waits for that lookup any more
    script.feed(link, frame_lookup(again.request_id, URL))
    script.sent(link, Command.PRODUCER)


def test_the_limit_of_a_lookup_holds_while_it_waits_for_its_turn() -> None:
    script, link = looking_up_again(max_pending_lookups=1)
    held = script.sent(link, Command.LOOKUP)
    script.advance(4)
    request = script.client.partitions(script.now, "other")
    script.advance(5.9)
    assert script.commands(link) == []
    script.feed(link, frame_lookup(held.request_id, URL, redirect=True))
    asked = script.sent(link, Command.PARTITIONED_METADATA)  # its turn, before the redirect's
    script.advance(0.5)
    assert script.commands(link) == []
    script.feed(link, frame_partitions(asked.request_id, 2))
    assert script.expect_one(RequestDone).request == request
    again = script.sent(link, Command.LOOKUP)
    assert not again.authoritative  # the next attempt; the queue skipped the redirect
    assert script.commands(link) == []


def test_a_new_service_url_moves_everything() -> None:
    """Rules CLIENT-21 and POOL-12."""
    script = Script()
    _, link = script.ready_producer()
    with pytest.raises(InvalidServiceUrl):
        script.client.update_service_url(script.now, "ftp://wrong")
    assert script.said() == []
    assert script.client.service_url == "pulsar://broker:6650"
    script.client.update_service_url(script.now, "pulsar://moved")
    assert script.client.service_url == "pulsar://moved:6650"
    gone, _detached = script.said()
    assert gone == Disconnect(link, "the service URL was changed")
    script.advance(0.2)
    link = script.ready_link("moved")
    script.find_topic(link, "pulsar://moved:6650")
    asked = script.sent(link, Command.PRODUCER)
    assert asked.epoch == 1
    script.feed(link, frame_producer_success(asked.request_id))
    assert len(script.said()) == 1


@pytest.mark.parametrize(("partitions", "fits"), [(2, True), (3, False)])
def test_more_partitions_than_allowed_are_refused(partitions: int, fits: bool) -> None:
    script = Script(max_partitions=2)
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    script.check_partitions(link, partitions)
    if fits:
        script.expect(RequestDone(request, partitions))
        return
    error = script.expect_one(RequestFailed).error
    assert isinstance(error, TooManyPartitions)
    topic = "persistent://public/default/demo"
    text = f"topic {topic} is said to have 3 partitions, allowed are 2 (max_partitions)"
    assert str(error) == text


def test_equal_lists_of_topics_share_one_request() -> None:
    script = Script()
    heard: list[tuple[str, object]] = []
    for name, namespace in (("first", "public/default"), ("second", "public/default"), ("other", "a/b")):
        script.client._services.lookup.topics(
            TopicList(namespace, TopicDomain.ALL),
            lambda listed, name=name: heard.append((name, listed.names)),  # type: ignore[misc]
            lambda error, name=name: heard.append((name, error)),  # type: ignore[misc]
        )
    link = script.ready_link()
    asked, about_other = script.sent(link, Command.GET_TOPICS_OF_NAMESPACE, Command.GET_TOPICS_OF_NAMESPACE)
    assert (asked.namespace, about_other.namespace) == ("public/default", "a/b")
    for request_id, topic in ((asked.request_id, "x"), (about_other.request_id, "y")):
        answer = proto.CommandGetTopicsOfNamespaceResponse(request_id=request_id, topics=[topic])
        script.feed(link, encode_command(Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, answer))
    assert heard == [("first", ("x",)), ("second", ("x",)), ("other", ("y",))]
