"""Failover that a web service controls: what it is asked, what is followed and what is refused."""

import pickle
from typing import Any

import pytest

from pulsar_sansio.client.outputs import Connect
from pulsar_sansio.model.config import ClientConfig, ControlledFailover
from pulsar_sansio.model.errors import (
    BrokerAddressRefused,
    ConnectionLost,
    InvalidConfiguration,
    InvalidServiceUrl,
    NotSupported,
    RemoteProtocolError,
    TopicNotFound,
)
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.model.service_url import Address
from tests.canary import CANARY
from tests.client.failover.failover_script import FailoverScript
from tests.client.lookup.http_script import HttpScript, response
from tests.client.script import kinds

SERVICE = Address("control", 8000)
FAILOVER = ControlledFailover(f"http://{SERVICE}/cluster?of=me", check_interval=5.0)
FIRST = "pulsar://first:6650"
SECOND = "pulsar://second:6650"


def script(url: str = FIRST, failover: ControlledFailover = FAILOVER, **options: Any) -> FailoverScript:
    return FailoverScript(service_url=url, failover=failover, **options)


def test_the_service_is_asked_at_once_and_every_interval() -> None:
    """Rule CFG-002."""
    world = script()
    world.names(SERVICE, serviceUrl=FIRST)
    world.pass_time(0)
    assert world.probed == [SERVICE]
    world.pass_time(14.9)
    assert world.probed == [SERVICE] * 3
    assert world.switched() == []
    assert world.failures() == []
    assert world.client.links == ()


def test_the_request() -> None:
    failover = ControlledFailover(FAILOVER.url, headers={"X-Api-Key": "k !~"})
    world = HttpScript("pulsar://first", failover=failover)
    world.advance(0)
    asked = world.asked(SERVICE)
    assert asked.target == "/cluster?of=me"
    assert asked.headers["x-api-key"] == "k !~"
    assert "authorization" not in asked.headers


def test_a_service_by_https_is_verified() -> None:
    world = HttpScript("pulsar://first", failover=ControlledFailover("https://control:1/"))
    world.advance(0)
    assert world.expect_one(Connect).tls_name == "control"


def test_a_new_url_is_used() -> None:
    world = script()
    world.names(SERVICE, serviceUrl=SECOND, tlsTrustCertsFilePath="", authPluginClassName=None)
    world.pass_time(0)
    assert world.switched() == [(FIRST, SECOND)]
    world.pass_time(5)
    assert world.switched() == []
    world.names(SERVICE, serviceUrl=" http://third,fourth ")
    world.pass_time(5)
    assert world.switched() == [(SECOND, "http://third:80,fourth:80")]


@pytest.mark.parametrize("configuration", [{}, {"serviceUrl": ""}, {"serviceUrl": " "}, {"serviceUrl": None}])
def test_an_answer_without_a_url_changes_nothing(configuration: dict[str, object]) -> None:
    world = script()
    world.names(SERVICE, **configuration)
    world.pass_time(20)
    assert world.switched() == []
    assert world.failures() == []


@pytest.mark.parametrize(
    "name", ["tlsTrustCertsFilePath", "authPluginClassName", "authParamsString", "token"]
)
def test_another_identity_is_not_supported(name: str) -> None:
    world = script()
    world.names(SERVICE, serviceUrl=SECOND, **{name: "hunter2"})
    world.pass_time(0)
    assert world.switched() == []
    (error,) = world.failures()
    assert isinstance(error, NotSupported)
    assert name in str(error)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (response(b"pulsar://second"), RemoteProtocolError),
        (response(b"[]"), RemoteProtocolError),
        (response(b'{"serviceUrl": 7}'), RemoteProtocolError),
        (response(b'{"serviceUrl": "second"}'), RemoteProtocolError),
        (response(b"x" * 70_000), RemoteProtocolError),
        (response(b"", 404), TopicNotFound),
        (response(b"", 307, "Location: http://other/"), RemoteProtocolError),
        (b"SSH-2.0\r\n\r\n", RemoteProtocolError),
    ],
)
def test_an_answer_that_is_none_changes_nothing(answer: bytes, kind: type[Exception]) -> None:
    world = script()
    world.answers[SERVICE] = answer
    world.pass_time(5)
    assert world.switched() == []
    assert [type(error) for error in world.failures()] == [kind, kind]
    world.names(SERVICE, serviceUrl=SECOND)
    world.pass_time(5)
    assert world.switched() == [(FIRST, SECOND)]


def test_a_service_that_is_not_there() -> None:
    world = script()
    world.pass_time(5)
    first, second = world.failures()
    assert type(first) is type(second) is ConnectionLost
    assert "control:8000" in str(first)


@pytest.mark.parametrize(
    ("url", "options", "named"),
    [
        ("pulsar+ssl://first", {}, "pulsar://first:6650"),
        ("pulsar+ssl://first", {}, "http://first"),
        ("pulsar+ssl://first", {"sni_proxy": "pulsar+ssl://proxy"}, "https://first"),
        ("pulsar://first", {"broker_hosts": (".inside",)}, "pulsar://a.inside,second"),
    ],
)
def test_a_cluster_that_the_client_must_not_go_to(url: str, options: dict[str, Any], named: str) -> None:
    world = script(url, **options)
    world.names(SERVICE, serviceUrl=named)
    world.pass_time(0)
    assert world.switched() == []
    assert [type(error) for error in world.failures()] == [BrokerAddressRefused]


@pytest.mark.parametrize("asking", [False, True])
def test_closing_the_client_ends_the_questions(asking: bool) -> None:
    world = HttpScript("pulsar://first", failover=FAILOVER)
    if asking:
        world.advance(0)
    assert len(world.said()) == asking
    world.client.close(world.now)
    assert kinds(world.said()) == ["Disconnect", "RequestDone"][not asking :]
    world.advance(100)
    assert world.said() == []
    assert world.client.next_deadline() is None


# --- options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["pulsar://control", "control", "http://user:secret@control/", None])
def test_the_service_has_a_url_of_http(url: Any) -> None:
    with pytest.raises(InvalidServiceUrl) as caught:
        ControlledFailover(url)
    assert "secret" not in str(caught.value)


def test_a_wrong_interval() -> None:
    ControlledFailover("https://control", check_interval=0.001)
    with pytest.raises(InvalidConfiguration, match=r"^failover\.check_interval: "):
        ControlledFailover("https://control", check_interval=0)


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"a b": "c"}, "failover.headers: 'a b' is no name of a header"),
        ({"": "c"}, "failover.headers: '' is no name of a header"),
        ({"-_": "c"}, "failover.headers: '-_' is no name of a header"),
        ({"ä": "b"}, "failover.headers: 'ä' is no name of a header"),
        ({7: "b"}, "failover.headers: 7 is no name of a header"),
        ({"a": f"{CANARY}\r\nc: d"}, "failover.headers: the value of 'a' is no value of a header"),
        ({"a": f" {CANARY}"}, "failover.headers: the value of 'a' is no value of a header"),
        ({"a": f"{CANARY}\x7f"}, "failover.headers: the value of 'a' is no value of a header"),
        ({"a": f"{CANARY}ä"}, "failover.headers: the value of 'a' is no value of a header"),
        ({"a": 7}, "a secret is text or bytes, not int"),
        (["a"], "failover.headers: a mapping of names to values"),
    ],
)
def test_wrong_headers(headers: Any, text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        ControlledFailover("http://control", headers=headers)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [CANARY, Secret(CANARY)])
def test_a_header_is_a_secret(value: str | Secret) -> None:
    """No text and no pickle has the value, nor has a pickle of the client's options."""
    given = {"X-Key": value}
    failover = ControlledFailover("https://control", headers=given)
    given["X-Key"] = "another"
    assert failover.headers == {"X-Key": Secret(CANARY)}
    config = ClientConfig(FIRST, failover=failover)
    assert CANARY not in repr(config)
    with pytest.raises(TypeError, match="a secret cannot be pickled"):
        pickle.dumps(config)
    without = ClientConfig(FIRST, failover=ControlledFailover("https://control"))
    assert pickle.loads(pickle.dumps(without)) == without


def test_credentials_need_a_service_that_cannot_be_forged() -> None:
    """A service by http:// could send them to any host; by https://, or within `broker_hosts`, not so."""
    identity: dict[str, Any] = {"authentication_method": "token"}
    with pytest.raises(InvalidConfiguration, match="https://") as caught:
        ClientConfig(FIRST, failover=ControlledFailover(f"http://control/?key={CANARY}"), **identity)
    assert CANARY not in str(caught.value)
    ClientConfig(FIRST, failover=FAILOVER, broker_hosts=(".inside",), **identity)
    ClientConfig(FIRST, failover=ControlledFailover("https://control"), **identity)
