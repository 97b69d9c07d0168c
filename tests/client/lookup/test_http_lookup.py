"""Lookup over HTTP: requests, redirects, refusals and what goes wrong."""

import json
from typing import Any

import pytest

from pulsar_sansio.client.lookup.http_lookup import MAX_EXCHANGES
from pulsar_sansio.client.outputs import Connect, ProducerFailed, RequestDone
from pulsar_sansio.model.config import ProducerSpec, TopicDomain
from pulsar_sansio.model.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerAddressRefused,
    NotAllowed,
    PulsarError,
    RemoteProtocolError,
    ServiceNotReady,
    TooManyPartitions,
    TooManyRedirects,
    TooManyRequests,
    TopicNotFound,
)
from pulsar_sansio.model.service_url import Address
from tests.client.attaching.test_migration import frame_migrated
from tests.client.lookup.http_script import HTTPS, HttpScript, count, failure, found, response, two_hosts
from tests.client.script import (
    Command,
    frame_close_producer,
    frame_connected,
    frame_partitions,
    frame_producer_success,
    kinds,
)

TOPIC = "persistent://public/default/demo"
LOOKUP = "/lookup/v2/topic/persistent/public/default/demo"
PARTITIONS = "/admin/v2/persistent/public/default/demo/partitions"


# --- what is asked ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chop", [False, True])
def test_a_producer_finds_its_broker_over_http(chop: bool) -> None:
    script = HttpScript(chop=chop)
    script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    asked = script.asked()
    assert asked.target == f"{PARTITIONS}?checkAllowAutoCreation=true"
    assert asked.headers["host"] == "web:8080"
    assert "authorization" not in asked.headers
    script.answer(asked.link, {"partitions": 0, "deleted": False})
    asked = script.asked()
    assert asked.target == f"{LOOKUP}?authoritative=false"
    script.answer(asked.link, found())
    connect = script.expect_one(Connect)
    assert (connect.address, connect.tls_name) == (Address("web", 6650), None)
    script.open(connect.link)
    script.sent(connect.link, Command.CONNECT)
    script.feed(connect.link, frame_connected())
    asked_producer = script.sent(connect.link, Command.PRODUCER)
    script.feed(connect.link, frame_producer_success(asked_producer.request_id))
    assert kinds(script.said()) == ["ProducerReady"]
    assert script.client.links == (connect.link,)


def test_by_https_the_broker_has_tls() -> None:
    script = HttpScript(HTTPS)
    script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    asked = script.asked(Address("web", 8443), "web")
    script.answer(asked.link, {"partitions": 0})
    asked = script.asked(Address("web", 8443), "web")
    script.answer(asked.link, found("pulsar://plain:1", "pulsar+ssl://secure:2"))
    script.connecting(Address("secure", 2), "secure")


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"create_topics": False}, f"{PARTITIONS}?checkAllowAutoCreation=false"),
        ({}, f"{PARTITIONS}?checkAllowAutoCreation=true"),
    ],
)
def test_asking_creates_nothing_where_that_is_not_wanted(options: dict[str, Any], target: str) -> None:
    script = HttpScript(**options)
    count(script)
    assert script.asked().target == target


def test_names_are_percent_encoded() -> None:
    script = HttpScript(listener_name="in & out")
    script.client.open_producer(script.now, ProducerSpec(topic="non-persistent://t/n/a b:ü%?#"))
    asked = script.asked()
    encoded = "non-persistent/t/n/a%20b%3A%C3%BC%25%3F%23"
    assert asked.target == f"/admin/v2/{encoded}/partitions?checkAllowAutoCreation=true"
    script.answer(asked.link, {"partitions": 0})
    target = f"/lookup/v2/topic/{encoded}?authoritative=false&listenerName=in%20%26%20out"
    assert script.asked().target == target


@pytest.mark.parametrize(
    ("domain", "mode"),
    [
        (TopicDomain.PERSISTENT, "PERSISTENT"),
        (TopicDomain.NON_PERSISTENT, "NON_PERSISTENT"),
        (TopicDomain.ALL, "ALL"),
    ],
)
def test_the_topics_of_a_namespace(domain: TopicDomain, mode: str) -> None:
    script = HttpScript()
    request = script.client.topics(script.now, "public/default", domain)
    asked = script.asked()
    assert asked.target == f"/admin/v2/namespaces/public/default/topics?mode={mode}"
    other = "persistent://public/default/a"
    script.answer(asked.link, [f"{TOPIC}-partition-1", f"{TOPIC}-partition-0", other])
    script.expect(RequestDone(request, [other, TOPIC]))


def test_equal_questions_share_one_request() -> None:
    script = HttpScript()
    requests = [count(script), count(script)]
    asked = script.asked()
    script.answer(asked.link, {"partitions": 4})
    script.expect(*(RequestDone(request, 4) for request in requests))


def test_more_partitions_than_allowed() -> None:
    script = HttpScript(max_partitions=3)
    count(script)
    script.answer(script.asked().link, {"partitions": 4})
    assert isinstance(failure(script), TooManyPartitions)


def test_few_exchanges_at_a_time_and_the_others_wait() -> None:
    script = HttpScript()
    requests = [script.client.partitions(script.now, f"t{index}") for index in range(MAX_EXCHANGES + 2)]
    links = [output.link for output in script.said() if isinstance(output, Connect)]
    assert len(links) == MAX_EXCHANGES
    script.open(links[0])
    script.answer(links[0], {"partitions": 5})
    done, following = script.said()[::-1]
    assert done == RequestDone(requests[0], 5)
    assert isinstance(following, Connect)
    script.lose(links[1])
    assert script.connecting() == following.link + 1


# --- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "location", ["http://other:81/x?authoritative=true", "//other:81/x?authoritative=true"]
)
def test_a_redirect_is_followed(status: int, location: str) -> None:
    script = HttpScript()
    request = count(script)
    script.answer(script.asked().link, None, status, f"Location: {location}")
    asked = script.asked(Address("other", 81))
    assert asked.target == "/x?authoritative=true"
    script.answer(asked.link, {"partitions": 2})
    script.expect(RequestDone(request, 2))


def test_a_redirect_without_an_end() -> None:
    script = HttpScript(max_lookup_redirects=3)
    count(script)
    for _ in range(4):
        script.answer(script.asked().link, None, 307, "Location: /again")
    assert isinstance(failure(script), TooManyRedirects)
    assert script.client.links == ()


@pytest.mark.parametrize(
    ("url", "options", "location", "kind"),
    [
        (HTTPS, {}, "http://web:8080/x", BrokerAddressRefused),
        ("http://web:8443", {}, "https://web:8443/x", BrokerAddressRefused),
        (HTTPS, {"broker_hosts": (".inside",)}, "https://evil:1/x", BrokerAddressRefused),
        (HTTPS, {}, "ftp://web/x", RemoteProtocolError),
        (HTTPS, {}, "https://user:secret@web/x", RemoteProtocolError),
        (HTTPS, {}, "", TooManyRedirects),
    ],
)
def test_a_redirect_that_is_not_followed(
    url: str, options: dict[str, Any], location: str, kind: type[PulsarError]
) -> None:
    """A client is never sent from TLS to a plain connection, nor to a host that it must not go to."""
    script = HttpScript(url, max_lookup_redirects=1, **options)
    count(script)
    while (outputs := script.said()) and isinstance(outputs[-1], Connect):
        script.open(outputs[-1].link)
        script.answer(outputs[-1].link, None, 307, *([f"Location: {location}"] if location else []))
    script.outputs = outputs
    error = failure(script)
    assert type(error) is kind
    assert "secret" not in str(error)
    assert script.client.links == ()


# --- what brokers are found --------------------------------------------------------------------------


def looked_up(script: HttpScript, answer: object) -> None:
    """Answer the lookup of a producer's broker."""
    script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    script.answer(script.asked().link, {"partitions": 0})
    script.answer(script.asked().link, answer)


def test_an_old_broker_names_itself_by_native_url_only() -> None:
    script = HttpScript()
    looked_up(script, {"nativeUrl": "pulsar://old:1"})
    script.connecting(Address("old", 1))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "pulsar://web",
        {"brokerUrl": None},
        {"brokerUrl": 7},
        {"brokerUrl": ""},
        {"brokerUrl": "http://web:8080"},
        {"brokerUrlTls": "pulsar+ssl://web:6651"},
    ],
)
def test_an_answer_without_a_usable_broker_is_a_failed_attempt(answer: object) -> None:
    script = HttpScript()
    looked_up(script, answer)
    error = failure(script)
    assert type(error) is RemoteProtocolError
    assert "brokerUrl" in str(error)


def test_a_topic_that_has_migrated_is_asked_for_in_its_cluster() -> None:
    """TOPIC_MIGRATED names a broker of the new cluster, and that broker is asked by LOOKUP."""
    script = HttpScript()
    looked_up(script, found())
    link = script.connecting(Address("web", 6650))
    script.open(link)
    script.sent(link, Command.CONNECT)
    script.feed(link, frame_connected())
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id), frame_migrated(), frame_close_producer())
    script.advance(0.3)
    connect = script.said()[-1]
    assert isinstance(connect, Connect)
    assert connect.address == Address("green", 6650)
    script.open(connect.link)
    script.sent(connect.link, Command.CONNECT)
    script.feed(connect.link, frame_connected())
    script.sent(connect.link, Command.LOOKUP)


def test_a_broker_that_the_client_may_not_go_to() -> None:
    script = HttpScript(broker_hosts=())
    looked_up(script, found("pulsar://evil:6650"))
    failed = script.said()[0]
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, BrokerAddressRefused)


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, NotAllowed, False),
        (401, AuthenticationError, True),
        (403, AuthorizationError, False),
        (404, TopicNotFound, False),
        (405, NotAllowed, False),
        (409, ServiceNotReady, True),
        (412, ServiceNotReady, True),
        (429, TooManyRequests, True),
        (500, ServiceNotReady, True),
        (503, ServiceNotReady, True),
        (204, RemoteProtocolError, True),
        (304, RemoteProtocolError, True),
    ],
)
def test_statuses_are_the_errors_of_binary_lookups(
    status: int, kind: type[PulsarError], retryable: bool
) -> None:
    script = HttpScript()
    count(script)
    asked = script.asked()
    body = b"" if status in (204, 304) else json.dumps({"reason": "the broker says no"}).encode()
    script.feed(asked.link, response(body, status))
    script.ended(asked.link)
    error = failure(script)
    assert type(error) is kind
    assert error.retryable is retryable
    assert "web:8080" in str(error)
    assert body == b"" or "the broker says no" in str(error)


def test_a_broker_refuses_a_role_that_it_knows_by_401_too() -> None:
    script = HttpScript()
    count(script)
    reason = "Unauthorized to validateTopicOperation for operation [LOOKUP] on topic [t]"
    script.answer(script.asked().link, {"reason": reason}, 401)
    assert type(failure(script)) is AuthorizationError


@pytest.mark.parametrize("body", [b"", b"<html>\n  Bad\tGateway\xff</html>", b'{"reason": 7}', b"[" * 10_000])
def test_a_refusal_without_a_reason_of_pulsar(body: bytes) -> None:
    script = HttpScript()
    count(script)
    asked = script.asked()
    script.feed(asked.link, response(body, 502))
    error = failure(script)
    assert isinstance(error, ServiceNotReady)
    assert len(str(error)) < 700
    assert "\n" not in str(error)


# --- answers that are none ---------------------------------------------------------------------------


@pytest.mark.parametrize("listing", [b"{}", b"[1]", b'"a"', b"null"])
def test_a_listing_that_is_none(listing: bytes) -> None:
    script = HttpScript()
    script.client.topics(script.now, "public/default")
    script.feed(script.asked().link, response(listing))
    assert type(failure(script)) is RemoteProtocolError


# --- hosts, times and ends ---------------------------------------------------------------------------


def test_the_next_host_is_asked_where_one_cannot_be_reached() -> None:
    script, link, other = two_hosts()
    script.lose(link, "refused")
    script.advance(0.3)
    script.connecting(other)


def test_the_next_host_is_asked_where_one_is_not_ready() -> None:
    script, link, other = two_hosts()
    script.open(link)
    script.answer(link, {"reason": "starting"}, 503)
    script.advance(0.3)
    script.connecting(other)


def test_a_new_service_url_ends_the_exchanges_and_changes_the_means() -> None:
    script = HttpScript()
    for index in range(MAX_EXCHANGES + 2):
        script.client.partitions(script.now, f"t{index}")
    script.said()
    script.client.update_service_url(script.now, "pulsar://broker:6650")
    assert set(kinds(script.said())) == {"Disconnect"}
    assert script.client.links == ()
    script.advance(0.3)
    link = script.ready_link()
    first, *_ = script.sent(link, *[Command.PARTITIONED_METADATA] * (MAX_EXCHANGES + 2))
    script.feed(link, frame_partitions(first.request_id, 0))
    assert kinds(script.said()) == ["RequestDone"]


def test_closing_the_client_leaves_nothing() -> None:
    script = HttpScript()
    for index in range(MAX_EXCHANGES + 2):
        script.client.open_producer(script.now, ProducerSpec(topic=f"t{index}"))
    script.said()
    script.client.close(script.now)
    script.advance(100)
    assert script.client.links == ()
    assert script.client.next_deadline() is None


def test_an_explanation_names_what_is_asked() -> None:
    script = HttpScript()
    producer = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    link = script.connecting()
    assert "connecting to web:8080" in script.client.explain(script.now, producer)
    script.open(link)
    assert "asking how many partitions" in script.client.explain(script.now, producer)
