"""Bytes that fuzzers found: the smallest of each kind. (What they are replayed on is in `test_corpus`.)"""

import pytest

from fuzz.targets import message_id
from pulsar_sansio import InvalidMessage, decode_message_id


def test_two_halves_of_a_message_do_not_make_a_whole() -> None:
    """A message inside, given twice, is merged by protobuf: each part is a message by itself. Here the parts
    were put together first, so that a field could begin in one and end in the other."""
    data = bytes.fromhex("3a080864106428073a08086410073a080864100018642807")
    with pytest.raises(InvalidMessage, match="ends inside a field"):
        decode_message_id(data)
    message_id(data)
