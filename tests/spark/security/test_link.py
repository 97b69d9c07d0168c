"""The blocking driver over TLS and with credentials: each connection verifies, and reads a token anew."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from pulsar_sansio import (
    EARLIEST,
    Address,
    AuthenticationError,
    CertificateAuthorityUnknown,
    CertificateNameMismatch,
    ClientCertificateRefused,
    CredentialsFailed,
    InvalidConfiguration,
    OutgoingMessage,
)
from pulsar_spark import link as link_module
from pulsar_spark.errors import LinkTimeout
from pulsar_spark.link import Link, open_link
from pulsar_spark.security.access import Access
from pulsar_spark.security.carried_secret import CarriedSecret
from pulsar_spark.security.oauth2 import OAuth2Options
from tests.patience import PATIENCE
from tests.security.certificates import Authority, Files
from tests.security.secure_pulsar import PASSWORD, token_of
from tests.spark.scenes.brokers import OurBroker
from tests.spark.scenes.sending import Sender
from tests.spark.security.issuing import issue_tokens
from tests.spark.security.secure_broker import SHORT_LIVED, SecureBroker
from tests.trio.security.issuer import LocalIssuer

TOPIC = "persistent://public/default/tls"


@pytest.fixture(scope="module")
def own(authority: Authority) -> Files:
    return authority.issue(common_name="worker")


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[OurBroker]:
    """A broker for `localhost` that requires a client certificate."""
    files = authority.issue("localhost")
    broker = OurBroker(
        *("--tls-port", "0", "--tls-certificate", str(files.certificate), "--tls-key", str(files.key)),
        *("--tls-trust", str(authority.file), "--tls-require-client-certificate", "--host", "localhost"),
    )
    yield broker
    broker.stop()


def mutual(authority: Authority, own: Files) -> Access:
    return Access(trust=str(authority.file), certificate=str(own.certificate), key=str(own.key), method="tls")


def values(link: Link, count: int, topic: str = TOPIC) -> list[bytes]:
    """The payloads of the first messages of the topic."""
    found: list[bytes] = []

    def take() -> bool | None:
        found.extend(each.data for each in link.client.take(time.monotonic_ns(), reader.handle, 100))
        return len(found) >= count or None

    with link.reading(topic, EARLIEST) as reader:
        link.wait(take, PATIENCE, "messages")
    return found


def test_messages_of_every_size_arrive(broker: OurBroker, authority: Authority, own: Files) -> None:
    """Together they are larger than one read, and each of the last ones is larger than one write."""
    access = mutual(authority, own)
    payloads = [b"%d" % number for number in range(1000)] + [bytes(4_000_000)] * 3
    sender = Sender(broker.tls_url, TOPIC, access, batching=None)
    sender.send(payloads)
    sender.close()
    link = Link(broker.tls_url, access)
    assert values(link, len(payloads)) == payloads
    link.close()


def test_a_peer_that_is_not_trusted_or_has_another_name(broker: OurBroker, authority: Authority) -> None:
    for access, url, error in (
        (Access(), broker.tls_url, CertificateAuthorityUnknown),
        (
            Access(trust=str(authority.file)),
            broker.tls_url.replace("localhost", "127.0.0.1"),
            CertificateNameMismatch,
        ),
        (Access(trust=str(authority.file)), broker.tls_url, ClientCertificateRefused),
    ):
        link = Link(url, access)
        with pytest.raises(error):
            link.partitions(TOPIC)
        link.close()


def test_a_port_without_tls_and_one_that_is_silent(broker: OurBroker) -> None:
    link = Link(broker.url.replace("pulsar://", "pulsar+ssl://"))
    with pytest.raises(LinkTimeout):
        link.partitions(TOPIC, timeout=0.5)
    link.close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        link = Link(f"pulsar+ssl://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.2)
        began = time.monotonic()
        with pytest.raises(LinkTimeout):
            link.partitions(TOPIC, timeout=0.3)
        assert time.monotonic() - began < PATIENCE
        link.drop()


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"], ids=["empty", "long"])
def test_a_host_that_no_resolver_takes_is_tried_until_the_timeout(host: str) -> None:
    """A broker may name it in an answer to a lookup."""
    link = Link(f"pulsar://{host}:6650")
    with pytest.raises(LinkTimeout):
        link.partitions(TOPIC, timeout=0.2)
    link.close()


NO_ANSWER, REFUSED = TimeoutError, ConnectionRefusedError


@pytest.mark.parametrize(
    ("outcomes", "shares"),
    [
        ([NO_ANSWER, NO_ANSWER, NO_ANSWER], [2.0, 2.0, 2.0]),
        ([REFUSED, NO_ANSWER, REFUSED], [2.0, 3.0, 3.0]),
        ([NO_ANSWER, None], [2.0, 2.0]),
    ],
)
def test_the_addresses_of_a_host_share_the_time(
    outcomes: list[type[OSError] | None], shares: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that swallows packets uses up its own share; one that answers at once leaves more."""
    now, given = 100.0, []
    socks: list[socket.socket] = []

    def create_connection(target: tuple[str, int], timeout: float) -> socket.socket:
        nonlocal now
        given.append((target, timeout))
        outcome = outcomes[len(given) - 1]
        now += timeout if outcome is NO_ANSWER else 0.0
        if outcome is not None:
            raise outcome
        socks.append(socket.socket())
        return socks[0]

    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"10.0.0.{n}", 6650)) for n in (1, 2, 3)]
    monkeypatch.setattr("pulsar_spark.link.socket.getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr("pulsar_spark.link.socket.create_connection", create_connection)
    monkeypatch.setattr("pulsar_spark.link.time.monotonic", lambda: now)
    if outcomes[-1] is None:
        with link_module.connected(Address("broker", 6650), 106.0) as connected:
            assert connected is socks[0]
    else:
        with pytest.raises(outcomes[-1]):
            link_module.connected(Address("broker", 6650), 106.0)
    assert given == [((f"10.0.0.{n}", 6650), share) for n, share in enumerate(shares, 1)]


def test_a_file_that_cannot_be_used_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="tls: trust '/no/file': No such file"):
        Link("pulsar+ssl://localhost", Access(trust="/no/file"))


# --- a broker that wants credentials ----------------------------------------------------------------


def identities(authority: Authority, issuer: LocalIssuer, folder: Path) -> dict[str, Access]:
    """Every method that a query may name."""
    issue_tokens(issuer, "worker", "issuer's secret", lifetime=60)
    token_file = folder / "token"
    token_file.write_text(token_of("worker"))
    own = authority.issue(common_name="worker")
    trusting = partial(Access, trust=str(authority.file))
    oauth2 = OAuth2Options(
        issuer=issuer.url, client_id="worker", client_secret=CarriedSecret("issuer's secret")
    )
    return {
        "token": trusting(method="token", token=CarriedSecret(token_of("worker"))),
        "token file": trusting(method="token", token_file=str(token_file)),
        "basic": trusting(method="basic", user="worker", password=CarriedSecret(PASSWORD)),
        "tls": trusting(method="tls", certificate=str(own.certificate), key=str(own.key)),
        "oauth2": trusting(method="oauth2", oauth2=oauth2),
    }


@pytest.mark.parametrize("by_http", [False, True], ids=["binary", "https"])
def test_every_identity_sends_and_reads(
    secure_broker: SecureBroker, authority: Authority, issuer: LocalIssuer, tmp_path: Path, by_http: bool
) -> None:
    """The broker is found by its own protocol, or by a lookup over HTTPS with equal credentials."""
    url = secure_broker.https_url if by_http else secure_broker.url
    for name, access in identities(authority, issuer, tmp_path).items():
        topic = f"persistent://public/default/{name.replace(' ', '-')}-{by_http}"
        sender = Sender(url, topic, access)
        sender.send([b"1", b"2"])
        sender.close()
        link = Link(url, access)
        assert link.partitions(topic) == 0
        assert values(link, 2, topic) == [b"1", b"2"]
        link.close()


@pytest.mark.parametrize("by_http", [False, True], ids=["binary", "https"])
def test_wrong_credentials_fail_at_once(
    secure_broker: SecureBroker, authority: Authority, issuer: LocalIssuer, by_http: bool
) -> None:
    issue_tokens(issuer, "worker", "issuer's secret", lifetime=60)
    trusting = partial(Access, trust=str(authority.file))
    wrong = OAuth2Options(issuer=issuer.url, client_id="worker", client_secret=CarriedSecret("wrong"))
    expired = CarriedSecret(token_of("worker", seconds=-10))
    for access, error in (
        (trusting(), AuthenticationError),
        (trusting(method="token", token=expired), AuthenticationError),
        (trusting(method="oauth2", oauth2=wrong), CredentialsFailed),
    ):
        link = Link(secure_broker.https_url if by_http else secure_broker.url, access)
        with pytest.raises(error):
            link.topics("public/default")
        link.close()


@pytest.mark.parametrize("by_http", [False, True], ids=["binary", "https"])
def test_a_token_that_the_broker_refuses_is_not_shown_again(
    secure_broker: SecureBroker, authority: Authority, issuer: LocalIssuer, by_http: bool
) -> None:
    """INV-N10: its life is not over by the issuer's word."""
    oauth2 = OAuth2Options(
        issuer=issuer.url, client_id=f"refused-{by_http}", client_secret=CarriedSecret("issuer's secret")
    )
    tokens = [token_of("worker", seconds=-10), token_of("worker")]
    issuer.tokens()
    issuer.answers["/token"] = lambda form: (200, {"access_token": tokens.pop(0), "expires_in": 3600})
    link = Link(
        secure_broker.https_url if by_http else secure_broker.url,
        Access(method="oauth2", oauth2=oauth2, trust=str(authority.file)),
    )
    with pytest.raises(AuthenticationError):
        link.topics("public/default")
    for _ in range(2):
        link.topics("public/default")
    assert tokens == []
    link.close()


def test_tokens_that_expire_while_messages_flow(
    secure_broker: SecureBroker, authority: Authority, issuer: LocalIssuer
) -> None:
    """The broker asks for new ones on the connection, time after time, and stores each message."""
    tokens = [f"{SHORT_LIVED}{number}" for number in range(3)]
    issuer.tokens()
    issuer.answers["/token"] = lambda form: (
        200,
        {"access_token": tokens.pop(0) if tokens else token_of("worker")},
    )
    oauth2 = OAuth2Options(
        issuer=issuer.url, client_id="flow", client_secret=CarriedSecret("issuer's secret")
    )
    access = Access(method="oauth2", oauth2=oauth2, trust=str(authority.file))
    topic = "persistent://public/default/expiring"
    sender = Sender(secure_broker.url, topic, access)
    sent: list[bytes | OutgoingMessage] = [b"first"]
    sender.send(sent)
    connections = sender.connections()
    while tokens:
        sent.append(b"%d" % len(sent))
        sender.send(sent[-1:])
    sent.append(b"last")
    sender.send(sent[-1:])
    assert sender.connections() == connections
    sender.close()
    link = Link(secure_broker.url, access)
    assert values(link, len(sent), topic) == sent
    link.close()


# --- credentials ------------------------------------------------------------------------------------


@contextmanager
def listening() -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a peer, and the first bytes of each connection to it, which it then ends."""
    heard: list[bytes] = []
    over = threading.Event()

    def serve() -> None:
        while True:
            peer, _ = server.accept()
            with peer:
                if over.is_set():
                    return
                heard.append(peer.recv(10_000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"pulsar://127.0.0.1:{server.getsockname()[1]}", heard
        finally:
            over.set()
            socket.create_connection(server.getsockname()).close()
            thread.join(PATIENCE)


def test_a_token_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    access = Access(method="token", token_file=str(file))
    with listening() as (url, heard):
        for token in ("token-one", "token-two"):
            file.write_text(token)
            link = Link(url, access)
            with pytest.raises(LinkTimeout):
                link.partitions(TOPIC, timeout=0.2)
            assert token.encode() in heard[-1]
            link.drop()
    assert b"token-one" not in heard[-1]


def test_a_user_and_the_method_are_told() -> None:
    access = Access(method="basic", user="me", password=CarriedSecret("word"))
    with listening() as (url, heard):
        link = Link(url, access)
        with pytest.raises(LinkTimeout):
            link.partitions(TOPIC, timeout=0.2)
        link.drop()
    assert b"basic" in heard[0]
    assert b"me:word" in heard[0]


def test_a_token_that_cannot_be_read_fails_at_once(broker: OurBroker, tmp_path: Path) -> None:
    link = Link(broker.url, Access(method="token", token_file=str(tmp_path / "token")))
    with pytest.raises(CredentialsFailed, match=r"auth.tokenFile .* No such file"):
        link.partitions(TOPIC)
    link.close()


def test_a_file_that_is_too_long_is_no_token(tmp_path: Path) -> None:
    """Its beginning may be one."""
    file = tmp_path / "token"
    file.write_text("t" * 65_537)
    with pytest.raises(CredentialsFailed, match=r"auth.tokenFile: .*more than 65536 bytes"):
        Access(method="token", token_file=str(file)).credentials()


def test_links_are_shared_by_queries_with_equal_access(broker: OurBroker) -> None:
    one, other = (Access(method="token", token=CarriedSecret(text)) for text in ("one", "other"))
    link = open_link(broker.url, one)
    assert open_link(broker.url, Access(method="token", token=CarriedSecret("one"))) is link
    assert open_link(broker.url, other) is not link
    link.close()
    open_link(broker.url, other).close()
