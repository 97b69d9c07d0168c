"""Client and broker over TLS: messages arrive, and each wrong certificate has an error of its own."""

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_trio import (
    CertificateAuthorityUnknown,
    CertificateExpired,
    CertificateNameMismatch,
    CertificateSelfSigned,
    ClientCertificateRefused,
    EmbeddedBroker,
    InvalidConfiguration,
    InvalidServiceUrl,
    MutualTls,
    ServerTls,
    TimedOut,
    TlsConfig,
    TlsError,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
    open_broker,
    open_client,
)
from pulsar_trio.broker import server
from tests.patience import PATIENCE
from tests.security.certificates import Authority, self_signed

TOPIC = "persistent://public/default/tls"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def broker_with(tls: ServerTls) -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(tls=tls, tls_port=0) as broker:
        yield broker


async def exchange(url: str, tls: TlsConfig, count: int = 1, size: int = 10) -> None:
    """Send messages and receive them again by one client."""
    payloads = [number.to_bytes(4, "big") * (size // 4 + 1) for number in range(count)]
    async with (
        open_client(url, tls=tls, operation_timeout=10) as client,
        client.subscribe(TOPIC, "s") as consumer,
        client.create_producer(TOPIC) as producer,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send_many, payloads)
            received = [await consumer.receive() for _ in payloads]
        for message in received:
            consumer.acknowledge(message)
    assert [message.value for message in received] == payloads


async def refused(url: str, tls: TlsConfig, **options: float) -> BaseException:
    """Return the error of a client that cannot connect."""
    options = {"operation_timeout": 10, **options}
    with pytest.raises((TlsError, TimedOut)) as caught:
        async with open_client(url, tls=tls, **options) as client:  # type: ignore[arg-type]
            async with client.create_producer(TOPIC):
                pass
    return caught.value


async def test_messages_of_every_size_arrive_encrypted(authority: Authority) -> None:
    """Rule CFG-011."""
    async with broker_with(authority.server()) as broker:
        assert broker.tls_url is not None
        await exchange(broker.tls_url, TlsConfig(trust=authority.file), count=1000)
        await exchange(broker.tls_url, TlsConfig(trust=authority.file), count=20, size=1_000_000)


async def test_trust_is_a_file_a_folder_a_text_or_a_context(authority: Authority, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority.file))
    async with broker_with(authority.server()) as broker:
        assert broker.tls_url is not None
        for tls in (
            TlsConfig(trust=str(authority.file)),
            TlsConfig(trust=authority.text),
            TlsConfig(context=context),
        ):
            await exchange(broker.tls_url, tls)


async def test_the_system_does_not_know_the_authority(authority: Authority) -> None:
    """Rules CFG-012 and CFG-013."""
    async with broker_with(authority.server()) as broker:
        assert broker.tls_url is not None
        error = await refused(broker.tls_url, TlsConfig())
    assert isinstance(error, CertificateAuthorityUnknown)
    assert "tls.trust" in str(error)


async def test_a_certificate_for_another_host(authority: Authority) -> None:
    """Rule CFG-014."""
    async with broker_with(authority.server("elsewhere.example")) as broker:
        assert broker.tls_url is not None
        tls = TlsConfig(trust=authority.file)
        error = await refused(broker.tls_url, tls)
        assert isinstance(error, CertificateNameMismatch)
        assert "127.0.0.1" in str(error)
        await exchange(broker.tls_url, TlsConfig(trust=authority.file, insecure_accept_any_host=True))
        await exchange(broker.tls_url, TlsConfig(insecure_accept_any_certificate=True))


@pytest.mark.parametrize("days", [(-10, -1), (1, 10)], ids=["expired", "not yet valid"])
async def test_a_certificate_out_of_its_time(authority: Authority, days: tuple[int, int]) -> None:
    now = datetime.now(UTC)
    begins, ends = (now + timedelta(days=day) for day in days)
    files = authority.issue("127.0.0.1", begins=begins, ends=ends)
    async with broker_with(ServerTls(files.certificate, files.key)) as broker:
        assert broker.tls_url is not None
        error = await refused(broker.tls_url, TlsConfig(trust=authority.file))
    assert isinstance(error, CertificateExpired)


async def test_a_port_without_tls(authority: Authority) -> None:
    """A broker that stops does the same, so the client tries again until the time is over."""
    async with open_broker() as broker:
        url = broker.url.replace("pulsar://", "pulsar+ssl://")
        error = await refused(url, TlsConfig(trust=authority.file), operation_timeout=0.5)
    assert isinstance(error, TimedOut)
    assert isinstance(error.__cause__, TlsHandshakeEnded)


async def test_a_port_with_tls_and_a_client_without(authority: Authority) -> None:
    async with broker_with(authority.server()) as broker:
        assert broker.tls_url is not None
        url = broker.tls_url.replace("pulsar+ssl://", "pulsar://")
        async with open_client(url, operation_timeout=10) as client:
            with pytest.raises(TlsProtocolMismatch):
                async with client.create_producer(TOPIC):
                    pass


async def test_a_client_certificate_is_required(authority: Authority, tmp_path: Path) -> None:
    server = authority.server(trust=authority.file, require_client_certificate=True)
    own = authority.issue(common_name="worker")
    foreign = Authority(tmp_path, "foreign").issue(common_name="worker")
    async with broker_with(server) as broker:
        assert broker.tls_url is not None
        trust = authority.file
        assert isinstance(await refused(broker.tls_url, TlsConfig(trust=trust)), ClientCertificateRefused)
        wrong = TlsConfig(trust=trust, certificate=foreign.certificate, key=foreign.key)
        assert isinstance(await refused(broker.tls_url, wrong), ClientCertificateRefused)
        await exchange(broker.tls_url, TlsConfig(trust=trust, certificate=own.certificate, key=own.key))


async def test_the_broker_s_log_names_the_client_that_is_refused_and_why(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The client has no name to be verified, so its address is its name."""
    caplog.set_level("INFO", logger="pulsar_trio.broker")
    server = authority.server(trust=authority.file, require_client_certificate=True)
    now, trust = datetime.now(UTC), authority.file
    foreign = Authority(tmp_path, "foreign")
    unknown = foreign.issue(common_name="worker")
    expired = authority.issue(common_name="worker", begins=now - timedelta(9), ends=now - timedelta(1))
    async with broker_with(server) as broker:
        assert broker.tls_url is not None
        for files in (unknown, expired):
            await refused(
                broker.tls_url, TlsConfig(trust=trust, certificate=files.certificate, key=files.key)
            )
        await refused(broker.tls_url, TlsConfig(trust=trust))
        await refused(broker.tls_url, TlsConfig(trust=foreign.file))
    said = [re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", record.getMessage()) for record in caplog.records]
    certificate = "the certificate of the client at ADDRESS is refused: "
    assert [text for text in said if "client at" in text] == [
        f"{certificate}unable to get local issuer certificate "
        "(add its authority to the trust store (tls.trust))",
        f"{certificate}certificate has expired (have it renewed)",
        "the client at ADDRESS shows no certificate, and this side requires one "
        "(of an authority in tls.trust): PEER_DID_NOT_RETURN_A_CERTIFICATE",
        "the client at ADDRESS does not accept the certificate of this side: TLSV1_ALERT_UNKNOWN_CA",
    ]


async def test_files_that_change_are_used_from_the_next_connection_on(
    authority: Authority, tmp_path: Path
) -> None:
    """The broker gets a certificate of another authority, and the client the trust in it."""
    other = Authority(tmp_path, "other")
    served, trusted = authority.issue("127.0.0.1"), tmp_path / "trusted.pem"
    trusted.write_text(authority.text)
    async with (
        broker_with(ServerTls(served.certificate, served.key)) as broker,
        open_client(str(broker.tls_url), tls=TlsConfig(trust=trusted), operation_timeout=10) as client,
    ):
        async with client.create_producer(TOPIC) as producer:
            await producer.send(b"before")
            renewed = other.issue("127.0.0.1")
            served.key.write_bytes(renewed.key.read_bytes())
            served.certificate.write_bytes(renewed.certificate.read_bytes())
            trusted.write_text(other.text)
            client.update_service_url(str(broker.tls_url))  # all connections are made anew
            await producer.send(b"after")


async def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    with pytest.raises(InvalidConfiguration, match="No such file"):
        async with open_client("pulsar+ssl://localhost", tls=TlsConfig(trust=nothing)):
            pass


async def test_options_that_contradict_each_other() -> None:
    with pytest.raises(InvalidConfiguration, match="MutualTls needs"):
        async with open_client("pulsar+ssl://localhost", authentication=MutualTls()):
            pass
    with pytest.raises(InvalidConfiguration, match="need tls"):
        async with open_broker(tls_port=0):
            pass
    with pytest.raises(InvalidServiceUrl, match="sni_proxy"):
        async with open_client("pulsar+ssl://localhost", sni_proxy="pulsar://proxy:1"):
            pass


async def test_a_self_signed_certificate(tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    async with broker_with(ServerTls(files.certificate, files.key)) as broker:
        url = str(broker.tls_url)
        assert isinstance(await refused(url, TlsConfig()), CertificateSelfSigned)
        await exchange(url, TlsConfig(trust=files.certificate))


async def test_stalled_handshakes_are_bounded_and_end(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the broker closes connections at once; the stalled ones end by time."""
    monkeypatch.setattr(server, "MAX_HANDSHAKES", 2)
    monkeypatch.setattr(server, "HANDSHAKE_TIME", 0.5)
    async with broker_with(authority.server()) as broker:
        assert broker.tls_url is not None
        port = int(broker.tls_url.rpartition(":")[2])
        stalled = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
        await trio.testing.wait_all_tasks_blocked(0.05)
        refused_stream = await trio.open_tcp_stream("127.0.0.1", port)
        with trio.fail_after(PATIENCE):
            assert await ended(refused_stream)
            assert broker._driver._handshakes == 2
            for stream in stalled:
                assert await ended(stream)
        await exchange(broker.tls_url, TlsConfig(trust=authority.file))
        assert broker._driver._handshakes == 0


async def ended(stream: trio.SocketStream) -> bool:
    """Wait for the end of a connection over which nothing comes."""
    try:
        return not await stream.receive_some(1)
    except trio.BrokenResourceError:
        return True
    finally:
        await stream.aclose()
