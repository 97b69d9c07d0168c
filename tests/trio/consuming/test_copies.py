"""`copy_each`: every copy is asked for before one is waited for; the first failure is raised at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from pulsar_sansio import Message, PulsarError
from pulsar_trio.client.endpoint import PendingResult
from pulsar_trio.consuming.copies import copy_each


class Copies:
    """Copies that the test settles. `refused`: payloads of which no copy can be asked for."""

    def __init__(self, *refused: bytes) -> None:
        self.refused = refused
        self.answers: dict[bytes, PendingResult] = {}
        self.left: list[bytes] = []

    @contextmanager
    def copy(self, message: Message) -> Iterator[PendingResult]:
        payload = message.data
        if payload in self.refused:
            raise PulsarError(f"{payload.decode()} refused")
        self.answers[payload] = PendingResult()
        try:
            yield self.answers[payload]
        finally:
            self.left.append(payload)

    def settle(self, payload: bytes, failed: bool = False) -> None:
        self.answers[payload].set(None, PulsarError(f"{payload.decode()} failed") if failed else None)


def messages(*payloads: bytes) -> list[Message]:
    found = []
    for payload in payloads:
        message = Message()
        message.data = payload
        found.append(message)
    return found


async def test_all_are_asked_for_in_order_before_any_is_waited_for() -> None:
    copies = Copies()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(copy_each, messages(b"a", b"b", b"c"), copies.copy)
        await trio.testing.wait_all_tasks_blocked()
        assert list(copies.answers) == [b"a", b"b", b"c"]
        for payload in (b"c", b"a"):
            copies.settle(payload)
        await trio.testing.wait_all_tasks_blocked()
        assert copies.left == [], "one of them is not safe yet"
        copies.settle(b"b")
    assert sorted(copies.left) == [b"a", b"b", b"c"]


async def test_no_messages_need_no_copies() -> None:
    await copy_each([], Copies().copy)


@pytest.mark.parametrize(
    ("refused", "failed", "raised"),
    [
        ([], [b"b"], "b failed"),
        ([b"a"], [], "a refused"),
        ([b"a", b"c"], [b"b"], "a refused"),
        ([b"c"], [b"b"], "b failed"),
        ([b"c"], [b"a", b"b"], "a failed"),
    ],
)
async def test_the_first_message_that_could_not_be_copied_decides_once_all_were_tried(
    refused: list[bytes], failed: list[bytes], raised: str
) -> None:
    copies = Copies(*refused)

    async def settle_backwards() -> None:
        await trio.testing.wait_all_tasks_blocked()
        for payload in reversed(copies.answers):
            copies.settle(payload, payload in failed)
            await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle_backwards)
        with pytest.raises(PulsarError, match=f"^{raised}$"):
            await copy_each(messages(b"a", b"b", b"c"), copies.copy)
    assert sorted([*copies.left, *refused]) == [b"a", b"b", b"c"]


async def test_a_cancelled_task_has_asked_for_all() -> None:
    copies = Copies()
    with trio.move_on_after(0) as scope:
        await copy_each(messages(b"a", b"b"), copies.copy)
    assert scope.cancelled_caught
    assert (list(copies.answers), sorted(copies.left)) == ([b"a", b"b"], [b"a", b"b"])
