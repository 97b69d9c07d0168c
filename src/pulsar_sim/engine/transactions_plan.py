"""The plan of an application that sends and acknowledges in transactions."""

from dataclasses import dataclass, field

from pulsar_sansio.model.config import BatchingPolicy, SubscriptionType

from .clock import MILLISECOND

LAST_TIMEOUT = 10.0
"""Seconds of a loop's transactions after healing, at least: a slow broker needs several for one round."""


@dataclass(slots=True)
class TransactionsPlan:
    """An application with a client of its own, which has transactions. It sends to its topics, in
    transactions and outside of them, and receives from each of its subscriptions."""

    topics: int = 2
    partitions: int = 0
    """Partitions of each topic; 0 means that no topic is partitioned."""
    kinds: list[SubscriptionType] = field(default_factory=lambda: [SubscriptionType.SHARED])
    """The types of the subscriptions, which are of the topics in turn."""
    consumers: int = 1
    """Consumers of each subscription, at most; an exclusive one has one."""
    transactions: int = 10
    """Transactions that the application opens while there are faults."""
    messages: int = 20
    """Messages outside of transactions."""
    timeout: float = 5.0
    """Seconds until the coordinator aborts a transaction, at most."""
    short_permille: int = 0
    """Transactions with a timeout that may be over before their end, per thousand."""
    at_once: int = 1
    """Transactions that are open at a time, at most."""
    abort_permille: int = 0
    """Transactions that the application aborts, per thousand."""
    linger_permille: int = 0
    """Transactions that the application does not end before their timeout, per thousand."""
    cumulative_permille: int = 0
    """Acknowledgements in transactions, where the type allows it, that are cumulative, per thousand."""
    exactly_once_permille: int = 0
    """Transactions that are opened with `exactly_once`, per thousand."""
    flush_permille: int = 0
    """Steps that ask whether all of a transaction is confirmed so far, per thousand of those that do nothing
    else."""
    payload_permille: int = 0
    """Messages in transactions that are payloads without a key, per thousand. Only where nothing goes by the
    key: partitions, batches, or a Key_Shared subscription."""
    plain_permille: int = 0
    """Steps of a consumer that acknowledge outside of transactions, per thousand."""
    looped: bool = False
    """The messages of the first subscription are handled in loops, as by `run_transactions`."""
    dead_letters: int = 0
    """Redeliveries after which a message becomes a dead letter, on Shared and Key_Shared subscriptions; 0
    means never."""
    letter_permille: int = 0
    """Steps of a consumer with dead letters that make one at once, per thousand."""
    refuse_permille: int = 0
    """Steps of a consumer with dead letters that acknowledge messages negatively, per thousand."""
    close_permille: int = 0
    """Steps that close a producer or a consumer, per thousand."""
    queue: int = 10
    batching: BatchingPolicy | None = None
    chunk_size: int = 0
    """Payload bytes of one chunk, at most; 0 means that no message is divided."""
    pause: int = 20 * MILLISECOND
    """Nanoseconds between steps, at most."""

    @property
    def longest_timeout(self) -> float:
        """Seconds until a transaction is aborted, at most: a loop has to end its last ones in time."""
        return max(self.timeout, LAST_TIMEOUT) if self.looped else self.timeout

    @property
    def update_interval(self) -> float:
        """Seconds until the client knows the right number of partitions after a wrong one."""
        return 60.0 if self.partitions else 0.0

    @property
    def wholes(self) -> list[str]:
        """The topics of the application, without their partitions."""
        return [f"persistent://public/default/x{index}" for index in range(self.topics)]

    @property
    def partitioned(self) -> dict[str, list[str]]:
        """The partitions of each partitioned topic."""
        if not self.partitions:
            return {}
        numbers = range(self.partitions)
        return {whole: [f"{whole}-partition-{each}" for each in numbers] for whole in self.wholes}

    @property
    def subscriptions(self) -> list[tuple[str, str, SubscriptionType]]:
        """The name, the topic and the type of each subscription."""
        wholes = self.wholes
        return [
            (f"transacting-{index}", wholes[index % self.topics], kind)
            for index, kind in enumerate(self.kinds)
        ]

    @property
    def looped_subscription(self) -> str | None:
        """The subscription whose messages are handled in loops, if there is one."""
        return self.subscriptions[0][0] if self.looped else None

    @property
    def letter_topics(self) -> dict[str, str]:
        """The dead-letter topic of each subscription that has one."""
        return {
            name: f"{topic}-{name}-DLQ"
            for name, topic, kind in self.subscriptions
            if self.dead_letters and not kind.cumulative
        }

    @property
    def names(self) -> list[str]:
        """The topics of the application, and partitions in place of those that have some."""
        return [name for whole in self.wholes for name in self.partitioned.get(whole, [whole])]
