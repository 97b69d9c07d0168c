"""The broker addresses that a client accepts: scheme and host (`broker_hosts`)."""

from typing import Any

import pytest

from pulsar_sansio.client.connecting.address_policy import check_destination, named_broker
from pulsar_sansio.client.outputs import Connect, Detached, ProducerFailed, ProducerReady
from pulsar_sansio.model.config import ClientConfig, ProducerSpec
from pulsar_sansio.model.errors import (
    BrokerAddressRefused,
    InvalidConfiguration,
    RemoteProtocolError,
    TimedOut,
)
from pulsar_sansio.model.service_url import Address, ServiceUrl
from tests.client.script import (
    URL,
    Command,
    Script,
    frame_close_producer,
    frame_lookup,
    frame_producer_success,
)

EVIL = "pulsar://evil.example.net:6650"
HOSTS = ("broker-1.example.com", ".pulsar.svc", "10.0.0.7", "fe80::1")


# --- what is allowed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tls", "address"),
    [
        ("pulsar://a:1", False, Address("a", 1)),
        ("pulsar+ssl://[::1]:2", True, Address("::1", 2)),
        ("pulsar+ssl://a", True, Address("a", 6651)),
    ],
)
def test_addresses_of_brokers(text: str, tls: bool, address: Address) -> None:
    assert named_broker(text) == (tls, address)


@pytest.mark.parametrize(
    "text", ["", "a:1", "pulsar://a:99999", "pulsar://", "pulsar://" + "x" * 10_000 + "/y"]
)
def test_what_is_no_address_is_said_in_a_few_words(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="no usable broker URL") as refused:
        named_broker(text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("broker", True),  # the service URL's
        ("BROKER.", True),
        ("broker-1.example.com", True),
        ("Broker-1.Example.COM", True),
        ("broker-2.example.com", False),
        ("xbroker-1.example.com", False),
        ("broker-1.example.com.evil.net", False),
        ("b.pulsar.svc", True),
        ("a.b.pulsar.svc.", True),
        ("pulsar.svc", False),
        ("evilpulsar.svc", False),
        ("10.0.0.7", True),
        ("10.0.0.77", False),
        ("fe80::1", True),
        ("fe80::12", False),
    ],
)
def test_hosts_by_name_and_by_suffix(host: str, allowed: bool) -> None:
    address = Address(host, 6650)
    url = ServiceUrl.parse("pulsar://other,broker")
    if allowed:
        check_destination(False, address, url, HOSTS)
    else:
        with pytest.raises(BrokerAddressRefused, match="nor in broker_hosts"):
            check_destination(False, address, url, HOSTS)
    check_destination(False, address, url, None)


@pytest.mark.parametrize(("service", "named"), [("pulsar://h", True), ("pulsar+ssl://h", False)])
@pytest.mark.parametrize("hosts", [None, HOSTS, ("h",)])
def test_the_scheme_stays_that_of_the_service_url(service: str, named: bool, hosts: Any) -> None:
    with pytest.raises(BrokerAddressRefused, match="this client connects by"):
        check_destination(named, Address("h", 1), ServiceUrl.parse(service), hosts)


@pytest.mark.parametrize(
    "hosts", ["broker", ["broker"], ("",), (".",), ("pulsar://b",), ("b:6650",), ("a b",), (1,), ("a,b",)]
)
def test_an_option_that_would_never_match_is_refused(hosts: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="broker_hosts"):
        ClientConfig(URL, broker_hosts=hosts)


def test_no_other_host_at_all() -> None:
    """Behind a proxy or a single broker."""
    ClientConfig(URL, broker_hosts=())
    with pytest.raises(BrokerAddressRefused):
        check_destination(False, Address("other", 1), ServiceUrl.parse(URL), ())


# --- in conversation -------------------------------------------------------------------------------


def looking_up(physical: str = "broker", **config: Any) -> tuple[Script, int]:
    """A producer that has sent LOOKUP over a link to the host `physical`."""
    script = Script(**config)
    script.client.open_producer(script.now, ProducerSpec("demo"))
    link = script.ready_link(physical)
    script.check_partitions(link)
    return script, link


@pytest.mark.parametrize("redirect", [False, True])
def test_a_lookup_that_leads_elsewhere_ends_with_a_clear_error_and_no_connection(redirect: bool) -> None:
    script, link = looking_up(broker_hosts=(".example.com",))
    script.find_topic(link, EVIL, redirect=redirect)
    [failed] = script.said()
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, BrokerAddressRefused)
    assert "evil.example.net:6650" in str(failed.error)


@pytest.mark.parametrize(
    "host", ["6.6.6.6\0.example.com", "evil.net\\.example.com", "[2001:db8::1%.example.com]"]
)
@pytest.mark.parametrize("redirect", [False, True])
def test_a_host_that_only_ends_as_an_allowed_one_is_not_gone_to(host: str, redirect: bool) -> None:
    """A resolver reads a name up to its first NUL, and would find another host than the check."""
    script, link = looking_up(broker_hosts=(".example.com",))
    script.find_topic(link, f"pulsar://{host}:6650", redirect=redirect)
    assert not [output for output in script.said() if isinstance(output, Connect)]


@pytest.mark.parametrize("redirect", [False, True])
def test_an_allowed_host_is_gone_to(redirect: bool) -> None:
    script, link = looking_up(broker_hosts=(".example.com",))
    script.find_topic(link, "pulsar://b.example.com:1", redirect=redirect)
    assert script.expect_one(Connect).address == Address("b.example.com", 1)


@pytest.mark.parametrize("redirect", [False, True])
def test_nothing_leads_from_tls_to_a_plain_connection(redirect: bool) -> None:
    """A plain URL in the TLS field, and a plain one beside an empty TLS field."""
    script, link = looking_up(service_url="pulsar+ssl://broker", operation_timeout=1.0)
    script.find_topic(link, URL, tls_url="pulsar://broker:6650", redirect=redirect)
    [failed] = script.said()
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, BrokerAddressRefused)

    script, link = looking_up(service_url="pulsar+ssl://broker", operation_timeout=1.0)
    script.find_topic(link, URL, redirect=redirect)
    script.advance(1)
    assert not [
        output for output in script.history if isinstance(output, Connect) and output.tls_name is None
    ]
    assert isinstance(script.expect_one(ProducerFailed).error, TimedOut)


def test_a_proxy_names_its_brokers_as_it_likes() -> None:
    """The client connects to the proxy, which may use another scheme towards its brokers."""
    script, link = looking_up(service_url="pulsar+ssl://broker:6650", broker_hosts=())
    plain = "pulsar://10.0.0.9:6650"
    script.find_topic(link, plain, tls_url=plain, proxy=True)
    connect = script.expect_one(Connect)
    assert (connect.address, connect.tls_name) == (Address("broker", 6650), "broker")
    script.open(connect.link)
    assert script.sent(connect.link, Command.CONNECT).proxy_to_broker_url == "10.0.0.9:6650"


def test_a_redirect_is_not_made_harmless_by_calling_it_proxied() -> None:
    script, link = looking_up(broker_hosts=())
    script.find_topic(link, EVIL, redirect=True, proxy=True)
    assert isinstance(script.expect_one(ProducerFailed).error, BrokerAddressRefused)


def test_a_broker_that_closes_a_producer_cannot_send_it_elsewhere() -> None:
    """After a forbidden assigned address, the producer backs off, looks up its topic, and lives on."""
    script = Script(broker_hosts=(".example.com",))
    _, link = script.ready_producer()
    script.feed(link, frame_close_producer(0, EVIL))
    [detached] = script.said()
    assert isinstance(detached, Detached)
    script.advance(0.2)
    lookup = script.sent(link, Command.LOOKUP)
    script.feed(link, frame_lookup(lookup.request_id, EVIL))
    assert script.said() == [], "it was attached, so it is tried again"
    script.advance(1)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    assert not [output for output in script.said() if isinstance(output, (Connect, ProducerReady))]


SNI: dict[str, Any] = {"service_url": "pulsar+ssl://broker", "sni_proxy": "pulsar+ssl://proxy:4443"}
EVIL_TLS = "pulsar+ssl://evil.example.net:6651"


def test_a_broker_behind_an_sni_proxy_is_not_made_harmless_by_calling_it_proxied() -> None:
    """An SNI proxy passes TLS through to the named host, which would receive the credentials."""
    script, link = looking_up("proxy", broker_hosts=(), **SNI)
    script.find_topic(link, URL, tls_url=EVIL_TLS, proxy=True)
    assert isinstance(script.expect_one(ProducerFailed).error, BrokerAddressRefused)


@pytest.mark.parametrize(
    ("url", "tls_name"), [(EVIL_TLS, None), ("pulsar+ssl://b.example.com:6651", "b.example.com")]
)
def test_a_broker_behind_an_sni_proxy_assigns_allowed_hosts_only(url: str, tls_name: str | None) -> None:
    """GAP-37"""
    script, link = looking_up("proxy", broker_hosts=(".example.com",), **SNI)
    script.find_topic(link, URL, tls_url="pulsar+ssl://broker:6651")
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    script.feed(link, frame_close_producer(0, tls_url=url))
    named = [output.tls_name for output in script.said() if isinstance(output, Connect)]
    assert named == ([] if tls_name is None else [tls_name])
