"""`ProtobufSchema` and `ProtobufNativeSchema`: payloads and definitions of generated classes."""

import json
import pickle
from base64 import b64decode

import fastavro
import pytest
from google.protobuf import descriptor_pb2, struct_pb2, type_pb2

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import SchemaType
from pulsar_sansio.schemas import INT32, ProtobufNativeSchema, ProtobufSchema
from pulsar_sansio.wire import proto


@pytest.mark.parametrize("kind", [ProtobufNativeSchema, ProtobufSchema])
def test_a_payload_is_the_serialized_message(
    kind: type[ProtobufNativeSchema[proto.KeyValue]] | type[ProtobufSchema[proto.KeyValue]],
) -> None:
    """SCHEMA-10: the Protobuf family of struct schemas."""
    schema = kind(proto.KeyValue)
    value = proto.KeyValue(key="k", value="v")
    assert schema.encode(value) == value.SerializeToString()
    assert schema.decode(b"\n\x01k\x12\x01v") == value
    assert schema.decoder(schema.info)(schema.encode(value)) == value
    with pytest.raises(SchemaDecodingError, match="the payload is no KeyValue"):
        schema.decode(b"\xff")
    with pytest.raises(SchemaDecodingError, match="written as INT32"):
        schema.decoder(INT32.info)
    with pytest.raises(InvalidMessage, match="KeyValue, not Schema"):
        schema.encode(proto.Schema())  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="missing required fields"):
        schema.encode(proto.KeyValue(key="k"))
    with pytest.raises(InvalidConfiguration, match="a generated protobuf class, not"):
        kind(int)  # type: ignore[arg-type]


def test_schemas_pickle_to_equal_ones() -> None:
    for schema in (ProtobufNativeSchema(struct_pb2.Struct), ProtobufSchema(struct_pb2.Struct)):
        assert pickle.loads(pickle.dumps(schema)).info == schema.info


def test_the_native_definition_has_all_files_imported_ones_first() -> None:
    info = ProtobufNativeSchema(type_pb2.Type).info
    envelope = json.loads(info.data)
    assert info.type is SchemaType.PROTOBUF_NATIVE
    assert envelope["rootMessageTypeName"] == "google.protobuf.Type"
    assert envelope["rootFileDescriptorName"] == "google/protobuf/type.proto"
    files = descriptor_pb2.FileDescriptorSet.FromString(b64decode(envelope["fileDescriptorSet"]))
    names = ("any", "source_context", "type")
    assert [file.name for file in files.file] == [f"google/protobuf/{name}.proto" for name in names]


def test_the_avro_definition_follows_the_fields() -> None:
    info = ProtobufSchema(proto.Schema).info
    definition = json.loads(info.data)
    fastavro.parse_schema(definition)
    assert (info.type, definition["type"], definition["name"]) == (SchemaType.PROTOBUF, "record", "Schema")
    fields = {field["name"]: field for field in definition["fields"]}
    assert list(fields) == ["name", "schema_data", "type", "properties"]
    assert fields["name"] == {"name": "name", "type": "string", "default": ""}
    assert fields["schema_data"] == {"name": "schema_data", "type": "bytes", "default": ""}
    assert fields["type"]["type"]["type"] == "enum"
    assert fields["type"]["default"] == "None"
    assert fields["properties"]["default"] == []
    assert fields["properties"]["type"]["items"]["name"] == "KeyValue"
    parsing = json.loads(dict(info.properties)["__PARSING_INFO__"])
    assert parsing[0] == {
        "number": 1, "name": "name", "type": "STRING", "label": "LABEL_REQUIRED", "definition": None,
    }  # fmt: skip
    assert parsing[-1]["label"] == "LABEL_REPEATED"


def test_a_message_that_holds_itself_is_named_the_second_time() -> None:
    definition = json.loads(ProtobufSchema(struct_pb2.Struct).info.data)
    text = json.dumps(definition)
    assert text.count('"name": "ListValue"') == 1
    assert '["null", "google.protobuf.Struct"]' in text
