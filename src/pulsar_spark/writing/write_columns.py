"""This module checks the columns of a DataFrame that is written to Pulsar, and their types.

Pure: Spark's types come in as the texts of its DDL. What a column becomes is in `rows`.
"""

from collections.abc import Sequence
from typing import Final

from ..errors import InvalidOption, InvalidRows, MissingOption

BYTES_OR_TEXT: Final = ("binary", "string")

WRITTEN: Final[dict[str, tuple[str, ...]]] = {
    "value": BYTES_OR_TEXT,
    "__key": BYTES_OR_TEXT,
    "__topic": ("string",),
    "__eventTime": ("timestamp",),
    "__messageProperties": ("map<string,string>",),
    "__orderingKey": ("binary",),
    "__schemaTopic": ("string",),
}
"""The columns that make a message, and their types. `value` has to be there. A null value is a null message,
which deletes its key where the topic is compacted. `__schemaTopic`: the topic whose `__schemaVersion` the
value has."""

GIVEN: Final = frozenset(
    {
        "__messageId",
        "__publishTime",
        "__partition",
        "__ledgerId",
        "__entryId",
        "__batchIndex",
        "__producerName",
        "__sequenceId",
        "__schemaVersion",
        "__size",
        "__replicatedFrom",
        "__deliverAt",
        "__redeliveryCount",
    }
)
"""Columns of a read message that broker and producer set. The sink ignores them: read rows can be written."""


def check_columns(
    columns: Sequence[tuple[str, str]],
    topic: str | None,
    order_by: tuple[str, ...] | None,
    typed: bool = False,
) -> None:
    """`columns`: name and type of each; `topic`, `order_by`: the options of these names. `typed`: `value` has
    a schema, which decides about its type.

    Raises `InvalidRows`, `MissingOption` and `InvalidOption`.
    """
    names = [name for name, _ in columns]
    for name, kind in columns:
        allowed = WRITTEN.get(name)
        if allowed is None:
            if name in GIVEN or name in (order_by or ()):
                continue
            raise InvalidRows(
                f"column {name} cannot be written: a message has the columns {', '.join(WRITTEN)}. Drop it, "
                "or make it part of value, for instance with to_json"
            )
        if kind not in allowed and not (typed and name == "value"):
            more = ", or another type with valueSchema" if name == "value" else ""
            raise InvalidRows(f"column {name} has the type {kind}; allowed: {' or '.join(allowed)}{more}")
    if "__schemaTopic" in names and typed:
        raise InvalidRows("column __schemaTopic: option valueSchema decides on the schema; drop the column")
    if "__schemaTopic" in names and ("__schemaVersion", "binary") not in columns:
        raise InvalidRows("column __schemaTopic needs the column __schemaVersion, of the type binary")
    if "value" not in names:
        raise InvalidRows(f"column value is missing: what is written is {', '.join(names) or 'nothing'}")
    if topic is None and "__topic" not in names:
        raise MissingOption(
            "option topic is required where there is no column __topic that says it for a row"
        )
    for name in order_by or ():
        if name not in names:
            raise InvalidOption(f"option orderBy: there is no column {name}; there are {', '.join(names)}")
