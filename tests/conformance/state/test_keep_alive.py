"""Any frame of the broker counts as life, one of an unknown kind too."""

import pytest

from pulsar_sansio.conformance import Conversation, Side
from pulsar_sansio.wire import encode_ping, encode_pong, proto

UNKNOWN_KIND = 200


@pytest.mark.parametrize("answer", [encode_pong(), None])
def test_a_client_may_ask_again_after_any_frame(answer: bytes | None) -> None:
    conversation = Conversation(checks=["INV-N7"])
    assert conversation.feed(Side.CLIENT, encode_ping()) == []
    if answer is None:
        assert conversation.frame(Side.BROKER, UNKNOWN_KIND, None) == []
    else:
        assert conversation.feed(Side.BROKER, answer) == []
    assert conversation.feed(Side.CLIENT, encode_ping()) == []


def test_a_client_that_heard_nothing_does_not_ask_again() -> None:
    conversation = Conversation(checks=["INV-N7"])
    assert conversation.feed(Side.CLIENT, encode_ping()) == []
    found = conversation.frame(Side.CLIENT, proto.BaseCommand.PING, proto.CommandPing())
    assert [violation.rule_id for violation in found] == ["INV-N7"]
