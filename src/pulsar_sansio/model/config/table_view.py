"""`TableViewSpec`: the options of a table view."""

from dataclasses import dataclass
from typing import Any

from ..encryption import ConsumerCryptoFailureAction
from ..errors import InvalidConfiguration
from ..message_id import EARLIEST
from ..schema import Schema
from .checks import instance, integer
from .reader import ReaderSpec
from .topics import names_of


@dataclass(frozen=True, slots=True)
class TableViewSpec:
    """Options of a table view: the last value of every key of a topic, in memory.

    `topic`: a name or several; the compacted part of each is read compacted.
    `name`: of its reader, shown by the broker; None makes a random one. `subscription_prefix`: with which the
    made-up name of its subscription begins.
    `receiver_queue_size`: messages granted to the broker at a time, 1 to 1 000 000.
    `max_size`: bytes of all keys and values together; a table that grows beyond it ends with
    `TableViewTooLarge`.
    `partitions_update_interval`: seconds between two requests for the number of partitions, 0.001 and
    more; None never asks again.
    `schema`: makes values of the payloads; None for bytes. `key_schema`: makes keys of the keys of messages;
    None for their text. Messages whose key is none of it are left out, and `explain` tells how many.
    `crypto_key_reader`, `crypto_failure_action`: see `ConsumerSpec`; a table has no use for CONSUME.
    """

    topic: str | tuple[str, ...]
    name: str | None = None
    subscription_prefix: str = "reader"
    receiver_queue_size: int = 1000
    max_size: int = 1024 * 1024 * 1024
    partitions_update_interval: float | None = 60.0
    schema: Schema[Any] | None = None
    key_schema: Schema[Any] | None = None
    crypto_key_reader: object = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL

    def __post_init__(self) -> None:
        integer("receiver_queue_size", self.receiver_queue_size, 1, 1_000_000)
        integer("max_size", self.max_size, 1, 2**63 - 1)
        instance("key_schema", self.key_schema, (Schema, type(None)), "a Schema or None")
        if self.crypto_failure_action is ConsumerCryptoFailureAction.CONSUME:
            raise InvalidConfiguration(
                "crypto_failure_action: FAIL or DISCARD; a table view has no use for encrypted values"
            )
        self.reader()

    def reader(self) -> ReaderSpec:
        """Return the spec of the table view's reader. Raises `InvalidConfiguration`."""
        return ReaderSpec(
            self.topic,
            EARLIEST,
            name=self.name,
            subscription_prefix=self.subscription_prefix,
            read_compacted=all(name.persistent for name in names_of(self.topic)),
            receiver_queue_size=self.receiver_queue_size,
            partitions_update_interval=self.partitions_update_interval,
            schema=self.schema,
            crypto_key_reader=self.crypto_key_reader,
            crypto_failure_action=self.crypto_failure_action,
        )
