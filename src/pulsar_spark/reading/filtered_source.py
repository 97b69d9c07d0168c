"""Batch reads whose filters decide what is read, as far as that can be told before reading.

The data source makes this reader only with the option `pushdown`. Spark refuses a reader that could take
filters while its own setting is off, and has no filters for sources in Python before 4.1. `batch_source`
reads what is left.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pulsar_sansio import TopicName

from .batch_source import PulsarReader
from .offsets import Offsets
from .topics import QueryTopics

PUBLISH_TIME_SKEW = 60_000
"""Milliseconds by which publish times may be out of order: producers' clocks set them, and a filter on them
narrows what is read by position."""


class FilteredReader(PulsarReader):
    """Takes filters on topic, partition and publish time."""

    _names: set[str] | None = None
    _indexes: set[int] | None = None
    _from: int | None = None
    _until: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes filters on topic and partition over; those on the time narrow what is read, and stay."""
        for each in filters:
            if not self._take(each):
                yield each

    def _take(self, each: Filter) -> bool:
        """Use a filter to narrow the read; true if Spark need not apply it again."""
        match each:
            case EqualTo(("__topic",), str() as name):
                self._names = _both(self._names, {name})
            case In(("__topic",), names):
                self._names = _both(self._names, set(names))
            case EqualTo(("__partition",), int() as index):
                self._indexes = _both(self._indexes, {index})
            case In(("__partition",), indexes):
                self._indexes = _both(self._indexes, set(indexes))
            case EqualTo(("__publishTime",), datetime() as when):
                self._not_before(when)
                self._not_after(when)
                return False
            case GreaterThan(("__publishTime",), datetime() as when):
                self._not_before(when)
                return False
            case GreaterThanOrEqual(("__publishTime",), datetime() as when):
                self._not_before(when)
                return False
            case LessThan(("__publishTime",), datetime() as when):
                self._not_after(when)
                return False
            case LessThanOrEqual(("__publishTime",), datetime() as when):
                self._not_after(when)
                return False
            case _:
                return False
        return True

    def _not_before(self, when: datetime) -> None:
        earliest = int(when.timestamp() * 1000) - PUBLISH_TIME_SKEW
        self._from = earliest if self._from is None else max(self._from, earliest)

    def _not_after(self, when: datetime) -> None:
        latest = int(when.timestamp() * 1000) + 1 + PUBLISH_TIME_SKEW
        self._until = latest if self._until is None else min(self._until, latest)

    def narrow(self, topics: QueryTopics, starts: Offsets, ends: Offsets) -> tuple[Offsets, Offsets]:
        kept = {name: start for name, start in starts.items() if self._is_read(name)}
        ends = dict(ends)
        for name, start in kept.items():
            if self._from is not None and self._from > 0:
                kept[name] = max(start, topics.at_time(name, self._from))
            if self._until is not None and self._until > 0:
                ends[name] = min(ends[name], topics.at_time(name, self._until))
        return kept, ends

    def _is_read(self, name: str) -> bool:
        if self._names is not None and name not in self._names:
            return False
        return self._indexes is None or TopicName.parse(name).partition in self._indexes


def _both(known: set[Any] | None, more: set[Any]) -> set[Any]:
    return more if known is None else known & more
