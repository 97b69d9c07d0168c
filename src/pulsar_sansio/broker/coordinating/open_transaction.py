"""`OpenTransaction`: a transaction that is neither committed nor aborted, as its coordinator knows it."""

from ...core.deadlines import Slot
from ...model.transaction_id import TransactionId


class OpenTransaction:
    """`owner`: the role of the client that opened it. `timeout`: milliseconds. `opened_at`: wall time in ms.

    `expiry`: the deadline at which the coordinator aborts it.
    """

    __slots__ = ("expiry", "id", "opened_at", "owner", "subscriptions", "timeout", "topics")

    def __init__(self, id_: TransactionId, owner: str, timeout: int, opened_at: int, expiry: Slot) -> None:
        self.id = id_
        self.owner = owner
        self.timeout = timeout
        self.opened_at = opened_at
        self.expiry = expiry
        self.topics: dict[str, None] = {}
        """The topics that may receive messages of the transaction, by full name."""
        self.subscriptions: dict[tuple[str, str], None] = {}
        """(topic, subscription) of acknowledgements in the transaction."""
