"""Subscriptions over HTTP: a look at single messages, and what is refused."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsar_sansio import OutgoingMessage
from pulsar_trio import CompressionType, EmbeddedBroker, open_broker, open_client
from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import Answer, Request

TOPIC = "/admin/v2/persistent/public/default/t"


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0) as running:
        running.create_topic("t")
        running.create_partitioned_topic("p", 2)
        yield running


def ask(broker: EmbeddedBroker, method: str, target: str, body: object = None) -> Answer:
    request = Request.parse(method, target, "application/json")
    request.body = b"" if body is None else json.dumps(body).encode()
    administrator: Any = broker._driver
    return perform(administrator, request)


async def test_a_peek(broker: EmbeddedBroker) -> None:
    """The broker answers with the message's header in HTTP headers and the sent payload as the body."""
    assert ask(broker, "PUT", f"{TOPIC}/subscription/s", "earliest").status == 204
    async with open_client(broker.url) as client:
        async with client.create_producer(
            "t", name="p", batching=None, compression=CompressionType.LZ4
        ) as producer:
            message_id = await producer.send(
                OutgoingMessage(
                    b"payload" * 50,
                    key="ключ",
                    ordering_key=b"o",
                    properties={"a": "b"},
                    event_time=1_500,
                )
            )
        async with client.create_producer("t") as producer:
            await producer.send_many([b"1", b"2"])
    answer = ask(broker, "GET", f"{TOPIC}/subscription/s/position/1")
    assert (answer.status, answer.body) == (200, b"payload" * 50)
    headers = dict(answer.headers)
    publish_time = headers.pop("X-Pulsar-publish-time")
    assert publish_time.endswith("Z")
    assert headers == {
        "X-Pulsar-Message-ID": f"{message_id.ledger_id}:{message_id.entry_id}",
        "X-Pulsar-PROPERTY": '{"a":"b"}',
        "X-Pulsar-Is-Encrypted": "false",
        "X-Pulsar-txn-uncommitted": "false",
        "X-Pulsar-producer-name": "p",
        "X-Pulsar-sequence-id": "0",
        "X-Pulsar-partition-key": r"\u043a\u043b\u044e\u0447",
        "X-Pulsar-partition-key-b64-encoded": "false",
        "X-Pulsar-Base64-ordering-key": "bw==",
        "X-Pulsar-event-time": "1970-01-01T00:00:01.5Z",
        "X-Pulsar-compression": "LZ4",
        "X-Pulsar-uncompressed-size": "350",
    }
    batch = ask(broker, "GET", f"{TOPIC}/subscription/s/position/2")
    assert dict(batch.headers)["X-Pulsar-num-batch-message"] == "2"
    assert dict(batch.headers)["X-Pulsar-batch-size"] == str(len(batch.body) + 10), "as a Java broker counts"
    assert ask(broker, "GET", f"{TOPIC}/subscription/s/position/3").status == 404
    assert ask(broker, "POST", f"{TOPIC}/subscription/s/skip/1").status == 204
    assert ask(broker, "GET", f"{TOPIC}/subscription/s/position/1").body == batch.body


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "t/subscription/s/position/x", None, 404),
        ("GET", "p/subscription/s/position/1", None, 405),
        ("POST", "p/subscription/s/analyzeBacklog", None, 405),
        ("POST", "t/subscription/none/analyzeBacklog", None, 404),
        ("POST", "t/subscription/s/analyzeBacklog", "nowhere", 400),
        ("PUT", "t/subscription/new", {"ledgerId": 0, "entryId": 0, "batchIndex": "x"}, 400),
        ("PUT", "t/subscription/new", {"ledgerId": 0, "entryId": 0, "excluded": 1}, 400),
        ("PUT", "t/subscription/new?replicated=true", "earliest", 501),
        ("POST", "t/subscription/s/expireMessages", {"ledgerId": 0, "entryId": 0, "batchIndex": "x"}, 400),
        ("POST", "t/subscription/s/expireMessages", {"ledgerId": 9, "entryId": 0, "batchIndex": 3}, 409),
        ("POST", "t/subscription/s/expireMessages", "latest", 409),
    ],
)
async def test_refusals(broker: EmbeddedBroker, method: str, path: str, body: object, status: int) -> None:
    for topic in ("t", "p"):
        created = ask(broker, "PUT", f"/admin/v2/persistent/public/default/{topic}/subscription/s", "latest")
        assert created.status == 204
    answer = ask(broker, method, f"/admin/v2/persistent/public/default/{path}", body)
    assert answer.status == status
    assert json.loads(answer.body)["reason"]


@pytest.mark.parametrize("path", ["clearBacklog", "clearBacklog/s", "unsubscribe/s"])
async def test_a_namespace_that_is_not_there(broker: EmbeddedBroker, path: str) -> None:
    assert ask(broker, "POST", f"/admin/v2/namespaces/public/none/{path}").status == 404
    assert ask(broker, "POST", f"/admin/v2/namespaces/public/default/{path}").status == 204
