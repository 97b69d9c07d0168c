"""`Transaction`: messages and acknowledgements that take effect together, or not at all."""

from datetime import timedelta
from functools import partial
from logging import getLogger
from math import inf
from typing import TYPE_CHECKING

from pulsar_sansio import (
    ClosedError,
    InvalidConfiguration,
    LocalProtocolError,
    TransactionId,
    TransactionNotOpen,
)

from .position import seconds

if TYPE_CHECKING:
    from .driver import Driver

_log = getLogger("pulsar_trio.transaction")


def checked_timeout(timeout: float | timedelta) -> float:
    """Return the timeout in seconds. Raises `InvalidConfiguration` for what is no time above 0."""
    value = seconds(timeout)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        raise InvalidConfiguration(f"timeout: seconds above 0, not {timeout!r}")
    return value


async def open_transaction(
    driver: "Driver", timeout: float | timedelta, *, exactly_once: bool = False
) -> "Transaction":
    """Open a transaction; `exactly_once`: see `begin_transaction` of the core."""
    begin = partial(driver.machine.begin_transaction, exactly_once=exactly_once)
    return Transaction(driver, await driver.request(begin, seconds(timeout)))


def id_of(transaction: object, driver: "Driver") -> TransactionId:
    """Return the id of a transaction of this client.

    Raises `LocalProtocolError` for a transaction of another client. Its id may be that of one of this client,
    where the clients use two clusters.
    """
    if not isinstance(transaction, Transaction):
        raise LocalProtocolError(f"transaction: made by client.transaction, not {transaction!r}")
    if transaction._driver is not driver:
        raise LocalProtocolError(
            f"transaction {transaction.id} is another client's: a transaction is for producers and consumers "
            "of the client that has opened it"
        )
    return transaction.id


class Transaction:
    """Made by `client.transaction`. Give it to `send` and `acknowledge` as `transaction`."""

    def __init__(self, driver: "Driver", id_: TransactionId) -> None:
        self._driver = driver
        self.id = id_
        """The id, for an `OutgoingMessage` that is made by hand."""
        self.is_open = True
        """False once the application has asked for the end."""

    async def flush(self) -> None:
        """Send the messages and acknowledgements of the transaction that wait, and wait until all are
        confirmed.

        Raises the error of the first that failed, such as `TransactionConflict`; the transaction can then
        only abort. Raises `TransactionNotOpen` after the end, and when an abort is asked for meanwhile.
        """
        await self._driver.request(self._driver.machine.flush_transaction, self.id)

    async def commit(self) -> None:
        """Commit, and wait until all of it has taken effect. Leaving the block does it, too.

        It waits for the outcome of every message and acknowledgement of the transaction. When one of them
        failed, the transaction is aborted, and this raises the error of that one, such as
        `TransactionConflict`. Raises `TransactionTimedOut` after the transaction's timeout,
        `TransactionOutcomeUnknown` where the coordinator did not answer, and `TransactionNotOpen` where the
        end was asked for before. A caller that is cancelled meanwhile does not know the outcome.
        """
        self.is_open = False
        await self._driver.request(self._driver.machine.commit, self.id)

    async def abort(self) -> None:
        """Abort, and wait until the coordinator has done it: nothing of the transaction takes effect, and
        its acknowledged messages are delivered again. Raises `TransactionTimedOut` where the coordinator had
        aborted it before, `TimedOut` or `ConnectionLost` where the coordinator did not answer and aborts it
        after its timeout, and `TransactionNotOpen` where the end was asked for before."""
        self.is_open = False
        await self._driver.request(self._driver.machine.abort, self.id)

    def abort_later(self, reason: str) -> None:
        """Have the transaction aborted in the background."""
        self.is_open = False
        try:
            self._driver.command(self._driver.machine.abort, self.id)
        except (TransactionNotOpen, ClosedError):
            return  # It is over, or the coordinator aborts it after its timeout.
        _log.info("transaction %s is aborted: %s", self.id, reason)

    def __repr__(self) -> str:
        return f"<Transaction {self.id}, {'open' if self.is_open else 'ending or ended'}>"
