"""This client against brokers with TLS, tokens, passwords, client certificates and permissions.

One standalone.conf starts our broker and a real Pulsar, and both pass each test.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

from pulsar_trio import (
    Authentication,
    AuthenticationError,
    AuthorizationError,
    Basic,
    CertificateAuthorityUnknown,
    CertificateNameMismatch,
    Client,
    ClientCertificateRefused,
    MutualTls,
    TimedOut,
    TlsConfig,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
    Token,
    open_client,
)
from tests.security.certificates import Authority
from tests.security.secure_pulsar import PASSWORD, SecurePulsar, our_broker, real_pulsar, token_of

_numbers = count()


BROKERS = {"ours": our_broker, "real": real_pulsar}


@pytest.fixture(
    scope="module",
    params=[pytest.param("ours", marks=pytest.mark.slow), pytest.param("real", marks=pytest.mark.real)],
)
def secure(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecurePulsar]:
    with BROKERS[request.param](tmp_path_factory.mktemp("secure")) as pulsar:
        yield pulsar


def new_topic() -> str:
    return f"persistent://public/default/secure-{next(_numbers)}"


async def exchange(url: str, messages: int = 100, **options: Any) -> None:
    """Send messages and receive them in order by one client."""
    topic = new_topic()
    values = [b"%d" % number for number in range(messages)]
    with trio.fail_after(60):
        async with (
            open_client(url, **options) as client,
            client.subscribe(topic, "s", "exclusive") as consumer,
            client.create_producer(topic) as producer,
        ):
            await producer.send_many(values)
            received = [await consumer.receive() for _ in values]
            for message in received:
                consumer.acknowledge(message)
    assert [message.value for message in received] == values


async def test_a_token_over_tls(secure: SecurePulsar) -> None:
    tls = TlsConfig(trust=secure.authority.file)
    await exchange(secure.tls_url, tls=tls, authentication=Token(token_of("worker")))


async def test_a_large_message_over_tls(secure: SecurePulsar) -> None:
    topic = new_topic()
    tls = TlsConfig(trust=secure.authority.file)
    value = bytes(range(256)) * 16_000
    with trio.fail_after(60):
        async with (
            open_client(secure.tls_url, tls=tls, authentication=Token(token_of("worker"))) as client,
            client.subscribe(topic, "s") as consumer,
            client.create_producer(topic) as producer,
        ):
            await producer.send(value)
            assert (await consumer.receive()).value == value


@pytest.mark.parametrize("kind", ["text", "file", "function", "async function"])
async def test_every_source_of_a_token(secure: SecurePulsar, kind: str, tmp_path: Path) -> None:
    text = token_of("worker")
    file = tmp_path / "token"
    file.write_text(text + "\n")

    async def fetched() -> str:
        await trio.lowlevel.checkpoint()
        return text

    source: Any = {"text": text, "file": file, "function": lambda: text, "async function": fetched}[kind]
    await exchange(secure.url, authentication=Token(source))


async def test_a_name_and_password(secure: SecurePulsar) -> None:
    await exchange(secure.url, authentication=Basic("worker", PASSWORD))


async def test_a_client_certificate_is_the_identity(secure: SecurePulsar) -> None:
    own = secure.authority.issue(common_name="worker")
    tls = TlsConfig(trust=secure.authority.file, certificate=own.certificate, key=own.key)
    await exchange(secure.tls_url, tls=tls, authentication=MutualTls())


@pytest.mark.parametrize(
    "identity", [Token(token_of("worker")), Basic("worker", PASSWORD), MutualTls()], ids=repr
)
async def test_each_identity_finds_the_broker_by_https(
    secure: SecurePulsar, identity: Authentication
) -> None:
    """The broker asks HTTP and the binary protocol for the same credentials."""
    own = secure.authority.issue(common_name="worker")
    shown: dict[str, Any] = (
        {"certificate": own.certificate, "key": own.key} if isinstance(identity, MutualTls) else {}
    )
    tls = TlsConfig(trust=secure.authority.file, **shown)
    await exchange(secure.https_url, tls=tls, authentication=identity)


@pytest.mark.parametrize(
    "wrong",
    [None, Token(token_of("worker", key=b"another key of the same length!!")), Basic("worker", "wrong")],
    ids=["none", "another key", "wrong password"],
)
async def test_wrong_credentials_by_https(secure: SecurePulsar, wrong: Authentication | None) -> None:
    tls = TlsConfig(trust=secure.authority.file)
    with pytest.raises(AuthenticationError), trio.fail_after(20):
        async with open_client(secure.https_url, tls=tls, authentication=wrong) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_a_role_without_permission_by_https(secure: SecurePulsar) -> None:
    tls = TlsConfig(trust=secure.authority.file)
    guest = Token(token_of("guest"))
    with pytest.raises(AuthorizationError), trio.fail_after(20):
        async with open_client(secure.https_url, tls=tls, authentication=guest) as client:
            async with client.create_producer(new_topic()):
                pass


@pytest.mark.parametrize(
    "wrong",
    [
        Token(token_of("worker", key=b"another key of the same length!!")),
        Token(token_of("worker", seconds=-10)),
        Token("no.token.at-all"),
        Basic("worker", "wrong"),
        Basic("unknown", PASSWORD),
    ],
    ids=["another key", "expired", "no token", "wrong password", "unknown user"],
)
async def test_wrong_credentials(secure: SecurePulsar, wrong: Authentication) -> None:
    with pytest.raises(AuthenticationError), trio.fail_after(20):
        async with open_client(secure.url, authentication=wrong) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_no_credentials(secure: SecurePulsar) -> None:
    with pytest.raises(AuthenticationError), trio.fail_after(20):
        async with open_client(secure.url) as client, client.create_producer(new_topic()):
            pass


async def test_a_role_without_permission(secure: SecurePulsar) -> None:
    with pytest.raises(AuthorizationError), trio.fail_after(20):
        async with open_client(secure.url, authentication=Token(token_of("stranger"))) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_a_certificate_that_is_not_trusted(secure: SecurePulsar) -> None:
    with pytest.raises(CertificateAuthorityUnknown), trio.fail_after(20):
        async with open_client(secure.tls_url, authentication=Token(token_of("worker"))) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_a_certificate_for_another_name(secure: SecurePulsar, tmp_path: Path) -> None:
    """A relay of bytes at 127.0.0.2, a host that the certificate is not for, stands before the broker."""
    tls = TlsConfig(trust=secure.authority.file)

    async def relay(stream: trio.SocketStream) -> None:
        async def copy(source: trio.SocketStream, target: trio.SocketStream) -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async for data in source:
                    await target.send_all(data)
            both.cancel_scope.cancel()

        broker = await trio.open_tcp_stream("127.0.0.1", secure.tls_port)
        async with stream, broker, trio.open_nursery() as both:
            both.start_soon(copy, stream, broker)
            both.start_soon(copy, broker, stream)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.2")
        nursery.start_soon(trio.serve_listeners, relay, [listener])
        url = f"pulsar+ssl://127.0.0.2:{listener.socket.getsockname()[1]}"
        with pytest.raises(CertificateNameMismatch), trio.fail_after(20):
            async with open_client(url, tls=tls, authentication=Token(token_of("worker"))) as client:
                async with client.create_producer(new_topic()):
                    pass
        nursery.cancel_scope.cancel()


async def test_a_client_certificate_of_another_authority(secure: SecurePulsar, tmp_path: Path) -> None:
    foreign = Authority(tmp_path, "foreign").issue(common_name="worker")
    tls = TlsConfig(trust=secure.authority.file, certificate=foreign.certificate, key=foreign.key)
    with pytest.raises(ClientCertificateRefused), trio.fail_after(20):
        async with open_client(secure.tls_url, tls=tls, authentication=MutualTls()) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_tls_to_the_plain_port(secure: SecurePulsar) -> None:
    url = secure.url.replace("pulsar://", "pulsar+ssl://")
    tls = TlsConfig(trust=secure.authority.file)
    with pytest.raises(TimedOut) as caught, trio.fail_after(20):
        async with open_client(url, tls=tls, operation_timeout=1) as client:
            async with client.create_producer(new_topic()):
                pass
    assert isinstance(caught.value.__cause__, TlsHandshakeEnded)


async def test_the_plain_protocol_to_the_tls_port(secure: SecurePulsar) -> None:
    url = secure.tls_url.replace("pulsar+ssl://", "pulsar://")
    errors = (TimedOut, TlsProtocolMismatch)  # a real Pulsar closes, and ours sends an alert of TLS
    with pytest.raises(errors, match=r"pulsar\+ssl://"), trio.fail_after(20):
        async with open_client(url, operation_timeout=1) as client:
            async with client.create_producer(new_topic()):
                pass


async def test_tokens_that_expire_while_messages_flow(secure: SecurePulsar) -> None:
    """Tokens are valid for two seconds, and the broker looks every second, so it asks for new ones.

    Nothing is lost, doubled or reordered.
    """
    topic = new_topic()
    told = 0

    def fresh() -> str:
        nonlocal told
        told += 1
        return token_of("worker", seconds=2)

    sent = 0
    produced = False
    everything = trio.Event()
    received: list[bytes | None] = []
    async with (
        open_client(secure.url, authentication=Token(fresh)) as client,
        client.subscribe(topic, "s", "exclusive") as consumer,
        client.create_producer(topic) as producer,
    ):

        async def produce() -> None:
            nonlocal sent, produced
            with trio.move_on_after(7):
                while True:
                    with trio.CancelScope(shield=True):
                        await producer.send(b"%d" % sent)
                    sent += 1
                    await trio.sleep(0.01)
            produced = True
            if len(received) == sent:
                everything.set()

        async def consume() -> None:
            async for message in consumer:
                received.append(message.value)
                consumer.acknowledge(message)
                if produced and len(received) == sent:
                    everything.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume)
            await produce()
            with trio.fail_after(20):
                await everything.wait()
            nursery.cancel_scope.cancel()
    assert received == [b"%d" % number for number in range(sent)]
    assert told >= 3


async def test_a_provider_that_is_slow_holds_up_one_link(secure: SecurePulsar) -> None:
    """The provider of the first link hangs, and other links of the client are served meanwhile."""
    hangs = False
    served_meanwhile = trio.Event()

    async def hangs_at_first() -> str:
        nonlocal hangs
        if not hangs:
            hangs = True
            await trio.sleep_forever()
        return token_of("worker")

    async def produce(client: Client, topic: str) -> None:
        async with client.create_producer(topic) as producer:
            await producer.send(b"x")
            served_meanwhile.set()

    options: dict[str, Any] = {"connections_per_broker": 8, "connect_timeout": 60.0, "seed": 5}
    async with open_client(secure.url, authentication=Token(hangs_at_first), **options) as client:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(produce, client, new_topic())
                await served_meanwhile.wait()
                nursery.cancel_scope.cancel()
    assert hangs
