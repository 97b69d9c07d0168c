"""`TypedValue`: the column `value` decoded with the topic's schema, and what becomes of what cannot be.

Payloads come in as they do for a column of bytes, and stand in runs: consecutive rows of one entry. When a
record batch is complete, rows of one definition are decoded together. Rows that hold no value follow the
option `undecodable`: they fail the task, or are null, with or without their bytes in a column of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from pulsar_sansio import Message

from ..errors import UndecodableMessage
from ..schemas.decoders import decode_each
from ..schemas.definitions import Definitions, NoDecoderError, version_words
from .uniform_members import UniformMembers

UNDECODABLE = "__undecodable"
"""The column of payloads that could not be decoded."""


@dataclass(slots=True)
class _Run:
    """Rows one after the other of one entry; `first`: the index of the first in its batch, or -1."""

    entry: Any
    first: int
    count: int

    @property
    def definition(self) -> tuple[str, bytes | None]:
        """Return topic and schema version."""
        return self.entry.source.topic, self.entry.header.schema_version

    def message(self, row: int) -> str:
        """Return the place of the message of this row, which counts from the first of the run."""
        ledger, entry = self.entry.position
        return f"{ledger}:{entry}" if self.first < 0 else f"{ledger}:{entry}:{self.first + row}"


class TypedValue:
    """A column of the values of messages.

    `type`: Arrow's, as Spark has it. `definitions` decode; `fails`: the option `undecodable` is fail.
    `payloads`, `keys`: columns of bytes that grow as this one does; no keys where no value has any.
    """

    def __init__(self, type: Any, definitions: Definitions, fails: bool, payloads: Any, keys: Any) -> None:
        self._type = type
        self._definitions = definitions
        self._fails = fails
        self._columns = [payloads] if keys is None else [payloads, keys]
        self._runs: list[_Run] = []
        self._undecodable: list[bytes | None] = []

    def add_members(self, entry: Any, run: UniformMembers, first: int) -> None:
        for column in self._columns:
            column.add_members(entry, run, first)
        self._runs.append(_Run(entry, first, len(run)))

    def add_messages(self, messages: Sequence[Message]) -> None:
        for column in self._columns:
            column.add_messages(messages)
        self._runs += [_Run(each.entry, each.batch_index, 1) for each in messages]

    def finish(self) -> Any:
        """The Arrow array; this is empty again. Raises `UndecodableMessage`, and errors of the broker."""
        payloads, *more = (column.finish().to_pylist() for column in self._columns)
        keys = more[0] if more else [None] * len(payloads)
        self._undecodable = [None] * len(payloads)
        parts: list[Any] = [pa.array([], self._type)]
        row = 0
        for (topic, version), group in groupby(self._runs, lambda run: run.definition):
            runs = list(group)
            end = row + sum(run.count for run in runs)
            try:
                decode = self._definitions.decode(topic, version)
            except NoDecoderError as error:
                self._refuse(runs, row, payloads[row:end], error)
                parts.append(pa.nulls(end - row, self._type))
            else:
                first = row
                for count, found in decode_each(decode, payloads[row:end], keys[row:end]):
                    if isinstance(found, Exception):
                        self._refuse(_behind(runs, row - first), row, [payloads[row] or b""], found)
                        found = pa.nulls(1, self._type)
                    parts.append(found)
                    row += count
            row = end
        self._runs = []
        return pa.concat_arrays(parts)

    def undecodable(self) -> Any:
        """Return the payloads of the last record batch that could not be decoded; null for all others."""
        return pa.array(self._undecodable, pa.binary())

    def _refuse(self, runs: list[_Run], row: int, payloads: list[bytes | None], error: Exception) -> None:
        """Rows from `row` on hold no value, unless they are null; the first of `runs` begins with them."""
        for index, payload in enumerate(payloads):
            if payload is None:
                continue
            if self._fails:
                run, *_ = _behind(runs, index)
                topic, version = run.definition
                raise UndecodableMessage(
                    f"{topic}: message {run.message(0)} ({version_words(version)}) has no value of the type "
                    f"that is read: {error}. The options undecodable=null and undecodable=bytes continue"
                ) from error
            self._undecodable[row + index] = payload


def _behind(runs: list[_Run], rows: int) -> list[_Run]:
    """Return the runs without their first rows."""
    for index, run in enumerate(runs):
        if rows < run.count:
            first = run.first if run.first < 0 else run.first + rows
            return [_Run(run.entry, first, run.count - rows), *runs[index + 1 :]]
        rows -= run.count
    return []


class Undecodable:
    """The column `__undecodable`: what the column of values, which comes first, could not decode."""

    def __init__(self, values: TypedValue) -> None:
        self._values = values

    def add_members(self, entry: Any, run: UniformMembers, first: int) -> None:
        """Nothing: the column of values has the rows."""

    def add_messages(self, messages: Sequence[Message]) -> None:
        """Nothing: the column of values has the rows."""

    def finish(self) -> Any:
        return self._values.undecodable()
