"""A link whose end has come still writes its final bytes, and the answers that wait to be written have a
limit."""

import pytest

from pulsar_sansio.client.connecting import connection as module
from pulsar_sansio.client.outputs import Connect, Disconnect, Transmit
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.wire import encode_command, encode_ping, encode_pong, proto
from tests.client.script import Command, Script

SPEC = ProducerSpec(topic="demo")


def test_what_was_written_is_gone_once_the_world_says_that_the_link_is() -> None:
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.client.connected(script.now, link)
    script.client.receive_data(script.now, link, bytes(8))
    script.client.disconnected(script.now, link, "closed by this end")
    assert script.client.data_to_send(link) == []


def test_nothing_behind_the_command_that_ends_a_link_is_answered() -> None:
    script = Script()
    _, link = script.ready_producer()
    challenge = encode_command(Command.AUTH_CHALLENGE, proto.CommandAuthChallenge())
    script.feed(link, challenge, encode_ping())
    (ended,) = [number for number, said in enumerate(script.history) if isinstance(said, Disconnect)]
    assert Transmit(link) not in script.history[ended:]


def test_answers_that_were_taken_do_not_count_for_those_that_may_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a limit, a broker that goes on asking and does not read would fill the memory."""
    script = Script()
    _, link = script.ready_producer()
    monkeypatch.setattr(module, "MAX_UNREAD_ANSWERS", 2 * len(encode_pong()))
    for _ in range(3):
        script.feed(link, encode_ping() * 2)
        assert link in script.client.links
    script.feed(link, encode_ping() * 3)
    assert link not in script.client.links
