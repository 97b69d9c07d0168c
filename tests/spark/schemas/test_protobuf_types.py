"""Messages of protobuf as structs, by their descriptors, and structs as messages."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2
from google.protobuf.message import Message

from pulsar_sansio import SchemaDecodingError
from pulsar_sansio.schemas import ProtobufNativeSchema, ProtobufSchema
from pulsar_spark.schemas.avro_types import NoSparkTypeError
from pulsar_spark.schemas.decoders import decoder_of
from pulsar_spark.schemas.encoders import UnencodableError, encoder_of
from pulsar_spark.schemas.spark_types import as_spark, ddl_of
from pulsar_spark.schemas.value_types import UnfitError

pytestmark = pytest.mark.spark

Field = descriptor_pb2.FieldDescriptorProto


def made(syntax: str, *fields: tuple[str, int, dict[str, Any]], root: str = "Root") -> type[Message]:
    """A class of a message with these fields: name, type and more. `Inner` has a text, `Color` two values."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{root}-{syntax}-{len(fields)}.proto", package="p")
    file.syntax = syntax
    file.dependency.append("google/protobuf/timestamp.proto")
    color = file.enum_type.add(name="Color")
    for number, name in enumerate(("RED", "BLUE")):
        color.value.add(name=name, number=number)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="text", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    message = file.message_type.add(name=root)
    for key, value in (("by_name", Field.TYPE_MESSAGE), ("by_number", Field.TYPE_UINT64)):
        entry = message.nested_type.add(name=f"{key.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        kind = Field.TYPE_STRING if key == "by_name" else Field.TYPE_INT32
        entry.field.add(name="key", number=1, type=kind, label=Field.LABEL_OPTIONAL)
        held = entry.field.add(name="value", number=2, type=value, label=Field.LABEL_OPTIONAL)
        if value == Field.TYPE_MESSAGE:
            held.type_name = ".p.Inner"
    for number, (name, type_, more) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=type_, **{"label": Field.LABEL_OPTIONAL, **more})
    if any("oneof_index" in more for *_, more in fields):
        message.oneof_decl.add(name="choice")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p.{root}"))


MANY = {"label": Field.LABEL_REPEATED}

ALL = made(
    "proto3",
    ("small", Field.TYPE_SINT32, {}),
    ("unsigned", Field.TYPE_FIXED32, {}),
    ("long", Field.TYPE_INT64, {}),
    ("huge", Field.TYPE_UINT64, {}),
    ("real", Field.TYPE_FLOAT, {}),
    ("precise", Field.TYPE_DOUBLE, {}),
    ("flag", Field.TYPE_BOOL, {}),
    ("text", Field.TYPE_STRING, {}),
    ("data", Field.TYPE_BYTES, {}),
    ("color", Field.TYPE_ENUM, {"type_name": ".p.Color"}),
    ("inner", Field.TYPE_MESSAGE, {"type_name": ".p.Inner"}),
    ("at", Field.TYPE_MESSAGE, {"type_name": ".google.protobuf.Timestamp"}),
    ("numbers", Field.TYPE_INT32, MANY),
    ("inners", Field.TYPE_MESSAGE, {**MANY, "type_name": ".p.Inner"}),
    ("by_name", Field.TYPE_MESSAGE, {**MANY, "type_name": ".p.Root.ByNameEntry"}),
    ("by_number", Field.TYPE_MESSAGE, {**MANY, "type_name": ".p.Root.ByNumberEntry"}),
    ("either", Field.TYPE_STRING, {"oneof_index": 0}),
    ("other", Field.TYPE_INT32, {"oneof_index": 0}),
)

DDL = (
    "struct<`small`:int,`unsigned`:bigint,`long`:bigint,`huge`:decimal(20,0),`real`:float,`precise`:double,"
    "`flag`:boolean,`text`:string,`data`:binary,`color`:string,`inner`:struct<`text`:string>,`at`:timestamp,"
    "`numbers`:array<int>,`inners`:array<struct<`text`:string>>,`by_name`:map<string,struct<`text`:string>>,"
    "`by_number`:map<int,decimal(20,0)>,`either`:string,`other`:int>"
)

NOTHING = {
    "small": 0, "unsigned": 0, "long": 0, "huge": Decimal(0), "real": 0.0, "precise": 0.0, "flag": False,
    "text": "", "data": b"", "color": "RED", "inner": None, "at": None, "numbers": [], "inners": [],
    "by_name": [], "by_number": [], "either": None, "other": None,
}  # fmt: skip

FULL = {
    "small": -5, "unsigned": 2**32 - 1, "long": -(2**63), "huge": Decimal(2**64 - 1), "real": 0.5,
    "precise": 0.1, "flag": True, "text": "\u00e4", "data": b"\xff", "color": "BLUE", "inner": {"text": ""},
    "at": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "numbers": [1, 2],
    "inners": [{"text": "a"}, {"text": ""}], "by_name": [("k", {"text": "v"})],
    "by_number": [(-1, Decimal(2**63))], "either": None, "other": 0,
}  # fmt: skip


def full() -> Any:
    message: Any = ALL()
    message.small, message.unsigned, message.long, message.huge = -5, 2**32 - 1, -(2**63), 2**64 - 1
    message.real, message.precise, message.flag, message.text, message.data = (
        0.5,
        0.1,
        True,
        "\u00e4",
        b"\xff",
    )
    message.color, message.at.seconds, message.at.nanos = 1, -1, 999_999_000
    message.inner.SetInParent()
    message.numbers.extend((1, 2))
    message.inners.add(text="a")
    message.inners.add()
    message.by_name["k"].text = "v"
    message.by_number[-1] = 2**63
    message.other = 0
    return message


def test_a_descriptor_has_a_type() -> None:
    assert ddl_of(as_spark(decoder_of(ProtobufNativeSchema(ALL).info).type.arrow)) == DDL


@pytest.mark.parametrize(("message", "struct"), [(ALL(), NOTHING), (full(), FULL)], ids=["empty", "full"])
def test_messages_are_structs_both_ways(message: Message, struct: dict[str, Any]) -> None:
    """SCHEMA-10: fields that tell whether they are set are null where they are not."""
    info = ProtobufNativeSchema(ALL).info
    found = decoder_of(info).decode([message.SerializeToString(), None], ())
    assert found.to_pylist() == [struct, None]
    encoder = encoder_of(info)
    column = found.cast(as_spark(found.type))
    encoder.check(column.type)
    payload, nothing = encoder.encode(column).payloads
    assert nothing is None
    assert ALL.FromString(payload or b"") == message


def test_a_number_that_an_enum_has_no_name_for_is_text() -> None:
    message: Any = ALL()
    message.color = 77
    info = ProtobufNativeSchema(ALL).info
    found = decoder_of(info).decode([message.SerializeToString()], ())
    assert found.to_pylist()[0]["color"] == "77"
    (payload,) = encoder_of(info).encode(found).payloads
    assert ALL.FromString(payload or b"") == message


def test_fields_that_the_rows_lack_are_not_set() -> None:
    encoder = encoder_of(ProtobufNativeSchema(ALL).info)
    column = pa.array([{"text": "a"}], pa.struct([pa.field("text", pa.string())]))
    encoder.check(column.type)
    (payload,) = encoder.encode(column).payloads
    assert ALL.FromString(payload or b"") == ALL(text="a")
    with pytest.raises(UnfitError, match=r"value.more: the topic's schema has no such field"):
        encoder.check(pa.struct([pa.field("more", pa.string())]))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"unsigned": -1}, r"p\.Root\.unsigned: "),
        ({"huge": Decimal(2**64)}, r"p\.Root\.huge: "),
        ({"color": "GREEN"}, r"p\.Root\.color: 'GREEN' is none of its values"),
        ({"numbers": [1, None]}, r"p\.Root\.numbers: null in a list or map"),
        ({"by_number": [(1, None)]}, r"p\.Root\.by_number: null in a list or map"),
        ({"inners": [None]}, r"p\.Root\.inners: null in a list or map"),
        ({"either": "a", "other": 1}, r"p\.Root: either and other of one oneof"),
    ],
)
def test_a_row_that_is_no_message_is_refused_with_its_number(wrong: dict[str, Any], says: str) -> None:
    encoder = encoder_of(ProtobufNativeSchema(ALL).info)
    rows = pa.array([FULL, {**FULL, **wrong}], as_spark(encoder.type.arrow))
    with pytest.raises(UnencodableError, match=says) as caught:
        encoder.encode(rows)
    assert caught.value.row == 1


def test_a_required_field_that_is_null_is_refused() -> None:
    old = made("proto2", ("text", Field.TYPE_STRING, {"label": Field.LABEL_REQUIRED}), root="Old")
    encoder = encoder_of(ProtobufNativeSchema(old).info)
    with pytest.raises(UnencodableError, match=r"p\.Old\.text: null, and the field is required"):
        encoder.encode(pa.array([{"text": None}], encoder.type.arrow))


def test_a_payload_that_is_no_message_holds_no_value() -> None:
    with pytest.raises(SchemaDecodingError, match="the payload is no Root"):
        decoder_of(ProtobufNativeSchema(ALL).info).decode([b"\xff"], ())


@pytest.mark.parametrize(
    ("info", "says"),
    [
        (
            ProtobufNativeSchema(struct_pb2.Struct).info,
            r"recursive, google\.protobuf\.(Value|Struct) holds itself",
        ),
        (ProtobufSchema(ALL).info, "PROTOBUF have no type in Spark: the definition lacks the numbers"),
    ],
)
def test_what_has_no_type(info: Any, says: str) -> None:
    with pytest.raises(NoSparkTypeError, match=says):
        decoder_of(info)


def test_a_descriptor_that_grows_without_end_is_refused() -> None:
    """Each message has five fields of the next message's type: 5 to the power of 20."""
    file = descriptor_pb2.FileDescriptorProto(name="grows.proto", syntax="proto3")
    for level in range(20):
        message = file.message_type.add(name=f"M{level}")
        for number in range(1, 6):
            field = message.field.add(name=f"f{number}", number=number, label=Field.LABEL_OPTIONAL)
            field.type, field.type_name = Field.TYPE_MESSAGE, f".M{level + 1}"
    file.message_type.add(name="M20").field.add(name="a", number=1, type=5, label=Field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    root = message_factory.GetMessageClass(pool.FindMessageTypeByName("M0"))
    with pytest.raises(NoSparkTypeError, match="a type of more than 10000 fields"):
        decoder_of(ProtobufNativeSchema(root).info)
