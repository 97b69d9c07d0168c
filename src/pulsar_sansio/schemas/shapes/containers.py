"""The shapes of lists, maps and unions, made of the shapes of what they hold."""

from collections.abc import Mapping, Sequence
from typing import Any

from .leaves import text_of
from .shape import Convert, Form, Shape, WrongValueError, avro_text, same, wrong


def array_shape(item: Shape) -> Shape:
    """Return the shape of a list."""

    def convert_with(convert: Convert) -> Convert:
        def each(value: Any) -> list[Any]:
            if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
                raise wrong("a list", value)
            plain: list[Any] = []
            try:
                for one in value:
                    plain.append(convert(one))
            except WrongValueError as error:
                raise error.within(f"[{len(plain)}]") from None
            return plain

        return each

    return Shape(
        {"type": "array", "items": item.avro},
        convert_with(item.encode),
        None if item.decode is None else convert_with(item.decode),
        convert_with(item.default),
        lambda value: isinstance(value, (list, tuple)),
    )


def map_shape(item: Shape) -> Shape:
    """Return the shape of a dict with text as keys."""

    def convert_with(convert: Convert) -> Convert:
        def each(value: Any) -> dict[str, Any]:
            if not isinstance(value, Mapping):
                raise wrong("a dict", value)
            plain: dict[str, Any] = {}
            key: Any = None
            try:
                for key, one in value.items():
                    plain[text_of(key)] = convert(one)
            except WrongValueError as error:
                raise error.within(f"[{key!r:.40}]") from None
            return plain

        return each

    return Shape(
        {"type": "map", "values": item.avro},
        convert_with(item.encode),
        None if item.decode is None else convert_with(item.decode),
        convert_with(item.default),
        lambda value: isinstance(value, Mapping),
    )


def union_shape(form: Form, branches: Sequence[Shape]) -> Shape:
    """Return the shape of a value that has one of several shapes.

    In Avro, plain data names the record where several branches are records. In JSON nothing tells branches
    apart: decoding takes the first one that fits.
    """
    avro = [branch.avro for branch in branches]
    others = [branch for branch in branches if branch.avro != "null"]
    if len(others) == 1 and len(branches) == 2:
        return _optional(avro, others[0], value_first=branches[0] is others[0])
    words = f"a value of {avro_text(avro):.200}"
    named = form is Form.AVRO and sum(branch.record is not None for branch in branches) > 1

    def encode(value: Any) -> Any:
        problem: WrongValueError | None = None
        for branch in branches:
            if branch.fits(value):
                try:
                    plain = branch.encode(value)
                except WrongValueError as error:  # a dict may be another record, a number a longer one
                    problem = problem or error
                else:
                    return (branch.record, plain) if named and branch.record is not None else plain
        raise problem or wrong(words, value)

    decode: Convert | None = None
    if form is Form.JSON or any(branch.decode is not None for branch in branches):
        decode = _first_that_fits(branches, words)
    if named:
        decode = _by_name(branches, decode)
    return Shape(
        avro,
        encode,
        decode,
        branches[0].default,
        lambda value: any(branch.fits(value) for branch in branches),
    )


def _first_that_fits(branches: Sequence[Shape], words: str) -> Convert:
    """Return a conversion by the first branch that takes the plain data."""

    def decode(plain: Any) -> Any:
        for branch in branches:
            try:
                if branch.decode is not None:
                    return branch.decode(plain)
                return branch.encode(plain)
            except WrongValueError:
                continue
        raise wrong(words, plain)

    return decode


def _by_name(branches: Sequence[Shape], decode_others: Convert | None) -> Convert:
    """Return a conversion by the name of the record, where plain data has one."""
    by_name = {branch.record: branch for branch in branches}

    def decode(plain: Any) -> Any:
        if isinstance(plain, tuple):
            name, fields = plain
            convert = by_name[name].decode
            return fields if convert is None else convert(fields)
        return plain if decode_others is None else decode_others(plain)

    return decode


def _optional(avro: Any, shape: Shape, value_first: bool) -> Shape:
    def unless_none(convert: Convert) -> Convert:
        return lambda value: None if value is None else convert(value)

    return Shape(
        avro,
        unless_none(shape.encode),
        None if shape.decode is None else unless_none(shape.decode),
        shape.default if value_first else same,
        lambda value: value is None or shape.fits(value),
    )
