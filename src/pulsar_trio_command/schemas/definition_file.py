"""Definitions of schemas as JSON objects: in files, and as `pulsar-trio schemas get` prints them.

The form is that of Pulsar's own tools: `type`, `schema` and `properties`. A definition that is JSON may stand
there as it is, or as text. A pair has `key`, `value` and `encoding` in place of `schema`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulsar_sansio import InvalidConfiguration, SchemaDecodingError
from pulsar_sansio.schemas import KeyValueEncoding, SchemaInfo, SchemaType
from pulsar_sansio.schemas.key_value import key_value_info, parts_of
from pulsar_sansio.schemas.primitives import PRIMITIVES

MAX_FILE = 16 * 1024 * 1024
"""Bytes of a file with a definition."""

TYPES = {
    kind.name: kind
    for kind in SchemaType
    if kind not in (SchemaType.AUTO_CONSUME, SchemaType.EXTERNAL, SchemaType.NONE)
} | {"BYTES": SchemaType.NONE}
"""The types that a definition may have, by Pulsar's names."""


def read_definition(given: str) -> SchemaInfo:
    """Return the definition that an argument means: the name of a primitive type, or a file.

    Raises `InvalidConfiguration`, which names the file.
    """
    kind = TYPES.get(given.upper())
    if kind in PRIMITIVES:
        return PRIMITIVES[kind].info
    try:
        with Path(given).open("rb") as source:
            text = source.read(MAX_FILE + 1)
        if len(text) > MAX_FILE:
            raise ValueError(f"more than {MAX_FILE} bytes")
        return definition_of(json.loads(text))
    except FileNotFoundError:
        names = ", ".join(_name(each) for each in PRIMITIVES).lower()
        raise InvalidConfiguration(f"{given!r:.200} is no file, and none of {names}") from None
    except OSError as error:
        raise InvalidConfiguration(f"{given}: {error.strerror}") from None
    except RecursionError:
        raise InvalidConfiguration(f"{given}: JSON that is nested too deep") from None
    except ValueError as error:  # also of JSON, and of text that is no UTF-8
        raise InvalidConfiguration(f"{given}: {error}") from None


def definition_of(given: Any) -> SchemaInfo:
    """Return the definition in a JSON object. Raises `ValueError`."""
    if not isinstance(given, Mapping):
        raise ValueError('a definition is an object, {"type": "AVRO", "schema": …}')
    name = given.get("type")
    kind = TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"type: one of {', '.join(TYPES)}, not {name!r:.100}")
    is_pair = kind is SchemaType.KEY_VALUE
    allowed = ("type", "key", "value", "encoding") if is_pair else ("type", "name", "schema", "properties")
    unknown = next((key for key in given if key not in allowed), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r:.100} is none of {', '.join(allowed)}")
    if is_pair:
        return _pair(given)
    properties = given.get("properties", {})
    if not isinstance(properties, Mapping) or not all(isinstance(each, str) for each in properties.values()):
        raise ValueError("properties: an object of texts")
    schema = given.get("schema", "")
    text = (
        schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    )
    if kind in PRIMITIVES and text:
        raise ValueError(f"schema: {name} has none")
    return SchemaInfo(kind, str(given.get("name", "")), text.encode(), tuple(properties.items()))


def _pair(given: Mapping[str, Any]) -> SchemaInfo:
    encoding = given.get("encoding", KeyValueEncoding.SEPARATED.value)
    if encoding not in ("SEPARATED", "INLINE"):
        raise ValueError(f"encoding: SEPARATED or INLINE, not {encoding!r:.100}")
    return key_value_info(_part(given, "key"), _part(given, "value"), KeyValueEncoding(encoding))


def _part(given: Mapping[str, Any], name: str) -> SchemaInfo:
    try:
        found = definition_of(given.get(name))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if found.type is SchemaType.KEY_VALUE:
        raise ValueError(f"{name}: no pair within a pair")
    return found


def json_of_definition(info: SchemaInfo) -> dict[str, Any]:
    """Return a definition as the JSON object that `definition_of` reads."""
    found: dict[str, Any] = {"type": _name(info.type)}
    if info.type is SchemaType.KEY_VALUE:
        try:
            key, value, encoding = parts_of(info)
        except SchemaDecodingError as error:
            return found | {"error": str(error)}
        parts = {"key": json_of_definition(key), "value": json_of_definition(value)}
        return found | parts | {"encoding": encoding.value}
    if info.data:
        text = info.data.decode(errors="replace")
        try:
            found["schema"] = json.loads(text)
        except (ValueError, RecursionError):
            found["schema"] = text
    if info.properties:
        found["properties"] = dict(info.properties)
    return found


def _name(kind: SchemaType) -> str:
    return "BYTES" if kind is SchemaType.NONE else kind.name
