"""`Annotations`: types of models that Avro can and cannot express."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.schemas import AvroSchema, AvroType, JsonSchema

from .models import Color, Line


def type_of(annotation: Any) -> Any:
    model = make_dataclass("M", [("x", annotation)])
    return json.loads(AvroSchema(model).info.data)["fields"][0]["type"]


@pytest.mark.parametrize(
    ("annotation", "avro"),
    [
        (int, "long"),
        (Optional[str], ["null", "string"]),  # noqa: UP045
        (Union[str, int, None], ["null", "string", "long"]),  # noqa: UP007
        (str | None, ["null", "string"]),
        (Sequence[int], {"type": "array", "items": "long"}),
        (tuple[int, ...], {"type": "array", "items": "long"}),
        (Mapping[str, bytes], {"type": "map", "values": "bytes"}),
        (Literal["a", "b"], "string"),
        (Annotated[int, "a remark"], "long"),
        (Annotated[int, AvroType("int")], "int"),
        (
            Annotated[bytes, AvroType({"type": "fixed", "name": "F", "size": 2})],
            {"type": "fixed", "name": "F", "size": 2},
        ),
        (Annotated[int, AvroType({"type": "int"})] | None, ["null", "int"]),
        (Color, {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}),
    ],
)
def test_a_type_has_one_avro_type(annotation: Any, avro: Any) -> None:
    assert type_of(annotation) == avro


@pytest.mark.parametrize(
    "annotation", [object, Any, set[int], dict[int, str], tuple[int, str], Literal[1], complex, list]
)
def test_a_type_that_avro_cannot_express_is_refused_with_its_field(annotation: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"M\.x: .* has no Avro type; allowed are bool, int"):
        type_of(annotation)


def test_a_wrong_avro_type_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidConfiguration, match=r"M\.x: unknown type 'integer'"):
        type_of(Annotated[int, AvroType("integer")])


def test_two_classes_of_one_name_are_refused() -> None:
    other = make_dataclass("Line", [("y", int)])
    with pytest.raises(InvalidConfiguration, match="would have one name, Line"):
        AvroSchema(make_dataclass("M", [("a", Line), ("b", other)]))


def test_a_type_that_is_not_known_is_refused() -> None:
    model = make_dataclass("M", [("x", "Unknown")])
    with pytest.raises(InvalidConfiguration, match="schema of M: name 'Unknown' is not defined"):
        AvroSchema(model)


class Size(Enum):
    S = "s"


@dataclass
class Defaults:
    a: int = 3
    b: float = 0.5
    c: str = "text"
    d: bytes = b"\xff"
    e: bool = True
    f: Size = Size.S
    g: int | None = 5
    h: datetime = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    i: list[str] = field(default_factory=lambda: ["x"])
    j: dict[str, int] = field(default_factory=dict)
    k: Line = field(default_factory=lambda: Line("tea"))
    l: str | None = None


def test_defaults_stand_in_the_definition() -> None:
    """A reader's definition fills the fields that a writer has not."""
    fields = json.loads(AvroSchema(Defaults).info.data)["fields"]
    assert {each["name"]: each["default"] for each in fields} == {
        "a": 3, "b": 0.5, "c": "text", "d": "ÿ", "e": True, "f": "S", "g": 5, "h": 1_000_000, "i": ["x"],
        "j": {}, "k": {"item": "tea", "amount": 1}, "l": None,
    }  # fmt: skip
    assert fields[6]["type"] == ["long", "null"]
    empty = AvroSchema(definition={"type": "record", "name": "Defaults", "fields": []})
    assert AvroSchema(Defaults).decoder(empty.info)(b"") == Defaults()
    assert JsonSchema(Defaults).decode(b"{}") == Defaults()


def test_a_default_of_another_type_is_refused() -> None:
    for annotation, default in ((int, "x"), (int, None), (str | None, 5)):
        model = make_dataclass("M", [("x", annotation, field(default=default))])
        with pytest.raises(InvalidConfiguration, match=r"M\.x: the default"):
            AvroSchema(model)
