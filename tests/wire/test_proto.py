"""The wire schema: the generated module is current, and says what the tables say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from pulsar_sansio.wire import proto
from tools.generate_proto import OLDEST_RUNTIME, TARGET, generate

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = json.loads((ROOT / "tests" / "data" / "wire_schema.json").read_text())

_TYPES = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def _name(descriptor: Any) -> str:
    name: str = descriptor.full_name
    return name.removeprefix("pulsar.proto.")


def _label(field: Any) -> str:
    return "repeated" if field.is_repeated else "required" if field.is_required else "optional"


def _default(field: Any) -> str | None:
    if not field.has_default_value:
        return None
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[field.default_value].name)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "true" if field.default_value else "false"
    return str(field.default_value)


def _field(field: Any) -> dict[str, Any]:
    inner = field.message_type or field.enum_type
    return {
        "number": field.number,
        "name": field.name,
        "label": _label(field),
        "type": _TYPES[field.type] if inner is None else _name(inner),
        "default": _default(field),
    }


def _messages() -> dict[str, list[dict[str, Any]]]:
    file = proto.BaseCommand.DESCRIPTOR.file
    assert file.package == TABLES["package"]
    return {
        name: [_field(field) for field in message.fields]
        for name, message in file.message_types_by_name.items()
    }


def test_generated_module_is_current() -> None:
    for name, text in generate().items():
        assert (TARGET / name).read_text() == text, f"{name}: run `make proto`"


def test_generated_module_loads_with_the_oldest_protobuf_the_project_allows() -> None:
    gate = re.search(r"Domain\.PUBLIC,\s*(\d+),\s*(\d+),\s*(\d+),", (TARGET / "PulsarApi_pb2.py").read_text())
    assert gate is not None
    assert tuple(map(int, gate.groups())) == OLDEST_RUNTIME
    dependency = f"protobuf>={OLDEST_RUNTIME[0]}.{OLDEST_RUNTIME[1]}"
    assert f'"{dependency}"' in (ROOT / "pyproject.toml").read_text()


def test_messages_are_those_of_the_tables() -> None:
    messages = _messages()
    base = messages.pop("BaseCommand")
    assert messages == TABLES["messages"]
    assert base == [
        {"number": 1, "name": "type", "label": "required", "type": "BaseCommand.Type", "default": None},
        *(
            {
                "number": command["value"],
                "name": command["field"],
                "label": "optional",
                "type": command["message"],
                "default": None,
            }
            for command in TABLES["commands"]
        ),
    ]


def test_enums_are_those_of_the_tables() -> None:
    file = proto.BaseCommand.DESCRIPTOR.file
    enums: dict[str, Any] = dict(file.enum_types_by_name)
    for message in file.message_types_by_name.values():
        enums |= {_name(enum): enum for enum in message.enum_types}
    found = {name: {value.name: value.number for value in enum.values} for name, enum in enums.items()}
    types = found.pop("BaseCommand.Type")
    assert found == TABLES["enums"]
    assert types == {command["type"]: command["value"] for command in TABLES["commands"]}


def test_nothing_is_packed_and_there_is_no_oneof() -> None:
    for message in proto.BaseCommand.DESCRIPTOR.file.message_types_by_name.values():
        assert not message.oneofs
        assert not any(field.GetOptions().packed for field in message.fields)


def test_commands_of_release_line_5_are_left_out() -> None:
    assert max(command["value"] for command in TABLES["commands"]) == 68
    names = [field["name"] for field in TABLES["messages"]["FeatureFlags"]]
    assert "supports_scalable_topics" not in names


@pytest.mark.parametrize("name", sorted(TABLES["messages"]))
def test_every_message_can_be_made(name: str) -> None:
    message = getattr(proto, name)()
    assert message.SerializePartialToString() == b""
