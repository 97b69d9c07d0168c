"""Clients with a service URL of http:// or https://, against our broker's administration port."""

import json
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from pulsar_trio import (
    AuthenticationError,
    BrokerAddressRefused,
    CertificateAuthorityUnknown,
    EmbeddedBroker,
    TimedOut,
    TlsConfig,
    Token,
    TopicNotFound,
    TopicsPattern,
    open_broker,
    open_client,
)
from tests.security.certificates import Authority

TOPIC = "persistent://public/default/found over http"


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0) as running:
        yield running


def web(broker: EmbeddedBroker) -> str:
    assert broker.admin_url is not None
    return broker.admin_url


async def test_messages_of_a_topic_that_is_found_over_http(broker: EmbeddedBroker) -> None:
    async with (
        open_client(web(broker)) as client,
        client.subscribe(TOPIC, "s") as consumer,
        client.create_producer(TOPIC) as producer,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        assert message.value == b"x"
        consumer.acknowledge(message)
        await consumer.flush()
        broker.unload(TOPIC)
        await producer.send(b"y")
        assert (await consumer.receive()).value == b"y"
        assert client.statistics().links == 1


async def test_partitions_topics_and_patterns(broker: EmbeddedBroker) -> None:
    broker.create_partitioned_topic("persistent://public/default/p", 40)
    async with open_client(web(broker)) as client:
        assert len(await client.partitions("p")) == 40
        async with (
            client.create_producer("p") as producer,
            client.subscribe(TopicsPattern("public/default/p.*"), "s") as consumer,
        ):
            await producer.send_many([b"%d" % number for number in range(200)])
            received = {(await consumer.receive()).value for _ in range(200)}
        assert len(received) == 200
        assert await client.topics() == ["persistent://public/default/p"]


async def test_a_topic_that_is_not_there_and_not_created(broker: EmbeddedBroker) -> None:
    broker.create_namespace("public/closed")
    broker.set_policy("public/closed", "auto_topic_creation", False)
    async with open_client(web(broker)) as client:
        with pytest.raises(TopicNotFound):
            async with client.create_producer("public/closed/t"):
                pass


async def test_by_https_everything_is_encrypted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with open_broker(tls=authority.server(), tls_port=0, https_port=0) as broker:
        assert broker.admin_url_tls is not None
        async with (
            open_client(broker.admin_url_tls, tls=TlsConfig(trust=authority.file)) as client,
            client.subscribe(TOPIC, "s") as consumer,
            client.create_producer(TOPIC) as producer,
        ):
            await producer.send(b"x")
            assert (await consumer.receive()).value == b"x"
        async with open_client(broker.admin_url_tls, tls=TlsConfig()) as client:
            with pytest.raises(CertificateAuthorityUnknown):
                async with client.create_producer(TOPIC):
                    pass


async def test_the_broker_names_all_of_its_urls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server()
    async with open_broker(tls=tls, tls_port=0, http_port=0, https_port=0) as broker:
        url = f"{web(broker)}/lookup/v2/topic/persistent/public/default/t"
        answer = await trio.to_thread.run_sync(lambda: urllib.request.urlopen(url).read())
        assert json.loads(answer) == {
            "brokerUrl": broker.url,
            "brokerUrlTls": broker.tls_url,
            "brokerUrlSsl": broker.tls_url,
            "nativeUrl": broker.url,
            "httpUrl": broker.admin_url,
            "httpUrlTls": broker.admin_url_tls,
        }


async def test_the_service_url_changes_between_http_and_the_binary_protocol(broker: EmbeddedBroker) -> None:
    async with open_client(web(broker)) as client, client.create_producer(TOPIC) as producer:
        await producer.send(b"1")
        client.update_service_url(broker.url)
        await producer.send(b"2")
        client.update_service_url(web(broker))
        await producer.send(b"3")


async def test_a_host_that_is_not_there_is_the_cause_of_the_timeout() -> None:
    async with open_client("http://127.0.0.1:1", operation_timeout=0.3) as client:
        with pytest.raises(TimedOut, match=re.escape("127.0.0.1:1")):
            async with client.create_producer(TOPIC):
                pass


# --- a web server of the test's own ------------------------------------------------------------------


@asynccontextmanager
async def web_server(answer: bytes, requests: list[bytes]) -> AsyncIterator[str]:
    """Answer every request so; `requests` gets each of them."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                received = await stream.receive_some()
                if not received:
                    return
                request += received
            requests.append(request)
            await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        listen = partial(trio.serve_tcp, serve, 0, host="127.0.0.1")
        (listener,) = await nursery.start(listen)
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


def refusal(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "", ""]).encode()


async def test_a_token_is_sent_and_may_be_refused() -> None:
    requests: list[bytes] = []
    async with web_server(refusal("401 Unauthorized"), requests) as url:
        async with open_client(url, authentication=Token(lambda: "abc.def")) as client:
            with pytest.raises(AuthenticationError):
                async with client.create_producer(TOPIC):
                    pass
    assert b"\r\nAuthorization: Bearer abc.def\r\n" in requests[0]


async def test_a_redirect_does_not_take_the_token_elsewhere() -> None:
    requests: list[bytes] = []
    location = "Location: http://localhost.example:1/"
    async with web_server(refusal("307 Temporary Redirect", location), requests) as url:
        async with open_client(url, authentication=Token("abc")) as client:
            with pytest.raises(BrokerAddressRefused):
                async with client.create_producer(TOPIC):
                    pass
    assert len(requests) == 1
