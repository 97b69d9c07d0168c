"""The options of a query, checked: what was given, read by the table of `option_table`.

It knows what excludes what; not what a topic or a broker is. Neither Spark nor a socket is needed. Spark
gives names in lower case, so case does not matter; a name that is in no row is an error, and the text says
which one was probably meant. Values of options that may be secret are never quoted.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from pulsar_security import KeyFiles

from ..errors import (
    ConflictingOptions,
    InvalidOption,
    MissingOption,
    OptionNotImplemented,
    UnknownOption,
)
from ..reading.offsets import WantedPositions
from ..security.access import Access
from .access_options import take_access
from .option_table import ALL, OPTIONS, READS, REQUIRED, STREAM, WRITES, Option, Use
from .option_values import ValueRefused

_OTHER_WAY: Final = (
    "credentials are the options auth.…, TLS is tls.…, and nothing here needs the administration"
)

NOT_IMPLEMENTED: Final = {
    "authParams": _OTHER_WAY,
    "authPluginClassName": _OTHER_WAY,
    "pulsar.client.": _OTHER_WAY,
    "admin.url": _OTHER_WAY,
    "failover.": "positions in a checkpoint, and the numbers of exactly once, are those of one cluster; "
    "service.url takes several hosts of that cluster",
}
"""Options of other clients, or their beginnings, and why they are not there."""

_OF_GUARANTEES: Final = {
    "write_id": ("exactly-once", "transactions"),
    "order_by": ("exactly-once",),
    "canonical_order": ("exactly-once",),
    "transaction_timeout_s": ("transactions",),
    "commit_namespace": ("transactions",),
}
"""Options that have a meaning with some delivery guarantees only, by their attributes."""

_OF_SPARK: Final = frozenset({"checkpointlocation"})
"""Spark passes these options to a sink although they are meant for Spark."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of one read, checked. Durations are seconds, times milliseconds since 1970. What has a
    default here is for streams or batches only, and said nowhere else; all others are in the table."""

    service_url: str
    topics: tuple[str, ...]
    """Full names; empty where a pattern says which."""
    topics_pattern: str | None
    starting: WantedPositions | None
    """The start of the read; None is the default of a stream, or of a batch."""
    starting_timestamp: int | None
    ending: WantedPositions | None = None
    ending_timestamp: int | None = None
    columns: tuple[str, ...] | None
    value_type: str
    undecodable: str
    read_compacted: bool = False
    pushdown: bool = False
    fail_on_data_loss: bool
    subscription: str | None = None
    idle_ack_s: float = 0.0
    max_messages: int | None = None
    max_bytes: int | None = None
    topic_discovery_s: float = 0.0
    offset_poll_s: float = 0.0
    min_partitions: int | None
    max_partitions: int
    batch_rows: int
    batch_bytes: int
    receiver_queue: int
    reader_name_prefix: str
    poll_timeout_s: float
    wait_for_topics_s: float
    operation_timeout_s: float
    connect_timeout_s: float
    key_files: KeyFiles | None = None
    access: Access


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """The options of one write, checked. Durations are seconds."""

    service_url: str
    topic: str | None
    value_schema: str
    key_value: str
    delivery_guarantee: str
    write_id: str | None = None
    """The name of a batch write."""
    transaction_timeout_s: float
    commit_namespace: str | None
    """`tenant/namespace` of the commit log; None where it is beside the topic, or there is none."""
    producer_prefix: str
    producer_busy_timeout_s: float
    order_by: tuple[str, ...] | None
    canonical_order: bool
    send_timeout_s: float
    max_in_flight: int
    batch_max_messages: int
    batch_max_bytes: int
    compression: str
    operation_timeout_s: float
    connect_timeout_s: float
    key_files: KeyFiles | None = None
    encryption_keys: tuple[str, ...] | None = None
    access: Access


# --- from texts to values ---------------------------------------------------------------------------


@dataclass
class _Given:
    """The given options of the table, by attribute, and the name of each."""

    values: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def has(self, attribute: str) -> bool:
        return attribute in self.names

    def exclude(self, one: str, other: str) -> None:
        if self.has(one) and self.has(other):
            raise ConflictingOptions(
                f"options {self.names[one]} and {self.names[other]} exclude each other; give one of them"
            )


def parse_read(given: Mapping[str, str], use: Use) -> ReadOptions:
    """The options of a read; `use` is STREAM_READ or BATCH_READ. Raises an `OptionError` that names the
    option, what was given and what is allowed."""
    found = _parse(given, use)
    found.exclude("topics", "several_topics")
    found.exclude("topics", "topics_pattern")
    found.exclude("several_topics", "topics_pattern")
    found.exclude("starting", "starting_timestamp")
    found.exclude("ending", "ending_timestamp")
    found.exclude("max_messages", "max_bytes")
    if found.has("undecodable") and found.values["value_type"] != "schema":
        raise ConflictingOptions("option undecodable needs valueType=schema")
    values = found.values
    values["access"] = take_access(values, found.names.get)
    values["topics"] = values["topics"] or values.pop("several_topics") or ()
    values.pop("several_topics", None)
    if not values["topics"] and not values["topics_pattern"]:
        raise MissingOption("one of the options topic, topics and topicsPattern is required")
    if values["min_partitions"] is not None and values["min_partitions"] > values["max_partitions"]:
        if found.has("max_partitions"):
            raise ConflictingOptions(
                f"option minPartitions: {values['min_partitions']} is more than "
                f"maxPartitions={values['max_partitions']}"
            )
        values["max_partitions"] = values["min_partitions"]
    return ReadOptions(
        **{each.name: values[each.name] for each in fields(ReadOptions) if each.name in values}
    )


def parse_write(given: Mapping[str, str], use: Use) -> WriteOptions:
    """The options of a write; `use` is STREAM_WRITE or BATCH_WRITE. Raises what `parse_read` does."""
    found = _parse(given, use)
    values = found.values
    guarantee = values["delivery_guarantee"]
    for attribute, guarantees in _OF_GUARANTEES.items():
        if found.has(attribute) and guarantee not in guarantees:
            raise ConflictingOptions(
                f"option {found.names[attribute]} means nothing with deliveryGuarantee={guarantee}; it is "
                f"for {' and '.join(guarantees)}"
            )
    if guarantee != "at-least-once" and use is Use.BATCH_WRITE and not values["write_id"]:
        raise MissingOption(
            f"option writeId is required for a batch write with deliveryGuarantee={guarantee}: the name "
            "under which the write is known when it is done again"
        )
    found.exclude("topic", "commit_namespace")
    if guarantee == "transactions" and values["topic"] is None and values["commit_namespace"] is None:
        raise MissingOption(
            "option commitNamespace is required for deliveryGuarantee=transactions without option topic"
        )
    if found.has("order_by") and not values["canonical_order"]:
        raise ConflictingOptions("options orderBy and canonicalOrder=false exclude each other")
    if values["key_value"] != "none" and values["value_schema"] in ("none", "topic"):
        raise ConflictingOptions("option keyValue needs valueSchema=avro, json or primitive")
    if values["value_schema"] == "topic" and values["topic"] is None:
        raise MissingOption("valueSchema=topic needs the option topic")
    if found.has("encryption_keys") is not found.has("key_files"):
        raise MissingOption("options encryption.keys and encryption.keyFiles need each other in a write")
    values["access"] = take_access(values, found.names.get)
    return WriteOptions(**values)


def is_stream_only(given: Mapping[str, str]) -> bool:
    """True if an option is given that only a stream has."""
    return any((row := _row(name, Use.STREAM_READ)) is not None and row.uses == STREAM for name in given)


def options_table(uses: frozenset[Use]) -> str:
    """The rows of the table that are for any of `uses`, as a table in Markdown."""
    lines = ["| option | for | default | allowed | meaning |", "| --- | --- | --- | --- | --- |"]
    for row in OPTIONS:
        if row.uses & uses:
            names = " or ".join(f"`{name}`" for name in (row.name, *row.aliases))
            allowed = row.allowed.replace("|", "\\|")
            lines.append(
                f"| {names} | {_uses_text(row.uses)} | {row.shown_default()} | {allowed} | {row.meaning} |"
            )
    return "\n".join(lines) + "\n"


def _uses_text(uses: frozenset[Use]) -> str:
    known = {ALL: "all", READS: "reads", WRITES: "writes"}
    return known.get(uses) or ", ".join(use.value for use in Use if use in uses)


def _row(name: str, use: Use) -> Option | None:
    for row in OPTIONS:
        if use in row.uses and name.lower() in (row.name.lower(), *(each.lower() for each in row.aliases)):
            return row
    return None


def _parse(given: Mapping[str, str], use: Use) -> _Given:
    """Every row of this use, with its value or its default."""
    found = _Given({row.attribute: row.default for row in OPTIONS if use in row.uses})
    for name, text in given.items():
        if name.lower() in _OF_SPARK:
            continue
        row = _row(name, use)
        if row is None:
            raise _unknown(name, use)
        if found.has(row.attribute):
            raise ConflictingOptions(f"option {row.name} is given twice, also as {name}")
        found.names[row.attribute] = row.name
        found.values[row.attribute] = _value(row, text)
    for row in OPTIONS:
        if use in row.uses and found.values[row.attribute] is REQUIRED:
            raise MissingOption(f"option {row.name} is required for a {use.value}: {row.allowed}")
    return found


def _value(row: Option, text: str) -> object:
    try:
        return row.parse(text)
    except ValueRefused:
        shown = "the value" if row.secret else repr(text)
        raise InvalidOption(f"option {row.name}: {shown} is not allowed; allowed: {row.allowed}") from None


def _unknown(name: str, use: Use) -> Exception:
    """Return the error that says why no row has this name for this use.

    The value is not quoted: it may be a secret."""
    lowered = name.lower()
    if lowered == "path":
        return UnknownOption("a path was given, and topics have none; name the topic with option topic")
    for known, why in NOT_IMPLEMENTED.items():
        if lowered == known.lower() or (known.endswith(".") and lowered.startswith(known)):
            return OptionNotImplemented(f"option {name} is not implemented in pulsar_spark: {why}")
    elsewhere = [row for row in OPTIONS if lowered == row.name.lower()]
    if elsewhere:
        return UnknownOption(
            f"option {elsewhere[0].name} is for {_uses_text(elsewhere[0].uses)} only, this is a {use.value}"
        )
    names = {row.name.lower(): row.name for row in OPTIONS if use in row.uses}
    close = difflib.get_close_matches(lowered, names, n=1, cutoff=0.6)
    meant = f" (did you mean {names[close[0]]}?)" if close else ""
    return UnknownOption(
        f"unknown option {name}{meant} for a {use.value}; allowed: {', '.join(sorted(names.values()))}"
    )
