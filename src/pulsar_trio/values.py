"""The types of values, for producers, consumers, readers and table views with a schema.

`T` is the type of the values that are received, and `T_contra` of those that are sent. Both are bytes where
there is no schema. `K` is the type of the keys of a table view, which are text where they have no schema.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from pulsar_sansio.schemas import BYTES, Schema, schema_of

Payload: TypeAlias = bytes | bytearray | memoryview
"""The payload of a message. A bytearray or memoryview is copied when it is given."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=str)
    T = TypeVar("T", default=bytes)
    T_contra = TypeVar("T_contra", contravariant=True, default=Payload)
else:
    from typing import TypeVar

    K = TypeVar("K")
    T = TypeVar("T")
    T_contra = TypeVar("T_contra", contravariant=True)

SchemaLike: TypeAlias = Schema[T] | type[T]
"""A schema, or a Python type that has one: see `schema_of`."""


def schema_option(given: Any) -> Schema[Any] | None:
    """Return the schema that an application means; None for bytes. Raises `InvalidConfiguration`."""
    schema = None if given is None else schema_of(given)
    return None if schema is BYTES else schema
