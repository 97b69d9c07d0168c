"""The official client shows its identity to our broker: tokens, passwords, certificates."""

import time
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.canary import CANARY
from tests.official.client import OPERATION_TIMEOUT, in_thread
from tests.security.certificates import Authority
from tests.trio.broker.identities import TOPIC, guarded_broker, token


def identified_client(url: str, authentication: Any, timeout: int = OPERATION_TIMEOUT, **options: Any) -> Any:
    """A silent client with an identity."""
    return pulsar.Client(
        url,
        authentication=authentication,
        operation_timeout_seconds=timeout,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
        **options,
    )


def use(url: str, authentication: Any, timeout: int = OPERATION_TIMEOUT, **options: Any) -> bytes:
    """Send a message and receive it."""
    client = identified_client(url, authentication, timeout, **options)
    try:
        consumer = client.subscribe(TOPIC, "s")
        producer = client.create_producer(TOPIC)
        producer.send(b"hello")
        message = consumer.receive(10_000)
        consumer.acknowledge(message)
        data: bytes = message.data()
        return data
    finally:
        client.close()


async def test_a_token_and_a_password() -> None:
    async with guarded_broker() as broker:
        for identity in (
            pulsar.AuthenticationToken(token()),
            pulsar.AuthenticationToken(lambda: token()),
            pulsar.AuthenticationBasic("ada", CANARY),
        ):
            assert await in_thread(use, broker.url, identity) == b"hello"


@pytest.mark.slow
async def test_wrong_credentials_are_refused() -> None:
    """The client takes the error for one that passes, and tries again until its timeout."""
    async with guarded_broker() as broker:
        for identity in (
            pulsar.AuthenticationToken("x"),
            pulsar.AuthenticationToken(token(seconds=-5)),
            pulsar.AuthenticationBasic("ada", "q"),
            None,
        ):
            with pytest.raises((pulsar.AuthenticationError, pulsar.Timeout)):
                await in_thread(use, broker.url, identity, 1)
        assert broker.topics() == []


async def test_a_permission_that_is_missing_is_an_authorization_error() -> None:
    async with guarded_broker() as broker:
        identity = pulsar.AuthenticationToken(token("eve"))
        with pytest.raises(pulsar.AuthorizationError):
            await in_thread(use, broker.url, identity)
        broker.grant("public/default", "eve", "produce")
        with pytest.raises(pulsar.AuthorizationError):
            await in_thread(use, broker.url, identity)
        broker.grant("public/default", "eve", "produce", "consume")
        assert await in_thread(use, broker.url, identity) == b"hello"


async def test_a_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue(common_name="ada")
    other = authority.issue(common_name="eve")
    server = authority.server(trust=authority.file)
    async with guarded_broker(tls=server, tls_port=0) as broker:
        assert broker.tls_url is not None

        async def shown(certificate: Path, key: Path) -> bytes:
            return await in_thread(
                use,
                str(broker.tls_url),
                pulsar.AuthenticationTLS(str(certificate), str(key)),
                tls_trust_certs_file_path=str(authority.file),
            )

        assert await shown(files.certificate, files.key) == b"hello"
        with pytest.raises(pulsar.AuthorizationError):
            await shown(other.certificate, other.key)


async def test_a_token_over_http_lookup_and_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = pulsar.AuthenticationToken(token())
    async with guarded_broker(tls=authority.server(), tls_port=0, http_port=0) as broker:
        assert await in_thread(use, str(broker.admin_url), identity) == b"hello"
        with pytest.raises(pulsar.PulsarException):
            await in_thread(use, str(broker.admin_url), pulsar.AuthenticationToken("x"))
        trusting: dict[str, Any] = {"tls_trust_certs_file_path": str(authority.file)}
        assert await in_thread(use, str(broker.tls_url), identity, **trusting) == b"hello"


@pytest.mark.slow
async def test_tokens_are_renewed_while_the_official_client_sends() -> None:
    """Its connection outlives several tokens, and every message arrives once and in order."""
    asked = 0

    def fresh() -> str:
        nonlocal asked
        asked += 1
        return token(seconds=2)

    def stream(url: str, count: int) -> list[bytes]:
        client = identified_client(url, pulsar.AuthenticationToken(fresh))
        try:
            consumer = client.subscribe(TOPIC, "s")
            producer = client.create_producer(TOPIC)
            found = []
            for number in range(count):
                producer.send(b"%d" % number)
                message = consumer.receive(10_000)
                consumer.acknowledge(message)
                found.append(message.data())
                time.sleep(0.03)
            return found
        finally:
            client.close()

    async with guarded_broker() as broker:
        assert await in_thread(stream, broker.url, 150) == [b"%d" % number for number in range(150)]
    assert asked >= 3
