"""The four kinds of subscriptions are types, so that what a kind forbids does not exist: a `SharedConsumer`
has no `acknowledge_cumulative` (rule ACK-02).
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import trio

from pulsar_sansio import Message, SubscriptionType

from .. import plain_calls
from ..client.position import seconds
from ..client.transaction import Transaction, id_of
from ..values import T
from .consumer import Consumer, MessageOrId


class SharedConsumer(Consumer[T]):
    """Shares the messages with the subscription's other consumers."""


class KeySharedConsumer(Consumer[T]):
    """Shares them so that messages of one key stay in order at one consumer."""

    _by_key = True


class _InOrderConsumer(Consumer[T]):
    def acknowledge_cumulative(self, what: MessageOrId, transaction: Transaction | None = None) -> None:
        """Acknowledge a message or id and everything before it. Sent as `acknowledge` does, also with a
        `transaction`."""
        id_ = None if transaction is None else id_of(transaction, self._driver)
        self._command(self._machine.acknowledge_cumulative, what, id_)
        return plain_calls.ACKNOWLEDGE_CUMULATIVE

    async def reconsume_later_cumulative(
        self, message: Message[Any], delay: float | timedelta, properties: Mapping[str, str] | None = None
    ) -> None:
        """Have this message delivered again after `delay`, a timedelta or seconds, and be done with all that
        is before it in its topic or partition; only with `retry=True`.

        It works as `reconsume_later` of one message. If it raises because the message could not be copied,
        nothing is acknowledged, and all messages are redelivered.
        """
        call = partial(self._machine.reconsume_later, cumulative=True)
        await self._request(call, message, seconds(delay), self._publish_time(), properties)


class ExclusiveConsumer(_InOrderConsumer[T]):
    """The only consumer of its subscription; subscribing raises `ConsumerBusy` while there is another one."""


class FailoverConsumer(_InOrderConsumer[T]):
    """One of several, of which one at a time gets the messages: see `active`."""

    async def active_changed(self) -> bool:
        """Wait until the broker says again which consumer gets the messages: whether it is this one
        (rule LSNR-05). Raises `ResourceClosed` or `ResourceBroken` when the consumer ends."""
        if self._ended is None:
            await self._active_changed.park()
        else:
            await trio.lowlevel.checkpoint()
        if self._ended is not None:
            self._refuse()
        return bool(self.active)


CONSUMER_TYPES: dict[SubscriptionType, type[Consumer[Any]]] = {
    SubscriptionType.EXCLUSIVE: ExclusiveConsumer,
    SubscriptionType.SHARED: SharedConsumer,
    SubscriptionType.FAILOVER: FailoverConsumer,
    SubscriptionType.KEY_SHARED: KeySharedConsumer,
}
