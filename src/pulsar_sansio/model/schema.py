"""`Schema`: how an application's values become payloads, and `SchemaInfo`: what a broker registers of it.

A schema converts; it fetches and registers nothing. The client registers `info` with the broker and brings
the definitions that other producers wrote with. Applications use the schemas of `pulsar_sansio.schemas`, or
derive their own from `Schema`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class SchemaType(IntEnum):
    """The kinds of schemas, by their numbers on the wire (enum Type of the message Schema)."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21
    EXTERNAL = 22


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema as a broker registers it.

    `data`: the definition; its form depends on the type, and primitive types have none.
    `properties`: pairs of names and values. A broker does not compare them.
    """

    type: SchemaType
    name: str = ""
    data: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()


class Schema(ABC, Generic[T]):
    """Encode values of one type to payloads, and decode payloads to values (rule SCHEMA-02).

    A schema of an application's own derives from this class and has `info`, `encode` and `decode`. It must
    give the same bytes for the same value, and keep no state that a value changes. A schema pickles if its
    attributes do.
    """

    wants_writer: bool = False
    """True where a payload can only be decoded with the definition that its producer registered. The client
    fetches that definition before it delivers the message, and passes it to `decoder`."""

    adopts: bool = False
    """True where a producer takes the schema that its topic has. The client fetches the definition before it
    opens the producer, and passes it to `adopted`."""

    @property
    @abstractmethod
    def info(self) -> SchemaInfo:
        """The definition that the client registers. `SchemaType.NONE` registers nothing (rule SCHEMA-04)."""

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """Return the payload. Raises `InvalidMessage` for a value that is none of this schema; the text says
        which part of it."""

    @abstractmethod
    def decode(self, data: bytes) -> T:
        """Return the value. Raises `SchemaDecodingError` for a payload that holds none."""

    def adopted(self, topic: SchemaInfo | None) -> "Schema[T]":
        """Return the schema of a producer whose topic has the definition `topic`; None: the topic has none.
        The client calls it for a schema that `adopts`."""
        return self

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], T]:
        """Return a function that decodes payloads written with the definition `writer`.

        None: the payload's producer has registered none, or the schema does not want it. The client keeps the
        function as long as it keeps the definition. Raises `SchemaDecodingError` for a definition that this
        schema cannot read.
        """
        return self.decode
