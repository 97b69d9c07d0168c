"""Our client shows its identity to our broker: tokens, passwords, certificates. Refusals are typed errors."""

import logging
import pickle
import time
import traceback
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_trio import (
    AuthenticationError,
    AuthorizationError,
    Basic,
    Client,
    InvalidConfiguration,
    MutualTls,
    PulsarError,
    Secret,
    TlsConfig,
    Token,
    open_broker,
    open_client,
)
from tests.canary import CANARY
from tests.security.certificates import Authority
from tests.trio.broker.identities import HTPASSWD, KEY, TOPIC, authentication, guarded_broker, token


async def works(client: Client) -> None:
    """Send a message and receive it."""
    async with client.subscribe(TOPIC, "s") as consumer, client.create_producer(TOPIC) as producer:
        await producer.send(b"hello")
        message = await consumer.receive()
        assert message.value == b"hello"
        consumer.acknowledge(message)


async def test_a_token_from_a_text_a_file_and_functions(tmp_path: Path) -> None:
    async def later() -> Secret:
        return Secret(token())

    file = tmp_path / "token"
    file.write_text(token() + "\n")
    async with guarded_broker() as broker:
        for source in (token(), file, lambda: token(), later):
            async with open_client(broker.url, authentication=Token(source)) as client:
                await works(client)


async def test_a_user_with_a_password() -> None:
    async with guarded_broker() as broker:
        async with open_client(broker.url, authentication=Basic("ada", CANARY)) as client:
            await works(client)


async def test_a_certificate_is_the_role(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue(common_name="ada")
    server = authority.server(trust=authority.file)
    async with guarded_broker(tls=server, tls_port=0) as broker:
        assert broker.tls_url is not None
        with_certificate = TlsConfig(trust=authority.file, certificate=files.certificate, key=files.key)
        async with open_client(broker.tls_url, tls=with_certificate, authentication=MutualTls()) as client:
            await works(client)
        with_none = TlsConfig(trust=authority.file)
        async with open_client(broker.tls_url, tls=with_none, authentication=Token(token())) as client:
            await works(client)


@pytest.mark.parametrize(
    "wrong",
    [
        Token(token(seconds=-1)),
        Token(token("")),
        Token("not-a-token"),
        Basic("ada", "wrong"),
        Basic("eve", CANARY),
        None,
    ],
    ids=repr,
)
async def test_wrong_credentials_raise_an_authentication_error(wrong: Token | Basic | None) -> None:
    async with guarded_broker() as broker:
        async with open_client(broker.url, authentication=wrong, operation_timeout=1) as client:
            with pytest.raises(PulsarError) as caught:
                async with client.create_producer(TOPIC):
                    pass
            chain = [caught.value, caught.value.__cause__]
            assert any(isinstance(each, AuthenticationError) for each in chain), chain


async def test_a_client_without_credentials_has_the_anonymous_role() -> None:
    async with guarded_broker(settings={"anonymous_role": "guest"}) as broker:
        async with open_client(broker.url) as client:
            with pytest.raises(AuthorizationError, match="not authorized"):
                async with client.create_producer(TOPIC):
                    pass
        broker.grant("public/default", "guest", "produce", "consume")
        async with open_client(broker.url) as client:
            await works(client)


async def test_a_permission_that_is_missing_raises_an_authorization_error() -> None:
    async with guarded_broker() as broker:
        broker.grant("public/default", "ada", "produce")
        async with open_client(broker.url, authentication=Token(token())) as client:
            async with client.create_producer(TOPIC) as producer:
                await producer.send(b"x")
            with pytest.raises(AuthorizationError, match="Client is not authorized to subscribe"):
                async with client.subscribe(TOPIC, "s"):
                    pass
        async with open_client(broker.url, authentication=Token(token("root"))) as client:
            await works(client)


async def test_a_subscription_of_another_role_raises_an_authorization_error() -> None:
    async with guarded_broker() as broker:
        broker.grant_subscription("public/default", "s", "bob")
        async with open_client(broker.url, authentication=Token(token())) as client:
            with pytest.raises(AuthorizationError, match="Client is not authorized to subscribe"):
                async with client.subscribe(TOPIC, "s"):
                    pass


async def test_an_administrator_of_a_tenant_uses_its_topics() -> None:
    async with guarded_broker() as broker:
        broker.create_tenant("acme", ["boss"])
        broker.create_namespace("acme/orders")
        async with open_client(broker.url, authentication=Token(token("boss"))) as client:
            async with client.create_producer("acme/orders/t") as producer:
                await producer.send(b"x")


async def test_tokens_are_renewed_while_sends_are_in_flight(mock_clock: trio.testing.MockClock) -> None:
    """Every message arrives once and in order on connections that are renewed several times.

    The clock jumps past the end of a token, so a slow machine changes nothing.
    """
    mock_clock.rate = 1
    started, passed = time.time(), trio.current_time()
    asked = 0

    async def fresh() -> str:
        nonlocal asked
        asked += 1
        return token(exp=started + trio.current_time() - passed + 9)

    count = 400
    async with guarded_broker() as broker:
        async with open_client(broker.url, authentication=Token(fresh)) as client:
            async with client.subscribe(TOPIC, "s") as consumer, client.create_producer(TOPIC) as producer:
                links = dict(broker._driver.machine.links)

                async def send() -> None:
                    for number in range(count):
                        await producer.enqueue(b"%d" % number)
                        if number % 10 == 0:
                            await trio.sleep(0.001)
                        if number % 100 == 50:
                            mock_clock.jump(10)
                    await producer.flush()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send)
                    for number in range(count):
                        message = await consumer.receive()
                        assert message.value == b"%d" % number
                        consumer.acknowledge(message)
                assert broker._driver.machine.links == links, "a connection was lost"
    assert asked == 5


@pytest.mark.slow
async def test_a_renewal_that_fails_ends_the_connection_and_the_next_one_works() -> None:
    asked = 0
    again = trio.Event()

    async def sometimes() -> str:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise RuntimeError(CANARY)
        if asked == 3:
            again.set()
        return token(seconds=1 if asked == 1 else None)

    async with guarded_broker(settings={"refresh_interval": 0.2}) as broker:
        async with open_client(broker.url, authentication=Token(sometimes)) as client:
            async with client.create_producer(TOPIC) as producer:
                await producer.send(b"before")
                await again.wait()
                await producer.send(b"after")
    assert asked == 3


# --- the address --------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
async def test_without_authentication_only_loopback_addresses_are_listened_on(host: str) -> None:
    with pytest.raises(InvalidConfiguration, match="allow_unauthenticated=True"):
        async with open_broker(host=host):
            pass
    async with open_broker(host=host, allow_unauthenticated=True) as broker:
        async with open_client(broker.url) as client:
            await works(client)
    async with guarded_broker(host=host):
        pass


async def test_an_authentication_of_the_client_is_none_of_the_broker() -> None:
    with pytest.raises(
        InvalidConfiguration, match="authentication: a BrokerAuthentication or None, not Token"
    ):
        async with open_broker(authentication=Token("x")):  # type: ignore[arg-type]
            pass


# --- canaries -----------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_no_secret_is_in_logs_reprs_exceptions_or_pickles(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The secrets are a token, a wrong token, a password, the hash of a password, and the secret key."""
    caplog.set_level(logging.DEBUG)
    good, expired = token(), token("eve", -5)
    secrets = [good, expired, CANARY, HTPASSWD.partition(":")[2].strip(), KEY.decode()]
    seen: list[str] = []
    settings = authentication()
    seen.append(repr(settings))
    with pytest.raises(TypeError):
        pickle.dumps(settings)
    async with open_broker(authentication=settings) as broker:
        broker.grant("public/default", "ada", "produce", "consume")
        seen += [repr(broker), repr(broker._driver.machine.config)]
        for identity in (Token(good), Token(expired), Token(CANARY), Basic("eve", CANARY)):
            seen.append(repr(identity))
            with pytest.raises(TypeError):
                pickle.dumps(identity)
            async with open_client(broker.url, authentication=identity, operation_timeout=0.5) as client:
                seen.append(repr(client))
                try:
                    await works(client)
                except PulsarError as error:
                    seen += traceback.format_exception(error)
                    seen.append(repr(pickle.dumps(str(error))))
    shown = caplog.text + "".join(seen)
    assert "authentication failed: the credentials have expired" in caplog.text
    assert [secret for secret in secrets if secret in shown] == []
