"""`CommitLog`: what the driver has decided about the transactions of a query or write, in a topic.

The topic has one owner: a query, or a write with a `writeId`. The last message is the decision about the last
batch. A durable subscription, which one driver can hold at a time, keeps that message and acknowledges those
before it. So a driver that starts again finds out what the driver before it has decided.

It knows nothing of Spark.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pulsar_sansio import Message, MessageId, PulsarError, TransactionId

from ..errors import CommitUnknown, LinkTimeout
from ..link import Link
from .producing import Limits, TaskProducer, WriteFailed

SUBSCRIPTION: Final = "spark"

VERSION: Final = 1


class Stage(Enum):
    """The stages of the commit of a batch."""

    DECIDED = "decided"
    """Its transactions are to be committed, and some may be."""
    DONE = "done"
    TORN = "torn"
    """One of its transactions was aborted although the commit was decided."""


@dataclass(frozen=True)
class CommitDecision:
    """The decision to commit a batch. `expires`: ms since 1970; none of its transactions times out before."""

    batch: int
    stage: Stage
    transactions: tuple[TransactionId, ...] = ()
    expires: int = 0

    def encode(self) -> bytes:
        return json.dumps(
            {
                "v": VERSION,
                "batch": self.batch,
                "stage": self.stage.value,
                "transactions": self.transactions,
                "expires": self.expires,
            }
        ).encode()


def decision_of(payload: bytes) -> CommitDecision:
    """Read a decision. Raises `ValueError`."""
    try:
        found = json.loads(payload)
        if found["v"] != VERSION:
            raise ValueError(f"a decision of version {found['v']!r}, this is version {VERSION}")
        transactions = tuple(TransactionId(*map(int, each)) for each in found["transactions"])
        return CommitDecision(int(found["batch"]), Stage(found["stage"]), transactions, int(found["expires"]))
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"not a decision: {error!r}") from None


class CommitLog:
    """The log of one owner, open for one commit. `last`: the decision about the last batch; None at first."""

    def __init__(self, link: Link, topic: str, timeout: float) -> None:
        """`timeout`: seconds for each question. Raises `PulsarError` where another driver holds the log or
        the broker does not serve it, and `LinkTimeout`."""
        self._link = link
        self._topic = topic
        self._timeout = timeout
        self._position: MessageId | None = None
        """The last decision's."""
        self.last: CommitDecision | None = None
        self._producer = TaskProducer(link, Limits(operation_timeout=timeout), None)
        self._hold = link.hold(topic, SUBSCRIPTION, timeout=timeout)
        link.client.resume(time.monotonic_ns(), self._hold.handle)

    def read(self) -> None:
        """Find out the last decision. Raises `CommitUnknown` where it is gone."""
        where = self._hold.where(self._timeout)
        end = where.last
        if end.entry_id < 0:
            return
        if where.mark_delete is not None and where.mark_delete >= end[:2]:
            raise CommitUnknown(
                f"the last decision in {self._topic} is acknowledged, by a limit on the age of messages of "
                "its namespace or an administrator, so it is not known whether this batch is committed "
                "already. Where its rows are not in the topics, delete that topic and start again"
            )
        while self._position is None or self._position[:2] < end[:2]:
            self._receive()

    def write(self, decision: CommitDecision) -> None:
        """Store a decision. The decisions before it are acknowledged."""
        before = self._position
        self._producer.open([self._topic])
        payload = decision.encode()
        self._producer.send(self._topic, [payload], [len(payload)])
        self._producer.confirm()
        self._receive()
        if before is not None:
            self._hold.acknowledge_up_to(before[:2], self._timeout)

    def _receive(self) -> None:
        client, handle = self._link.client, self._hold.handle

        def next_one() -> Message | None:
            if self._hold.over is not None:
                raise self._hold.over
            return client.receive(time.monotonic_ns(), handle)

        message = self._link.wait(next_one, self._timeout, f"the last decision in {self._topic}")
        self._position = message.message_id
        try:
            self.last = decision_of(message.data)
        except ValueError as error:
            raise WriteFailed(f"{self._topic}, which is for decisions of commits: {error}") from None

    def close(self) -> None:
        """Leave the topic to the next commit."""
        self._producer.abandon()
        self._hold.close()


@contextmanager
def commit_log(link: Link, topic: str, timeout: float) -> Iterator[CommitLog]:
    """The log while the block lasts. Raises what `CommitLog` does, also when a decision cannot be stored."""
    try:
        log = CommitLog(link, topic, timeout)
    except (PulsarError, LinkTimeout) as error:
        raise WriteFailed(f"the commit log {topic} cannot be used: {error}") from error
    try:
        log.read()
        yield log
    except (PulsarError, LinkTimeout) as error:
        raise WriteFailed(f"the commit log {topic} cannot be used: {error}") from error
    finally:
        log.close()
