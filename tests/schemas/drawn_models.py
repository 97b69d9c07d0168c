"""A strategy of models of each library: with fields of any kind, and a value of each."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Literal
from uuid import UUID

import msgspec
import pydantic
from hypothesis import strategies as st

from pulsar_sansio.schemas import Float32, Int32

from .models import Color, Line, Money, Node

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
_LINES = st.builds(Line, TEXT, INTS)

Kind = tuple[Any, st.SearchStrategy[Any]]
"""A type, and the strategy of its values."""

_LEAVES: list[Kind] = [
    (bool, st.booleans()),
    (int, LONGS),
    (Int32, INTS),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (Float32, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (str, TEXT),
    (datetime, _MOMENTS),
    (date, st.dates()),
    (time, st.times()),
    (UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
    (Literal["web", "shop"], st.sampled_from(["web", "shop"])),
    (Money, st.decimals(-(10**6), 10**6, places=2)),
    (Line, _LINES),
    (int | str | None, st.none() | LONGS | TEXT),
    (Line | str, _LINES | TEXT),
    (list[int] | bool, st.lists(LONGS, max_size=2) | st.booleans()),
    (Node, st.builds(Node, LONGS, st.none() | st.builds(Node, LONGS))),
]
"""The kinds of fields. JSON tells the branches of these unions apart."""

BYTES: Kind = (bytes, st.binary(max_size=8))
"""Pydantic writes bytes into JSON as text, so they have to be UTF-8 there."""

LIBRARIES = ("dataclasses", "pydantic", "msgspec")


def make_model(library: str, name: str, fields: Sequence[tuple[Any, ...]]) -> type:
    """Return a model with fields of these names and types, and with a default where there is a third item."""
    if library == "pydantic":
        given: dict[str, Any] = {field: (kind, *(rest or [...])) for field, kind, *rest in fields}
        model: type = pydantic.create_model(name, **given)
        return model
    if library == "msgspec":
        return msgspec.defstruct(name, fields, kw_only=True)
    return dataclasses.make_dataclass(
        name,
        [(field, kind, dataclasses.field(**_default(*rest))) for field, kind, *rest in fields],
        kw_only=True,
    )


def _default(*default: Any) -> dict[str, Any]:
    return {"default": default[0]} if default else {}


def _around(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    def several(kind: Kind) -> Kind:
        return list[kind[0]], st.lists(kind[1], max_size=3)  # type: ignore[valid-type]

    def tuples(kind: Kind) -> Kind:
        return tuple[kind[0], ...], st.lists(kind[1], max_size=3).map(tuple)  # type: ignore[valid-type]

    def mapping(kind: Kind) -> Kind:
        return dict[str, kind[0]], st.dictionaries(TEXT, kind[1], max_size=3)  # type: ignore[valid-type]

    return st.one_of(inner.map(several), inner.map(tuples), inner.map(mapping))


def kinds(library: str) -> st.SearchStrategy[Kind]:
    """Draw a type of a field with the strategy of its values; some are optional."""

    def optional(kind: Kind) -> Kind:
        return kind[0] | None, st.none() | kind[1]

    leaves = _LEAVES if library == "pydantic" else [*_LEAVES, BYTES]
    every = st.recursive(st.sampled_from(leaves), _around, max_leaves=4)
    return every | every.map(optional)


@st.composite
def drawn_models(draw: st.DrawFn, libraries: Sequence[str] = ("dataclasses",)) -> tuple[type, Any]:
    """Draw a model and a value of it; some have fields that are models."""
    library = draw(st.sampled_from(libraries))
    fields = [draw(kinds(library)) for _ in range(draw(st.integers(1, 5)))]
    inner = make_model(library, "Inner", [(f"x{index}", kind) for index, (kind, _) in enumerate(fields)])
    value = inner(**{f"x{index}": draw(values) for index, (_, values) in enumerate(fields)})
    if not draw(st.booleans()):
        return inner, value
    outer = make_model(library, "Outer", [("first", inner), ("others", list[inner])])  # type: ignore[valid-type]
    return outer, outer(first=value, others=[value])
