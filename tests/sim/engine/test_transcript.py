"""Frames as lines of text: every field that is set, and neither payloads nor credentials."""

from typing import Any

import pytest

from pulsar_sansio.wire import MessageCommand, Send, proto
from pulsar_sim.engine.transcript import describe
from tests.canary import CANARY

Type = proto.BaseCommand


def connect() -> proto.CommandConnect:
    return proto.CommandConnect(
        client_version="c", auth_method_name="token", auth_data=CANARY.encode(), protocol_version=21
    )


def subscribed() -> proto.CommandSubscribe:
    command = proto.CommandSubscribe(topic="t", subscription="s", subType=proto.CommandSubscribe.Shared)
    command.metadata.add(key="a", value="b")
    command.metadata.add(key="c", value="d")
    command.start_message_id.ledgerId = 3
    command.start_message_id.entryId = 0
    return command


@pytest.mark.parametrize(
    ("kind", "command", "line"),
    [
        (Type.PING, None, "PING"),
        (Type.PING, proto.CommandPing(), "PING"),
        (999, None, "type 999"),
        (
            Type.CONNECT,
            connect(),
            "CONNECT client_version=c auth_data=*** protocol_version=21 auth_method_name=token",
        ),
        (
            Type.SUBSCRIBE,
            subscribed(),
            "SUBSCRIBE topic=t subscription=s subType=1 start_message_id=[{ledgerId=3 entryId=0}] "
            "metadata=[{key=a value=b}, {key=c value=d}]",
        ),
    ],
)
def test_a_frame_is_one_line(kind: int, command: Any, line: str) -> None:
    assert describe(kind, command) == line


def test_of_a_payload_only_its_size_is_shown() -> None:
    """A field that is not set is left out, and a number that is 0 is not."""
    message = MessageCommand(7, 1, 0, payload=b"secret")
    assert describe(Type.MESSAGE, message) == (
        "MESSAGE consumer_id=7 ledger_id=1 entry_id=0 partition=-1 batch_index=-1 redelivery_count=0 +6 bytes"
    )
    text = describe(Type.SEND, Send(0, 4, payload=b"secret"))
    assert text.startswith("SEND producer_id=0 sequence_id=4 ")
    assert text.endswith(" +6 bytes")
    assert "secret" not in text
