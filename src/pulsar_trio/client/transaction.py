"""`Transaction`: messages and acknowledgements that take effect together, or not at all."""

from logging import getLogger
from typing import TYPE_CHECKING

from pulsar_sansio import ClosedError, TransactionId, TransactionNotOpen

if TYPE_CHECKING:
    from .driver import Driver

_log = getLogger("pulsar_trio.transaction")


class Transaction:
    """Made by `client.transaction`. Give it to `send` and `acknowledge` as `transaction`."""

    def __init__(self, driver: "Driver", id_: TransactionId) -> None:
        self._driver = driver
        self.id = id_
        """The id, for an `OutgoingMessage` that is made by hand."""
        self.is_open = True
        """False once the application has asked for the end."""

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
        its acknowledged messages are delivered again. Raises `TransactionNotOpen` where the end was asked for
        before."""
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
