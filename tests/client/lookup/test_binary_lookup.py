"""Lookup of the broker: redirects, proxies, several hosts, throttling."""

import pytest

from pulsar_sansio.client.connecting.connection import REJECTION_PERIOD
from pulsar_sansio.client.connecting.lookup_queue import LookupQueue
from pulsar_sansio.client.outputs import (
    Connect,
    Disconnect,
    ProducerFailed,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import (
    ConnectionLost,
    PulsarError,
    ServerError,
    TimedOut,
    TooManyRedirects,
    TooManyRequests,
    TopicNotFound,
)
from pulsar_sansio.model.service_url import Address
from pulsar_sansio.wire import encode_command, proto
from tests.client.lookup.binary_script import SPEC, looking_up_again
from tests.client.script import (
    SECOND,
    URL,
    Command,
    Script,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_lookup_failed,
    frame_partitions,
    frame_partitions_failed,
)


def looking_up(script: Script) -> int:
    """A producer that sends LOOKUP next."""
    script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    return link


# --- the commands ----------------------------------------------------------------------------------


def test_partitions_are_asked_first_then_the_broker_as_java_does() -> None:
    """Rules LOOKUP-01 and LOOKUP-04."""
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    assert asked.topic == "persistent://public/default/demo"
    assert asked.metadata_auto_creation_enabled
    script.feed(link, frame_partitions(asked.request_id))
    lookup = script.sent(link, Command.LOOKUP)
    assert lookup.topic == "persistent://public/default/demo"
    assert lookup.HasField("authoritative")
    assert not lookup.authoritative
    assert not lookup.HasField("advertised_listener_name")


@pytest.mark.parametrize(("wanted", "possible"), [(False, True), (False, False), (True, True)])
def test_asking_creates_nothing_where_that_is_not_wanted_and_the_broker_can(
    wanted: bool, possible: bool
) -> None:
    """CHECK-11."""
    script = Script(create_topics=wanted)
    script.client.partitions(script.now, "demo")
    link = script.ready_link(supports_get_partitioned_metadata_without_auto_creation=possible)
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    assert asked.metadata_auto_creation_enabled is (wanted or not possible)


def test_the_listener_name_is_sent_where_one_is_given() -> None:
    script = Script(listener_name="internal")
    link = looking_up(script)
    assert script.sent(link, Command.LOOKUP).advertised_listener_name == "internal"


# --- where it leads --------------------------------------------------------------------------------


def test_the_same_address_is_the_same_connection_with_and_without_proxy() -> None:
    """LOOKUP-07: an equal address makes the client use the lookup connection."""
    for proxy in (False, True):
        script = Script()
        link = looking_up(script)
        script.find_topic(link, URL, proxy=proxy)
        script.sent(link, Command.PRODUCER)


def test_another_broker_is_another_connection() -> None:
    script = Script()
    link = looking_up(script)
    script.find_topic(link, "pulsar://other:7000")
    connect = script.expect_one(Connect)
    assert connect.address == Address("other", 7000)
    script.open(connect.link)
    assert not script.sent(connect.link, Command.CONNECT).HasField("proxy_to_broker_url")


def test_through_a_proxy_the_second_connection_names_the_broker() -> None:
    """Rules POOL-04, POOL-08, LOOKUP-07: logical is the broker, physical the address just asked. Rules
    PROXY-01 and PROXY-02."""
    script = Script()
    link = looking_up(script)
    script.find_topic(link, "pulsar://10.0.0.7:6650", proxy=True)
    connect = script.expect_one(Connect)
    assert connect.link != link
    assert connect.address == Address("broker", 6650)
    script.open(connect.link)
    assert script.sent(connect.link, Command.CONNECT).proxy_to_broker_url == "10.0.0.7:6650"


def test_with_tls_the_tls_address_counts() -> None:
    """Rule LOOKUP-05."""
    script = Script(service_url="pulsar+ssl://broker")
    link = looking_up(script)
    script.find_topic(link, "pulsar://plain:1", tls_url="pulsar+ssl://secure:2")
    connect = script.expect_one(Connect)
    assert connect == Connect(link + 1, Address("secure", 2), "secure")


@pytest.mark.parametrize("url", ["", "nonsense", "http://broker:8080"])
def test_an_answer_without_a_usable_address_is_a_failed_lookup(url: str) -> None:
    script = Script(operation_timeout=2.0)
    link = looking_up(script)
    script.find_topic(link, url)
    assert script.said() == []
    script.advance(2)
    failed = script.expect_one(ProducerFailed)
    assert "brokerServiceUrl of the answer: no usable broker URL" in str(failed.error)


def test_redirects_are_followed_with_the_authoritative_flag_of_the_answer() -> None:
    """Rule LOOKUP-06."""
    script = Script()
    link = looking_up(script)
    script.find_topic(link, "pulsar://leader:1", redirect=True, authoritative=True)
    second = script.ready_link("leader")
    lookup = script.sent(second, Command.LOOKUP)
    assert lookup.authoritative
    script.feed(
        second, frame_lookup(lookup.request_id, "pulsar://owner:2", redirect=True, authoritative=False)
    )
    third = script.ready_link("owner")
    lookup = script.sent(third, Command.LOOKUP)
    assert not lookup.authoritative
    script.feed(third, frame_lookup(lookup.request_id, "pulsar://owner:2"))
    script.sent(third, Command.PRODUCER)


def test_redirects_are_bounded() -> None:
    """Rule ERR-11."""
    script = Script(max_lookup_redirects=3, operation_timeout=1.0)
    link = looking_up(script)
    for _ in range(4):
        script.find_topic(link, URL, redirect=True)
    assert script.commands(link) == []
    script.advance(0.2)
    for _ in range(4):  # the producer tries again, with a new count
        script.find_topic(link, URL, redirect=True)
    script.advance(0.6)
    for _ in range(4):
        script.find_topic(link, URL, redirect=True)
    script.advance(1)
    failed = script.expect_one(ProducerFailed)
    assert isinstance(failed.error.__cause__, TooManyRedirects)


def test_one_redirect_too_many_is_not_followed() -> None:
    script = Script(max_lookup_redirects=0)
    link = looking_up(script)
    script.find_topic(link, "pulsar://elsewhere:6650", redirect=True)
    assert script.said() == []
    assert script.client.links == (link,)


# --- what goes wrong -------------------------------------------------------------------------------


def test_a_refused_lookup_fails_the_creation_where_the_code_is_final() -> None:
    """Rules LOOKUP-08 and ERR-11."""
    script = Script()
    link = looking_up(script)
    lookup = script.sent(link, Command.LOOKUP)
    script.feed(link, frame_lookup_failed(lookup.request_id, proto.TopicNotFound, "no such namespace"))
    failed = script.expect_one(ProducerFailed)
    assert isinstance(failed.error, TopicNotFound)


def test_refused_metadata_fails_the_creation_where_the_code_is_final() -> None:
    """java-unknown-namespace. Rule CLIENT-12."""
    script = Script()
    script.client.open_producer(script.now, ProducerSpec(topic="no-such/tenant/t"))
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions_failed(asked.request_id, proto.TopicNotFound, "Namespace not found"))
    assert isinstance(script.expect_one(ProducerFailed).error, TopicNotFound)


def test_a_lookup_that_may_succeed_later_is_asked_again_after_a_wait() -> None:
    """Rule LOOKUP-08."""
    script = Script()
    link = looking_up(script)
    lookup = script.sent(link, Command.LOOKUP)
    script.feed(link, frame_lookup_failed(lookup.request_id, proto.ServiceNotReady))
    assert script.commands(link) == []
    script.advance(0.2)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)


def test_an_absent_error_code_is_an_unknown_error_and_retried() -> None:
    script = Script()
    link = looking_up(script)
    lookup = script.sent(link, Command.LOOKUP)
    response = proto.CommandLookupTopicResponse(request_id=lookup.request_id)
    script.feed(link, encode_command(Command.LOOKUP_RESPONSE, response))
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)


def test_a_closed_port_is_tried_until_the_operation_timeout() -> None:
    """Rule GAP-28."""
    script = Script(operation_timeout=5.0)
    producer = script.client.open_producer(script.now, SPEC)
    attempts = 0
    end = script.now + 5 * SECOND
    while script.now < end:
        for output in script.said():
            if isinstance(output, Connect):
                attempts += 1
                script.lose(output.link, "connection refused")
            else:
                assert isinstance(output, ProducerFailed)
                assert output.producer == producer
                assert isinstance(output.error, TimedOut)
                assert "within 5 s" in str(output.error)
                assert "connection refused" in str(output.error)
                assert isinstance(output.error.__cause__, ConnectionLost)
        script.advance(0.05)
    assert 5 <= attempts <= 8  # 0.1, 0.2, 0.4, … apart
    assert script.client.next_deadline() is None


def test_several_hosts_are_tried_in_turn() -> None:
    script = Script(service_url="pulsar://one,two,three")
    script.client.open_producer(script.now, SPEC)
    asked = []
    for step in range(4):
        connect = script.expect_one(Connect)
        asked.append(connect.address.host)
        script.lose(connect.link, "refused")
        script.advance(0.11 * 2**step)
    assert set(asked[:3]) == {"one", "two", "three"}
    assert asked[3] == asked[0]


def test_a_lost_service_host_is_tried_once_more_before_the_next() -> None:
    script = Script(service_url="pulsar://one,two")
    script.client.partitions(script.now, "demo")
    connect = script.expect_one(Connect)
    script.open(connect.link)
    script.sent(connect.link, Command.CONNECT)
    script.feed(connect.link, frame_connected())
    link, host = connect.link, connect.address.host
    script.lose(link)
    script.advance(0.2)
    assert script.expect_one(Connect).address.host == host


def test_rejections_end_the_connection_when_there_are_too_many() -> None:
    """Rule CONN-15."""
    script = Script(max_rejected_requests=3, operation_timeout=300.0, max_backoff=0.2)
    link = looking_up(script)
    for _ in range(3):
        lookup = script.sent(link, Command.LOOKUP)
        script.feed(link, frame_lookup_failed(lookup.request_id, proto.TooManyRequests))
        script.advance(0.3)
        assert script.said() == []
    lookup = script.sent(link, Command.LOOKUP)
    script.feed(link, frame_error(lookup.request_id, proto.ServiceNotReady))
    gone = script.expect_one(Disconnect)
    assert gone.reason == "more than 3 requests were rejected within 60 s"


def test_rejections_are_counted_anew_after_a_minute() -> None:
    script = Script(max_rejected_requests=1, operation_timeout=1000.0, keepalive_interval=1000.0)
    link = looking_up(script)
    for _ in range(4):
        lookup = script.sent(link, Command.LOOKUP)
        script.feed(link, frame_lookup_failed(lookup.request_id, proto.TooManyRequests))
        script.advance(REJECTION_PERIOD / SECOND + 4)
    assert script.said() == []


def test_lookups_beyond_the_limit_wait_their_turn() -> None:
    """Rule CONN-14."""
    script = Script(max_pending_lookups=2)
    link = None
    for number in range(4):
        script.client.partitions(script.now, f"topic-{number}")
        link = link or script.ready_link()
    assert link is not None
    first, second = script.sent(link, Command.PARTITIONED_METADATA, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions(second.request_id, 5))
    assert script.expect_one(RequestDone).result == 5
    third = script.sent(link, Command.PARTITIONED_METADATA)
    assert third.topic.endswith("topic-2")
    script.lose(link)
    script.said()
    assert first.topic.endswith("topic-0")


def test_the_queue_of_lookups_is_bounded_and_fails_with_its_connection() -> None:
    """Rule CFG-016."""
    queue = LookupQueue(1)
    started: list[int] = []
    failed: list[PulsarError] = []

    def submit(number: int) -> None:
        def start() -> bool:
            started.append(number)
            return True

        queue.submit(start, failed.append)

    for number in range(50_001):
        submit(number)
    submit(-1)
    assert [type(error) for error in failed] == [TooManyRequests]
    queue.answered()
    assert started == [0, 1]
    queue.fail(ConnectionLost("gone"))
    assert len(failed) == 50_000
    queue.answered()
    submit(7)
    assert started == [0, 1, 7]


def test_the_turn_of_a_cancelled_lookup_goes_to_the_next() -> None:
    queue = LookupQueue(1)
    asked: list[str] = []

    def submit(name: str, wanted: bool) -> None:
        def start() -> bool:
            if wanted:
                asked.append(name)
            return wanted

        queue.submit(start, lambda error: None)

    submit("late at once", False)
    submit("first", True)
    for _ in range(10_000):
        submit("late", False)
    submit("second", True)
    assert asked == ["first"]
    queue.answered()
    assert asked == ["first", "second"]
    queue.answered()
    submit("third", True)
    assert asked == ["first", "second", "third"]


# --- one limit of time (GAP-25) ----------------------------------------------------------------------


def test_a_lookup_that_is_not_answered_counts_as_a_rejection() -> None:
    """Rule CONN-15."""
    script, link = looking_up_again(max_rejected_requests=1)
    script.sent(link, Command.LOOKUP)
    script.advance(11)
    script.sent(link, Command.LOOKUP)
    script.advance(11)
    gone, again = script.said()
    assert isinstance(gone, Disconnect)
    assert "more than 1 requests were rejected" in gone.reason
    assert isinstance(again, Connect)


# --- partitions, service URL -----------------------------------------------------------------------


def test_partitions_are_asked_again_until_the_operation_timeout() -> None:
    script = Script(operation_timeout=1.0)
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    for _ in range(2):
        asked = script.sent(link, Command.PARTITIONED_METADATA)
        script.feed(link, frame_partitions_failed(asked.request_id, proto.ServiceNotReady))
        script.advance(0.3)
    script.advance(1)
    failed = script.expect_one(RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, TimedOut)


def test_a_final_answer_about_partitions_is_given_at_once() -> None:
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_partitions_failed(asked.request_id, proto.AuthorizationError))
    failed = script.expect_one(RequestFailed)
    assert failed.request == request
    assert failed.error.code is ServerError.AuthorizationError  # type: ignore[attr-defined]
    assert script.client.next_deadline() is not None


def test_abandoned_questions_are_not_answered() -> None:
    script = Script()
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.client.abandon(script.now, request)
    script.feed(link, frame_partitions(asked.request_id, 2))
    script.advance(29)
    assert script.said() == []
