"""Any model that can be drawn: through Avro and JSON, through pairs, and through changes of the model."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.schemas import (
    AvroSchema,
    Float32,
    Int32,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    Schema,
)

from .drawn_models import INTS, LIBRARIES, LONGS, TEXT, drawn_models, kinds, make_model

FEW = settings(max_examples=40)
"""Each example makes classes and definitions."""

FORMS = (AvroSchema, JsonSchema)


@pytest.mark.parametrize("form", FORMS)
@FEW
@given(drawn=drawn_models(LIBRARIES))
def test_any_value_comes_back(form: Any, drawn: tuple[type, Any]) -> None:
    model, value = drawn
    schema = form(model)
    payload = schema.encode(value)
    assert schema.decode(payload) == value
    assert form(model).decoder(schema.info)(payload) == value, "by the definition as it is registered"
    again = form(definition=schema.info.data.decode())
    assert json.loads(again.info.data) == json.loads(schema.info.data)


@pytest.mark.parametrize("encoding", KeyValueEncoding)
@FEW
@given(key=drawn_models(LIBRARIES), value=drawn_models(LIBRARIES), forms=st.permutations(FORMS))
def test_any_pair_comes_back(
    encoding: KeyValueEncoding, key: tuple[type, Any], value: tuple[type, Any], forms: list[Any]
) -> None:
    """Key and value have definitions of their own, whatever their names are (SCHEMA-09)."""
    schema: KeyValueSchema[Any, Any] = KeyValueSchema(forms[0](key[0]), forms[1](value[0]), encoding)
    pair = KeyValue(key[1], value[1])
    payload = schema.encode(pair)
    if encoding is KeyValueEncoding.INLINE:
        assert schema.decoder(schema.info)(payload) == pair
    else:
        assert schema.separated_decoder(schema.info)(schema.encode_key(pair), payload) == pair


WIDER: list[tuple[Any, Any, st.SearchStrategy[Any]]] = [
    (Int32, int, INTS),
    (Int32, float, INTS),
    (Float32, float, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (int, int, LONGS),
    (str, str | None, TEXT),
    (list[Int32], list[int], st.lists(INTS, max_size=3)),
]
"""Types of a writer and of a reader that reads them, with the writer's values."""


@pytest.mark.parametrize("form", FORMS)
@FEW
@given(data=st.data(), library=st.sampled_from(LIBRARIES))
def test_a_changed_model_reads_what_the_one_before_wrote(
    form: Any, data: st.DataObject, library: str
) -> None:
    """Fields are removed, added with a default, and widened, and stand in another order."""
    changes = data.draw(st.lists(st.sampled_from(WIDER), min_size=1, max_size=4))
    removed = data.draw(st.lists(kinds(library), max_size=2))
    written = [(f"x{index}", kind, values) for index, (kind, _, values) in enumerate(changes)]
    written += [(f"old{index}", kind, values) for index, (kind, values) in enumerate(removed)]
    before = make_model(library, "Before", [(name, kind) for name, kind, _ in written])
    value = before(**{name: data.draw(values) for name, _, values in written})
    kept = [(f"x{index}", kind) for index, (_, kind, _) in enumerate(changes)]
    added: list[tuple[Any, ...]] = [
        ("new", int, 7),
        ("words", str, "none"),
        ("perhaps", str | None, None),
        ("data", bytes, b"\xff"),
    ]
    after = make_model(library, "After", data.draw(st.permutations([*kept, *added])))
    writer: Schema[Any] = form(before)
    found = form(after).decoder(writer.info)(writer.encode(value))
    assert {name: getattr(found, name) for name, _ in kept} == {
        name: getattr(value, name) for name, _ in kept
    }
    assert (found.new, found.words, found.perhaps, found.data) == (7, "none", None, b"\xff")
