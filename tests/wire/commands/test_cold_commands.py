"""Commands that protobuf parses: the decoder refuses values that protobuf lets pass and no caller should
get."""

from typing import Any

import pytest
from google.protobuf.message import Message

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import FrameDecoder, encode_command, max_frame_size, proto

Command = proto.BaseCommand


def subscribe(**fields: Any) -> proto.CommandSubscribe:
    known: dict[str, Any] = {"topic": "t", "subscription": "s", "subType": 0, "consumer_id": 1}
    return proto.CommandSubscribe(request_id=300, **known, **fields)


def schema(**fields: Any) -> dict[str, Any]:
    return {"name": "n", "type": 0, **fields}


@pytest.mark.parametrize(
    ("number", "command", "field"),
    [
        (Command.ERROR, proto.CommandError(request_id=1, error=proto.UnknownError, message="??"), "message"),
        (Command.SUBSCRIBE, subscribe(consumer_name="a??"), "consumer_name"),
        (
            Command.SUBSCRIBE,
            subscribe(metadata=[{"key": "a", "value": ""}, {"key": "??", "value": ""}]),
            "key",
        ),
        (
            Command.SUBSCRIBE,
            subscribe(schema=schema(schema_data=b"", properties=[{"key": "a", "value": "??"}])),
            "value",
        ),
        (
            Command.WATCH_TOPIC_UPDATE,
            proto.CommandWatchTopicUpdate(watcher_id=1, new_topics=["a", "??"], topics_hash="h"),
            "new_topics",
        ),
    ],
)
def test_text_that_is_not_utf8_is_refused_wherever_it_stands(
    number: int, command: Message, field: str
) -> None:
    frame = encode_command(number, command)
    assert frame.count(b"??") == 1
    with pytest.raises(FrameError, match=rf"\.{field} is not UTF-8"):
        FrameDecoder().decode(frame.replace(b"??", b"\xc3\x28"), 0, max_frame_size())


def test_bytes_and_large_numbers_are_no_text() -> None:
    command = subscribe(schema=schema(schema_data=b"\xc3\x28"), consumer_name="naïve")
    found = FrameDecoder().decode(encode_command(Command.SUBSCRIBE, command), 0, max_frame_size())
    assert found is not None
    assert found[1] == command
