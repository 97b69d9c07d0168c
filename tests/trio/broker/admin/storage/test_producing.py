"""Producing over HTTP, without a socket: requests that make no sense, and types that are refused by name."""

from typing import Any

import pytest

from pulsar_sansio import BrokerConfig
from tests.broker.peer import TOPIC, SubType
from tests.trio.broker.admin.asking import Administrator

PATH = "/topics/persistent/public/default/t"
INT8 = '{"type":"INT8","schema":""}'


@pytest.fixture
def broker() -> Administrator:
    administrator = Administrator()
    assert administrator.ask("PUT", "/persistent/public/default/t") == (204, None)
    return administrator


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"messages": None}, 400, "messages"),
        ({"messages": [1]}, 400, "messages"),
        ({"messages": [{}]}, 400, "payload"),
        ({"messages": [{"payload": 1}]}, 400, "payload"),
        ({"messages": [{"payload": "\ud800"}]}, 400, "UTF-8"),
        ({"messages": [{"payload": "x", "key": 1}]}, 400, "key"),
        ({"messages": [{"payload": "x", "key": "\ud800"}]}, 200, ""),
        ({"messages": [{"payload": "x", "properties": [1]}]}, 400, "properties"),
        ({"messages": [{"payload": "x", "sequenceId": -1}]}, 400, "sequenceId"),
        ({"messages": [{"payload": "x", "deliverAfterMs": 2**63 - 2}]}, 400, "deliverAfterMs"),
        ({"messages": [{"payload": "x"}], "producerName": 1}, 400, "producerName"),
        ({"messages": [{"payload": "x"}], "producerName": "\ud800"}, 200, ""),
        ({"messages": [{"payload": "x"}], "valueSchema": "{"}, 400, "schema"),
        ({"messages": [{"payload": "x"}], "valueSchema": INT8}, 400, "whole number"),
        ({"messages": [{"payload": "128"}], "valueSchema": INT8}, 400, "whole number"),
        ({"messages": [{"payload": "x"}], "valueSchema": '{"type":"AVRO"}'}, 501, "AVRO"),
        ({"messages": [{"payload": "x"}], "keySchema": '{"type":"STRING"}'}, 501, "keySchema"),
        ({"messages": [{"payload": "x"}], "schemaVersion": 3}, 404, "version 3"),
    ],
)
def test_what_cannot_be_published(
    broker: Administrator, fields: dict[str, Any], status: int, words: str
) -> None:
    """A text that has no UTF-8 form is found when the message is encoded: the result tells it."""
    found, answer = broker.ask("POST", PATH, fields)
    assert found == status
    if status == 200:
        assert [each["errorCode"] for each in answer["messagePublishResults"]] == [2]
    else:
        assert words in answer
    assert broker.machine.topic_administration.internal_stats(TOPIC)["numberOfEntries"] == 0


def test_topics_and_partitions_that_are_not_there(broker: Administrator) -> None:
    body = {"messages": [{"payload": "x"}]}
    assert broker.ask("POST", f"{PATH}-none/partitions/0", body)[0] == 404
    assert broker.ask("POST", f"{PATH}/partitions/0", body)[0] == 404
    assert broker.ask("PUT", "/non-persistent/public/default/v") == (204, None)
    assert broker.ask("POST", "/topics/non-persistent/public/default/v", body)[0] == 501


def test_a_message_whose_time_has_not_come(broker: Administrator) -> None:
    peer = broker.world.connect()
    peer.subscribe(SubType.Shared)
    messages = [{"payload": "late", "deliverAfterMs": 10_000}, {"payload": "at once"}]
    assert broker.ask("POST", PATH, {"messages": messages})[0] == 200
    assert peer.payloads() == [b"at once"]
    broker.world.advance(11.0)
    assert peer.payloads() == [b"late"]


def test_messages_survive_a_restart_and_producers_go_on(broker: Administrator) -> None:
    """Deduplication does not see messages that no producer sent."""
    assert broker.ask("POST", "/persistent/public/default/t/deduplicationEnabled", True) == (204, None)
    for _ in range(2):
        _, answer = broker.ask("POST", PATH, {"messages": [{"payload": "x"}], "producerName": "a"})
        assert [each["errorCode"] for each in answer["messagePublishResults"]] == [0]
    peer = broker.world.connect()
    peer.producer(name="a")
    peer.publish(b"y", 0, producer_name="a")
    assert [entry for _, _, entry in peer.receipts()] == [2]
    broker.world.start()
    peer = broker.world.connect()
    peer.subscribe()
    assert peer.payloads() == [b"x", b"x", b"y"]


def test_the_policies_of_the_topic_hold(broker: Administrator) -> None:
    """A quota, a size and a broker without room refuse these messages as those of producers."""
    assert broker.ask("POST", "/persistent/public/default/t/maxMessageSize", 5) == (204, None)
    _, answer = broker.ask("POST", PATH, {"messages": [{"payload": "123456"}, {"payload": "12345"}]})
    assert [each["errorCode"] for each in answer["messagePublishResults"]] == [2, 0]
    assert "Exceed maximum message size" in answer["messagePublishResults"][0]["errorMsg"]
    assert broker.ask("PUT", "/persistent/public/default/t/subscription/s", "earliest") == (204, None)
    quota = {"limitSize": 0, "policy": "producer_exception"}
    assert broker.ask("POST", "/persistent/public/default/t/backlogQuota", quota) == (204, None)
    _, answer = broker.ask("POST", PATH, {"messages": [{"payload": "1"}]})
    assert [each["errorCode"] for each in answer["messagePublishResults"]] == [2]


def test_a_producer_registers_no_schema_that_the_policies_forbid(broker: Administrator) -> None:
    """An administrator may, by `POST …/schema`."""
    assert broker.ask("POST", PATH, {"messages": [{"payload": "a"}]})[0] == 200
    assert broker.ask("POST", "/namespaces/public/default/isAllowAutoUpdateSchema", False) == (204, None)
    body = {"valueSchema": '{"type":"INT32"}', "messages": [{"payload": "1"}]}
    assert broker.ask("POST", PATH, body)[0] == 409
    assert broker.ask("POST", PATH, {"messages": [{"payload": "b"}]})[0] == 200, "a version that is there"


def test_a_broker_without_room() -> None:
    broker = Administrator(BrokerConfig(web_service_url="http://127.0.0.1:8080", max_stored_bytes=1))
    assert broker.ask("PUT", "/persistent/public/default/t/subscription/s") == (204, None)
    body = {"messages": [{"payload": "1"}, {"payload": "2"}]}
    _, answer = broker.ask("POST", PATH, body)
    assert [each["errorCode"] for each in answer["messagePublishResults"]] == [0, 2]
