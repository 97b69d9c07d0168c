"""Transactions of a batch: opened by tasks, committed or aborted by the driver.

Each attempt of a task writes in a transaction of its own, so that nothing of a failed attempt is ever
visible. The driver first stores the decision to commit them all in the `CommitLog`, then commits each, then
stores that this is done. A driver that starts again finds the decision. It finishes the commit, and the
transactions of the repeated batch are aborted.

It knows nothing of Spark, of rows or of producers.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pulsar_sansio import PulsarError, TransactionId, TransactionNotFound, TransactionRefused

from ..errors import CommitTooLate, CommitUnknown, LinkTimeout
from ..link import Link, wall_time
from .commit_log import CommitDecision, CommitLog, Stage, commit_log
from .producing import WriteFailed

log = logging.getLogger("pulsar_spark.transactions")

Errors = dict[TransactionId, Exception]

COMMIT_SHARE: Final = 4
"""One part in so many of a transaction's timeout has to be left when the driver commits it."""

CLOCKS_DIFFER: Final = 30_000
"""Milliseconds by which the clocks of drivers and executors may differ."""


@dataclass(frozen=True)
class TaskTransaction:
    """The transaction of one attempt. `batch`: the number of the batch of `owner`, a query or write.

    `expires`: ms since 1970, before which its coordinator does not abort it.
    """

    id: TransactionId
    owner: str
    batch: int
    expires: int


def begin(link: Link, owner: str, batch: int, timeout: float, operation_timeout: float) -> TaskTransaction:
    """Open a transaction of `timeout` seconds. Raises `WriteFailed`."""
    expires = wall_time() + int(timeout * 1000)
    try:
        id_: TransactionId = link.call(
            lambda now: link.client.begin_transaction(now, timeout),
            operation_timeout,
            "opening a transaction",
        )
    except (PulsarError, LinkTimeout) as error:
        raise WriteFailed(f"a transaction cannot be opened: {error}") from error
    return TaskTransaction(id_, owner, batch, expires)


def release(link: Link, transaction: TaskTransaction) -> None:
    """Leave the end to the driver, because all rows are confirmed. Raises `WriteFailed`."""
    try:
        link.client.release_transaction(time.monotonic_ns(), transaction.id)
    except PulsarError as error:
        raise WriteFailed(f"the transaction of the task cannot be committed: {error}") from error


def abort_quietly(link: Link, transaction: TaskTransaction, timeout: float) -> None:
    """Abort the transaction of a failed attempt; where that fails, its timeout does it."""
    with suppress(PulsarError, LinkTimeout):
        link.call(
            lambda now: link.client.abort(now, transaction.id),
            timeout,
            f"aborting transaction {transaction.id}",
        )


class BatchEnd:
    """Commits or aborts the transactions of the tasks of one batch."""

    def __init__(
        self,
        link: Link,
        log_topic: Callable[[str], str],
        transactions: Sequence[TaskTransaction],
        timeout: float,
        operation_timeout: float,
    ) -> None:
        """`log_topic`: gives the topic of an owner's commit log. `transactions`: one or more. `timeout`: that
        of each, in seconds."""
        self._link = link
        self._transactions = transactions
        self._ids = tuple(each.id for each in transactions)
        self._batch = transactions[0].batch
        self._log_topic = log_topic(transactions[0].owner)
        self._timeout = timeout
        self._operation_timeout = operation_timeout

    def commit(self) -> bool:
        """Make all of it visible. False where an earlier driver has done that for this batch.

        Raises `CommitTooLate`, `CommitUnknown` and `WriteFailed`."""
        with commit_log(self._link, self._log_topic, self._operation_timeout) as commits:
            last = commits.last
            if last is not None and last.stage is not Stage.DONE:
                self._finish(commits, last)
            if last is not None and last.batch >= self._batch:
                if last.batch > self._batch:
                    raise WriteFailed(
                        f"{self._log_topic}: batch {last.batch} is committed, and this is batch {self._batch}"
                        ": the checkpoint is older than what was written. Begin with a new checkpoint"
                    )
                self._end(self._ids, commits=False)
                return False
            self._decide(commits)
            return True

    def abort(self) -> None:
        """Make none of it visible, unless the decision to commit it is stored. Raises `WriteFailed`."""
        with commit_log(self._link, self._log_topic, self._operation_timeout) as commits:
            decided = () if commits.last is None else commits.last.transactions
            self._end([each for each in self._ids if each not in decided], commits=False)

    def _decide(self, commits: CommitLog) -> None:
        expires = min(each.expires for each in self._transactions)
        if expires - wall_time() < self._timeout * 1000 / COMMIT_SHARE:
            raise CommitTooLate(
                f"batch {self._batch} took more than three quarters of the {self._timeout:g} s after which "
                "its transactions are aborted (option transactionTimeoutMs); nothing of it is visible"
            )
        commits.write(CommitDecision(self._batch, Stage.DECIDED, self._ids, expires))
        refused, unknown = self._outcomes(self._ids)
        if refused:
            commits.write(CommitDecision(self._batch, Stage.TORN, self._ids, expires))
            raise torn(self._log_topic, self._batch, refused)
        if unknown:
            raise CommitUnknown(
                f"batch {self._batch} is being committed, and the coordinator did not answer for "
                f"{words(unknown)}; the query finishes the commit when it is started again"
            )
        commits.write(CommitDecision(self._batch, Stage.DONE))

    def _finish(self, commits: CommitLog, last: CommitDecision) -> None:
        """Finish the commit that an earlier driver began."""
        if last.stage is Stage.TORN:
            raise torn(self._log_topic, last.batch, {})
        log.warning("batch %d: the commit of an earlier run is finished", last.batch)
        refused, unknown = self._outcomes(last.transactions)
        if unknown:
            raise CommitUnknown(f"batch {last.batch} cannot be committed now: {words(unknown)}")
        # The coordinator forgets a transaction that has ended. Before the timeout it can only be committed.
        early = wall_time() < last.expires - CLOCKS_DIFFER
        if not all(early and isinstance(each, TransactionNotFound) for each in refused.values()):
            raise CommitUnknown(
                f"batch {last.batch}: an earlier run ended while it committed {len(last.transactions)} "
                f"transactions, and it is not known whether it came to {words(refused)}. Where rows of the "
                f"batch are not in the topics, delete {self._log_topic} and start again; the batch is "
                "written again then. Else begin with a new checkpoint behind this batch"
            )
        commits.write(CommitDecision(last.batch, Stage.DONE))

    def _outcomes(self, ids: Sequence[TransactionId]) -> tuple[Errors, Errors]:
        """Commit transactions: those that the coordinator refuses to commit, and those without an answer."""
        failed = self._end(ids, commits=True)
        refused: Errors = {
            id_: error for id_, error in failed.items() if isinstance(error, TransactionRefused)
        }
        return refused, {id_: error for id_, error in failed.items() if id_ not in refused}

    def _end(self, ids: Iterable[TransactionId], *, commits: bool) -> Errors:
        """End transactions, all at the same time; the error of each that did not end that way."""
        client = self._link.client
        requests = {
            id_: client.end_released_transaction(time.monotonic_ns(), id_, commits=commits) for id_ in ids
        }
        failed: Errors = {}
        for id_, request in requests.items():
            try:
                self._link.call(
                    lambda _, request=request: request,  # type: ignore[misc]
                    self._operation_timeout + 5.0,
                    f"the end of transaction {id_}",
                )
            except (PulsarError, LinkTimeout) as error:
                failed[id_] = error
        if failed and not commits:
            log.warning("not aborted, until their timeout: %s", words(failed))
        return failed


def log_topic(place: str, prefix: str, owner: str) -> str:
    """The topic of the commit log of a query or write. `place`: how its full name begins."""
    return f"{place}{prefix}-{quote(owner, safe='')}-commits"


def torn(topic: str, batch: int, refused: Errors) -> CommitUnknown:
    """The error of a batch that may be visible in part for ever."""
    why = f": {words(refused)}" if refused else ""
    return CommitUnknown(
        f"batch {batch} was to be committed, and the coordinator had aborted a part of it{why}. Look which "
        f"rows are in the topics. Delete {topic} to write the whole batch again, or begin with a new "
        "checkpoint"
    )


def words(errors: Errors) -> str:
    """Transactions and their errors, the first few."""
    shown = [f"{id_}: {error}" for id_, error in list(errors.items())[:3]]
    more = len(errors) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")
