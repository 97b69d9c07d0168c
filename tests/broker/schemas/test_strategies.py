"""`SchemaStrategy`: which schema may follow which versions, type by type."""

import json
from typing import Any

import avro.errors
import avro.schema
import pytest

from pulsar_sansio.broker.schemas.strategies import SchemaStrategy, unreadable
from pulsar_sansio.model.errors import IncompatibleSchema
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import INT32, STRING, KeyValueEncoding, ProtobufNativeSchema
from pulsar_sansio.schemas.key_value import key_value_info
from pulsar_sansio.wire import proto


def record(*fields: tuple[str, Any, bool], name: str = "R", kind: SchemaType = SchemaType.AVRO) -> SchemaInfo:
    """Return a record of fields with name, type, and whether there is a default of 0."""
    entries = [
        {"name": field, "type": each, **({"default": 0} if default else {})}
        for field, each, default in fields
    ]
    definition = {"type": "record", "name": name, "fields": entries}
    return SchemaInfo(kind, "", json.dumps(definition).encode())


ONE = record(("a", "int", False))
WITH_DEFAULT = record(("a", "int", False), ("b", "int", True))
WITHOUT = record(("a", "int", False), ("b", "int", False))
LESS = record()
WIDER = record(("a", "long", False))

ALLOWED: dict[str, set[str]] = {
    "ALWAYS_COMPATIBLE": {"one", "default", "without", "less", "wider", "json"},
    "ALWAYS_INCOMPATIBLE": set(),
    "BACKWARD": {"one", "default", "less", "wider"},
    "FORWARD": {"one", "default", "without"},
    "FULL": {"one", "default"},
}
NEW = {
    "one": ONE,
    "default": WITH_DEFAULT,
    "without": WITHOUT,
    "less": LESS,
    "wider": WIDER,
    "json": SchemaInfo(SchemaType.JSON, "", ONE.data),
}


def allowed(strategy: SchemaStrategy, new: SchemaInfo, *versions: SchemaInfo) -> bool:
    try:
        strategy.check(new, versions)
    except IncompatibleSchema:
        return False
    return True


@pytest.mark.parametrize("strategy", SchemaStrategy)
def test_the_latest_version_counts(strategy: SchemaStrategy) -> None:
    """SCHEMA-11: a strategy decides which schema may be the next version."""
    expected = ALLOWED[strategy.name.removesuffix("_TRANSITIVE")]
    assert {name for name, new in NEW.items() if allowed(strategy, new, ONE)} == expected
    assert all(allowed(strategy, new) for new in NEW.values()), "the first version is always allowed"


@pytest.mark.parametrize("name", ["BACKWARD", "FORWARD", "FULL"])
def test_only_transitive_strategies_look_further_back(name: str) -> None:
    # b was dropped by the second version, and comes back as another type
    versions = record(("a", "int", True), ("b", "string", False)), record(("a", "int", True))
    new = record(("a", "int", True), ("b", "int", True))
    assert allowed(SchemaStrategy[name], new, *versions)
    assert not allowed(SchemaStrategy[f"{name}_TRANSITIVE"], new, *versions)


@pytest.mark.parametrize("strategy", SchemaStrategy)
def test_a_consumer_has_to_read_the_versions(strategy: SchemaStrategy) -> None:
    """A reader writes nothing: what FORWARD asks of producers is no matter for it."""
    match strategy:
        case SchemaStrategy.ALWAYS_INCOMPATIBLE:
            expected = set()
        case SchemaStrategy.ALWAYS_COMPATIBLE:
            expected = set(NEW)
        case SchemaStrategy.FULL_TRANSITIVE:
            expected = ALLOWED["FULL"]
        case _:
            expected = ALLOWED["BACKWARD"]
    found = set()
    for name, reader in NEW.items():
        try:
            strategy.check_reader(reader, [ONE])
        except IncompatibleSchema:
            continue
        found.add(name)
    assert found == expected


def test_the_outermost_record_may_have_another_name() -> None:
    assert unreadable(record(("a", "int", False), name="Other"), ONE) == ""
    inner = {"type": "record", "name": "I", "fields": []}
    other = {"type": "record", "name": "J", "fields": []}
    assert "name mismatch" in unreadable(record(("a", inner, False)), record(("a", other, False)))


def test_types_that_hold_themselves_are_compared() -> None:
    chain = record(("next", ["null", "R"], False))
    assert unreadable(chain, chain) == ""
    assert unreadable(record(("next", ["null", "S"], False), name="S"), chain) == ""


def test_protobuf_keeps_its_root_message() -> None:
    one, other = ProtobufNativeSchema(proto.Schema).info, ProtobufNativeSchema(proto.KeyValue).info
    assert unreadable(one, one) == ""
    assert unreadable(
        one, other
    ) == "the root message is KeyValue and not Schema" or "root message" in unreadable(one, other)


def test_both_halves_of_a_pair_are_compared() -> None:
    def pair(key: SchemaInfo, value: SchemaInfo) -> SchemaInfo:
        return key_value_info(key, value, KeyValueEncoding.INLINE)

    assert unreadable(pair(STRING.info, WITH_DEFAULT), pair(STRING.info, ONE)) == ""
    assert unreadable(pair(STRING.info, WITHOUT), pair(STRING.info, ONE)).startswith(
        "value: reader field missing"
    )
    assert unreadable(pair(INT32.info, ONE), pair(STRING.info, ONE)).startswith(
        "key: exists schema type STRING"
    )
    broken = SchemaInfo(SchemaType.KEY_VALUE, "", b"\0")
    assert "no length" in unreadable(broken, broken)


def test_an_error_is_a_record() -> None:
    """Found by fuzzing: the library avro knows errors in protocols only."""
    error = SchemaInfo(SchemaType.AVRO, "", ONE.data.replace(b'"record"', b'"error"'))
    assert unreadable(error, ONE) == unreadable(ONE, error) == ""


def test_a_definition_that_the_library_refuses_is_not_compatible(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library raises for what it does not know; the broker goes on."""

    def parse(*_: object, **__: object) -> None:
        raise avro.errors.SchemaParseException("it is not known")

    monkeypatch.setattr(avro.schema, "parse", parse)
    new = record(("a", "int", False), name="Refused")
    assert unreadable(new, ONE) == "the library avro refuses a definition: it is not known"
