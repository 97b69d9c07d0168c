"""The jobs of both clients, and the options that they share."""

from dataclasses import dataclass

BATCH_MESSAGES = 1000
BATCH_BYTES = 128 * 1024
BATCH_DELAY = 0.001
"""Seconds, and the Java client's default."""

MAX_PENDING_MESSAGES = 20_000
RECEIVER_QUEUE_SIZE = 20_000

SIZE = 100
"""Bytes of a payload."""

TIMEOUT = 300.0
"""Seconds of a transaction."""

JOB_LIMIT = 300.0
"""Seconds after which the process of a client is killed."""


@dataclass(frozen=True, slots=True)
class Job:
    """Transactions one after the other, each of `messages` messages.

    `workload`: "send" sends them. "pipeline" receives them from the topic's subscription, sends as many to
    the output, and acknowledges them. "fill" subscribes and sends them without transactions; it is not timed.
    """

    url: str
    workload: str
    topic: str
    messages: int
    transactions: int

    @property
    def output(self) -> str:
        return f"{self.topic}-out"

    def line(self) -> str:
        """The line on a process's standard input."""
        return f"{self.url}\t{self.workload}\t{self.topic}\t{self.messages}\t{self.transactions}\n"

    @classmethod
    def of(cls, line: str) -> "Job":
        url, workload, topic, messages, transactions = line.rstrip("\n").split("\t")
        return cls(url, workload, topic, int(messages), int(transactions))
