"""Frames and protobuf texts that lie: the client ends the link, or reads them as they are."""

import pytest

from fuzz.payloads import header, sealed
from fuzz.trees import LENGTH, START_GROUP, varint
from tests.client.script import Script
from tests.fuzz.lying_broker import LIMIT, PRODUCER, held, is_alive, message, subscribed, why_ended


@pytest.mark.parametrize("size", [LIMIT + 10 * 1024 + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_frame_over_the_limit_ends_the_link_before_any_of_it_is_there(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, size.to_bytes(4, "big"))
    assert "over the limit" in why_ended(script)


def test_a_limit_beyond_belief_is_not_believed() -> None:
    """A client may have to hold, and inflate a payload to, as many bytes as a broker announces."""
    script = Script(max_announced_message_size=LIMIT)
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link(max_message_size=2**31 - 1)
    script.feed(link, (LIMIT + 10 * 1024 + 1).to_bytes(4, "big"))
    assert "over the limit" in why_ended(script)


@pytest.mark.parametrize("size", [0, 3, 4])
def test_a_frame_too_small_for_anything(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, size.to_bytes(4, "big") + bytes(8))
    assert not is_alive(script, link)


@pytest.mark.parametrize("size", [100, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1])
def test_a_command_larger_than_its_frame(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, (20).to_bytes(4, "big") + size.to_bytes(4, "big") + bytes(16))
    assert "cannot hold a command" in why_ended(script)


def test_what_is_held_of_a_frame_that_does_not_end_is_one_frame() -> None:
    script, link, _ = subscribed()

    def drip() -> None:
        script.feed(link, (LIMIT + 1000).to_bytes(4, "big") + (10).to_bytes(4, "big"))
        for _ in range(LIMIT // 100):
            script.feed(link, bytes(100))

    now, _ = held(drip)
    assert is_alive(script, link)
    assert now < 4 * LIMIT


def test_a_byte_now_and_then_is_no_sign_of_life() -> None:
    """A peer that never completes a frame is dropped like one that is silent."""
    script, link, _ = subscribed()
    script.feed(link, (1000).to_bytes(4, "big") + (10).to_bytes(4, "big"))
    for _ in range(70):
        script.advance(1.0)
        if not is_alive(script, link):
            break
        script.feed(link, b"x")
    assert not is_alive(script, link)


@pytest.mark.parametrize("deep", [200, 3000])
@pytest.mark.parametrize("wire_type", [LENGTH, START_GROUP])
def test_messages_inside_messages_without_end(wire_type: int, deep: int) -> None:
    """Messages nest in a position, where the schema allows it, and in an unknown field: no stack is
    exhausted."""
    nested = b""
    for _ in range(deep):
        if wire_type == LENGTH:
            nested = b"\x08\x01\x10\x01\x3a" + varint(len(nested)) + nested
        else:
            nested = b"\x9b\x06" + nested + b"\x9c\x06"
    position = b"\x08\x01\x10\x01" + (b"\x3a" + varint(len(nested)) if wire_type == LENGTH else b"") + nested
    body = b"\x08\x00\x12" + varint(len(position)) + position
    command = b"\x08\x09\x4a" + varint(len(body)) + body
    script, link, _ = subscribed()
    script.feed(link, (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command)
    assert not is_alive(script, link)


def test_text_that_is_not_text_is_kept_in_messages() -> None:
    """Properties of a stranger come out as they were, and can be sent on."""
    script, link, consumer = subscribed()
    metadata = header() + b"\x22\x08\x0a\x01\xff\x12\x03a\xc0\x80"
    script.feed(link, message(sealed(metadata, b"x")))
    [delivered] = script.client.take(script.now, consumer, 10)
    [(name, value)] = delivered.properties.items()
    assert name.encode("utf-8", "surrogateescape") == b"\xff"
    assert value.encode("utf-8", "surrogateescape") == b"a\xc0\x80"


def test_text_that_is_not_text_ends_the_link_in_commands() -> None:
    script, link, _ = subscribed()
    command = b"\x08\x0e\x72\x07\x08\x01\x10\x01\x1a\x01\xff"
    script.feed(link, (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command)
    assert "not UTF-8" in why_ended(script)
