"""The blocking driver over TLS and with credentials: each connection verifies, and reads a token anew."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_sansio import (
    EARLIEST,
    CertificateAuthorityUnknown,
    CertificateNameMismatch,
    ClientCertificateRefused,
    CredentialsFailed,
    InvalidConfiguration,
)
from pulsar_spark.access import Access, CarriedSecret
from pulsar_spark.errors import LinkTimeout
from pulsar_spark.link import Link, open_link
from tests.patience import PATIENCE
from tests.security.certificates import Authority, Files
from tests.spark.brokers import OurBroker
from tests.spark.sending import Sender

TOPIC = "persistent://public/default/tls"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


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


def values(link: Link, count: int) -> list[bytes]:
    """The payloads of the first messages of the topic."""
    found: list[bytes] = []

    def take() -> bool | None:
        found.extend(each.data for each in link.client.take(time.monotonic_ns(), reader.handle, 100))
        return len(found) >= count or None

    with link.reading(TOPIC, EARLIEST) as reader:
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


def test_a_file_that_cannot_be_used_is_named() -> None:
    with pytest.raises(InvalidConfiguration, match="tls: trust '/no/file': No such file"):
        Link("pulsar+ssl://localhost", Access(trust="/no/file"))


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


def test_links_are_shared_by_queries_with_equal_access(broker: OurBroker) -> None:
    one, other = (Access(method="token", token=CarriedSecret(text)) for text in ("one", "other"))
    link = open_link(broker.url, one)
    assert open_link(broker.url, Access(method="token", token=CarriedSecret("one"))) is link
    assert open_link(broker.url, other) is not link
    link.close()
    open_link(broker.url, other).close()
