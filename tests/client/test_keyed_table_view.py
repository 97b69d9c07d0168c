"""Table views whose keys have a schema."""

from base64 import b64encode
from typing import Any

import pytest

from pulsar_sansio.client.outputs import TableChanged
from pulsar_sansio.model.config import TableViewSpec
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.schemas import INT32, STRING, JsonSchema, KeyValue, KeyValueSchema
from tests.client.broker_script import entry_bytes
from tests.client.test_table_view import TableScript, loaded

FIVE, SIX = (number.to_bytes(4, "big") for number in (5, 6))


def put(view: TableScript, entry: int, key: bytes | str, value: bytes) -> None:
    """Deliver a message with a key of bytes, as Base64, or of text."""
    of_bytes = isinstance(key, bytes)
    text = b64encode(key).decode() if isinstance(key, bytes) else key
    fields: dict[str, Any] = {"partition_key": text, "partition_key_b64_encoded": of_bytes}
    view.deliver(entry, entry_bytes(value, sequence_id=entry, **fields))


def keyed(**spec: Any) -> TableScript:
    return loaded(**{"key_schema": INT32, **spec})


def table(view: TableScript) -> dict[Any, Any]:
    return dict(view.client.table(view.view))


def test_keys_are_those_of_the_schema() -> None:
    """TABLE-01: in the table and in its changes; a message without payload removes its key."""
    view = keyed()
    for entry, (key, value) in enumerate([(FIVE, b"a"), (SIX, b"b"), (FIVE, b"c"), (SIX, b"")]):
        put(view, entry, key, value)
    assert table(view) == {5: b"c"}
    changed = [change for each in view.outputs() if isinstance(each, TableChanged) for change in each.changes]
    assert changed == [(5, b"a"), (6, b"b"), (5, b"c"), (6, None)]
    assert 6 not in view.client.table(view.view)


def test_values_have_a_schema_of_their_own() -> None:
    pairs = KeyValueSchema(INT32, STRING)
    for schema, value in ((STRING, "a"), (pairs, KeyValue(5, "a"))):
        view = keyed(schema=schema)
        put(view, 0, FIVE, b"a")
        assert table(view) == {5: value}
        put(view, 1, FIVE, b"")
        assert table(view) == {}


def test_a_key_of_text_and_one_of_bytes_may_be_one_key() -> None:
    """The younger one counts, and removing the older one removes nothing."""
    view = keyed(key_schema=STRING)
    put(view, 0, "k", b"text")
    put(view, 1, b"k", b"bytes")
    assert table(view) == {"k": b"bytes"}
    put(view, 2, "k", b"")
    assert table(view) == {"k": b"bytes"}
    put(view, 3, b"k", b"")
    assert table(view) == {}


@pytest.mark.parametrize(
    ("schema", "key", "reason"),
    [
        (INT32, b"\0", "schema INT32: 4 bytes, not 1"),
        (JsonSchema(definition={"type": "array", "items": "int"}), b"[1]", "unhashable type: 'list'"),
    ],
    ids=["undecodable", "unhashable"],
)
def test_a_message_whose_key_is_none_is_left_out(schema: Any, key: bytes, reason: str) -> None:
    """The explanation tells it; with a schema of values and without."""
    for values in (None, STRING):
        view = keyed(key_schema=schema, schema=values)
        assert "left out" not in view.client.explain(view.now, view.view)
        put(view, 0, key, b"a")
        assert table(view) == {}
        assert view.outputs() == []
        text = view.client.explain(view.now, view.view)
        assert "1 messages are left out for their keys" in text
        assert reason in text


def test_a_schema_of_keys_is_a_schema() -> None:
    with pytest.raises(InvalidConfiguration, match="key_schema: a Schema or None"):
        TableViewSpec("t", key_schema=str)  # type: ignore[arg-type]
