"""A strategy of models: dataclasses with fields of any kind, and a value of each."""

import dataclasses
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from pulsar_sansio.schemas import Int32

from .models import Color

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))

_LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (Int32, st.integers(-(2**31), 2**31 - 1)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, _TEXT),
    (bytes, st.binary(max_size=8)),
    (datetime, _MOMENTS),
    (UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
]

_Kind = tuple[Any, st.SearchStrategy[Any]]


def _around(inner: st.SearchStrategy[_Kind]) -> st.SearchStrategy[_Kind]:
    def optional(kind: _Kind) -> _Kind:
        return kind[0] | None, st.none() | kind[1]

    def several(kind: _Kind) -> _Kind:
        return list[kind[0]], st.lists(kind[1], max_size=3)  # type: ignore[valid-type]

    def mapping(kind: _Kind) -> _Kind:
        return dict[str, kind[0]], st.dictionaries(_TEXT, kind[1], max_size=3)  # type: ignore[valid-type]

    return st.one_of(inner.map(optional), inner.map(several), inner.map(mapping))


_KINDS = st.recursive(st.sampled_from(_LEAVES), _around, max_leaves=4)


@st.composite
def drawn_models(draw: st.DrawFn) -> tuple[type, Any]:
    """Draw a dataclass and a value of it; some have fields that are records."""
    count = draw(st.integers(1, 5))
    kinds = [draw(_KINDS) for _ in range(count)]
    inner = dataclasses.make_dataclass(
        "Inner", [(f"x{index}", kind) for index, (kind, _) in enumerate(kinds)]
    )
    value = inner(*[draw(values) for _, values in kinds])
    if not draw(st.booleans()):
        return inner, value
    outer = dataclasses.make_dataclass("Outer", [("first", inner), ("others", list[inner])])  # type: ignore[valid-type]
    return outer, outer(value, [value])
