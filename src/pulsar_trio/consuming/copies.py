"""Copies of several messages in another topic: each by itself, and one answer for all."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from pulsar_sansio import Message, PulsarError

from ..client.endpoint import PendingResult


async def copy_each(
    messages: Iterable[Message[Any]], copy: Callable[[Message[Any]], AbstractContextManager[PendingResult]]
) -> None:
    """Ask for a copy of each message, in this order, and wait until each is safe or has failed.

    Raises what went wrong with the first of those that could not be copied, when all have been tried. When
    cancelled, all are copied all the same.
    """
    errors: list[PulsarError] = []
    with ExitStack() as waiting:
        asked: list[PendingResult | PulsarError] = []
        for message in messages:
            try:
                asked.append(waiting.enter_context(copy(message)))
            except PulsarError as error:
                asked.append(error)
        for each in asked:
            if isinstance(each, PulsarError):
                errors.append(each)
                continue
            try:
                await each.get()
            except PulsarError as error:
                errors.append(error)
    if errors:
        raise errors[0]
