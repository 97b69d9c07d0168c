"""`BrokerAddresses`: the host of the service URL to ask next, and the addresses of named brokers."""

from typing import Any, cast

import pytest

from pulsar_sansio.client.connecting.broker_addresses import BrokerAddresses
from pulsar_sansio.client.connecting.services import Services
from pulsar_sansio.client.outputs import Output
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.model.errors import BrokerAddressRefused, RemoteProtocolError
from pulsar_sansio.model.service_url import Address, ServiceUrl

A, B, C = Address("a", 6650), Address("b", 6650), Address("c", 6650)


def addresses(url: str = "pulsar://a:6650", seed: int = 1, **options: Any) -> BrokerAddresses:
    config = ClientConfig(service_url=url, **options)
    context: Context[Output] = Context(0, seed)
    return BrokerAddresses(Services(context, config, lambda handle, error: None), ServiceUrl.parse(url))


def test_the_first_of_several_hosts_is_drawn() -> None:
    drawn = {addresses("pulsar://a,b,c", seed).service_address for seed in range(30)}
    assert drawn == {A, B, C}


def test_a_host_that_cannot_be_connected_to_is_followed_by_the_next() -> None:
    hosts = addresses("pulsar://a,b,c")
    found = []
    for _ in range(4):
        host = hosts.service_address
        found.append(host)
        hosts.could_not_connect(host, host)
    assert found[3] == found[0]
    assert set(found) == {A, B, C}


def test_a_failure_of_another_host_changes_nothing() -> None:
    hosts = addresses("pulsar://a,b,c")
    host = hosts.service_address
    other = next(each for each in (A, B, C) if each != host)
    hosts.could_not_connect(other, other)
    assert hosts.service_address == host


def test_another_service_url_is_asked_from_now_on() -> None:
    """CLIENT-21: the service URL may change while the client is open."""
    hosts = addresses()
    hosts.set_service_url(ServiceUrl.parse("pulsar+ssl://b:6651"))
    assert hosts.service_address == Address("b", 6651)
    assert hosts.tls_name(hosts.service_url, Address("b", 6651), Address("b", 6651)) == "b"


class TestAnSniProxy:
    url = "pulsar+ssl://a:6651,b:6651"
    proxy = Address("proxy", 443)

    def hosts(self) -> BrokerAddresses:
        return addresses(self.url, sni_proxy="pulsar+ssl://proxy:443")

    def test_is_connected_to_instead_of_every_broker(self) -> None:
        hosts = self.hosts()
        broker = Address("a", 6651)
        assert hosts.physical_address(broker) == self.proxy
        assert hosts.tls_name(hosts.service_url, broker, self.proxy) == "a"
        assert hosts.cluster_at("pulsar+ssl://a:6651") == broker

    @pytest.mark.parametrize("proxied", [False, True])
    def test_leads_to_a_named_broker_whatever_the_broker_says_of_proxies(self, proxied: bool) -> None:
        connection = cast(Any, type("Connection", (), {"physical": Address("elsewhere", 1)}))
        route = self.hosts().route_to("pulsar+ssl://b:6651", connection, proxied)
        assert route == (Address("b", 6651), self.proxy)

    def test_failures_are_counted_for_the_host_behind_it(self) -> None:
        hosts = self.hosts()
        first = hosts.service_address
        hosts.could_not_connect(first, self.proxy)
        second = hosts.service_address
        assert second != first
        hosts.could_not_connect(first, self.proxy)
        assert hosts.service_address == second


def test_without_tls_no_certificate_is_checked() -> None:
    hosts = addresses()
    assert hosts.tls_name(hosts.service_url, A, A) is None
    assert hosts.physical_address(A) == A


def test_behind_another_proxy_the_certificate_is_the_proxys() -> None:
    hosts = addresses("pulsar+ssl://proxy:6651")
    assert hosts.tls_name(hosts.service_url, Address("b", 6651), Address("proxy", 6651)) == "proxy"


def test_a_broker_that_is_reached_through_a_proxy_is_logical_only() -> None:
    """LOOKUP-07: `proxy_through_service_url` leaves the connection where it is."""
    hosts = addresses("pulsar://proxy:6650", broker_hosts=())
    connection = cast(Any, type("Connection", (), {"physical": Address("proxy", 6650)}))
    logical, physical = hosts.route_to("pulsar://b:6650", connection, proxied=True)
    assert (logical, physical) == (B, Address("proxy", 6650))
    with pytest.raises(BrokerAddressRefused):
        hosts.route_to("pulsar://b:6650", connection, proxied=False)


def test_a_named_broker_must_be_allowed() -> None:
    anywhere = addresses()
    assert anywhere.cluster_at("pulsar://b:6650") == B
    listed = addresses(broker_hosts=("b", ".example.com"))
    assert listed.cluster_at("pulsar://b:6650") == B
    assert listed.cluster_at("pulsar://x.example.com:6650").host == "x.example.com"
    listed.check_host(A)
    for host in ("c", "example.com.evil"):
        with pytest.raises(BrokerAddressRefused, match=host):
            listed.cluster_at(f"pulsar://{host}:6650")
        with pytest.raises(BrokerAddressRefused, match=host):
            listed.check_host(Address(host, 6650))


def test_with_credentials_only_hosts_of_the_service_url_are_allowed() -> None:
    """Credentials go to no host that the application has not named."""
    hosts = addresses(authentication_method="token")
    assert hosts.cluster_at("pulsar://a:6650") == A
    with pytest.raises(BrokerAddressRefused, match="b"):
        hosts.cluster_at("pulsar://b:6650")


@pytest.mark.parametrize("url", ["", "b:6650", "ftp://b", "pulsar://", "pulsar://b:x"])
def test_an_unusable_url_is_the_brokers_mistake(url: str) -> None:
    with pytest.raises(RemoteProtocolError):
        addresses().cluster_at(url)


def test_a_broker_without_tls_is_refused_by_a_client_with_tls() -> None:
    with pytest.raises(BrokerAddressRefused):
        addresses("pulsar+ssl://a:6651").cluster_at("pulsar://a:6650")
