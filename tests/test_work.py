"""The measure itself: what is in proportion passes, and what is not does not."""

from collections.abc import Callable

import pytest

from pulsar_sansio.wire.command_frame import build_frame
from pulsar_sansio.wire.varint import encode_varint
from tests.work import check_in_proportion, work_of


def once_each(size: int) -> Callable[[], object]:
    return lambda: [encode_varint(number) for number in range(size)]


def each_with_each(size: int) -> Callable[[], object]:
    return lambda: [encode_varint(number) for number in range(size) for _ in range(size)]


def copied_for_each(size: int) -> Callable[[], object]:
    def act() -> None:
        for number in range(size):
            build_frame(b"\x08\x12", bytes(number))

    return act


def test_what_is_done_once_for_each_is_in_proportion() -> None:
    check_in_proportion(once_each, 20)


def test_what_is_done_with_each_for_each_is_not() -> None:
    with pytest.raises(AssertionError, match="lines"):
        check_in_proportion(each_with_each, 20)


def test_nor_is_what_is_copied_for_each() -> None:
    with pytest.raises(AssertionError, match="allocated"):
        check_in_proportion(copied_for_each, 1000)


def test_a_call_outside_the_core_is_not_counted() -> None:
    assert work_of(lambda: [bytes(1000) for _ in range(100)]) == (0, 0)
