"""`ProtobufSchema` and `ProtobufNativeSchema`: values of generated protobuf classes.

Both payloads are the serialized message. They differ in the definition: an Avro type derived from the
message's fields, or the descriptors of the message's files (rule SCHEMA-10).
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Any, Generic, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from ..model.errors import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from .shapes.shape import avro_text

M = TypeVar("M", bound=Message)


class _ProtobufSchema(Schema[M], Generic[M]):
    """The payloads of both schemas."""

    def __init__(self, model: type[M], info: SchemaInfo) -> None:
        self._model = model
        self._info = info

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: M) -> bytes:
        if not isinstance(value, self._model):
            raise InvalidMessage(
                f"schema {self._info.type.name}: {self._model.__name__}, not {type(value).__name__}"
            )
        try:
            return value.SerializeToString()
        except EncodeError as error:
            raise InvalidMessage(f"schema {self._info.type.name}: {error}") from None

    def decode(self, data: bytes) -> M:
        return decode_message(self._model, self._info.type, data)

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], M]:
        if writer is not None and writer.type is not self._info.type:
            raise SchemaDecodingError(
                f"schema {self._info.type.name}: the message was written as {writer.type.name}"
            )
        return self.decode

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._model,)

    def __repr__(self) -> str:
        return f"<schema {self._info.type.name} {self._model.__name__}>"


def decode_message(model: type[M], type: SchemaType, data: bytes) -> M:
    """Return the message in a payload. Raises `SchemaDecodingError`."""
    value = model()
    try:
        value.ParseFromString(data)
    except DecodeError:
        raise SchemaDecodingError(f"schema {type.name}: the payload is no {model.DESCRIPTOR.name}") from None
    return value


def _check(model: object) -> None:
    if not isinstance(model, type) or not issubclass(model, Message):
        raise InvalidConfiguration(f"schema: a generated protobuf class, not {model!r:.100}")


class ProtobufNativeSchema(_ProtobufSchema[M], Generic[M]):
    """Protobuf messages, registered with their descriptors: `ProtobufNativeSchema(Order)`."""

    def __init__(self, model: type[M]) -> None:
        _check(model)
        descriptor: Any = model.DESCRIPTOR
        files: dict[str, FileDescriptor] = {}
        _collect(descriptor.file, files)
        together = descriptor_pb2.FileDescriptorSet()
        for file in files.values():
            file.CopyToProto(together.file.add())
        envelope = {
            "fileDescriptorSet": b64encode(together.SerializeToString(deterministic=True)).decode(),
            "rootMessageTypeName": descriptor.full_name,
            "rootFileDescriptorName": descriptor.file.name,
        }
        super().__init__(model, SchemaInfo(SchemaType.PROTOBUF_NATIVE, "", avro_text(envelope).encode()))


def _collect(file: FileDescriptor, files: dict[str, FileDescriptor]) -> None:
    """Collect a file behind those that it imports."""
    if file.name not in files:
        for imported in file.dependencies:
            _collect(imported, files)
        files[file.name] = file


MAX_FILES = 1000
"""The number of files that a stranger's definition may consist of."""


def message_class_of(info: SchemaInfo) -> type[Message]:
    """Return a class for the messages of a definition of type PROTOBUF_NATIVE, in a pool of its own.

    Raises `SchemaDecodingError` for a definition that is none.
    """
    try:
        envelope = json.loads(info.data)
        together = descriptor_pb2.FileDescriptorSet()
        together.ParseFromString(b64decode(envelope["fileDescriptorSet"], validate=True))
        root = str(envelope["rootMessageTypeName"])
        if len(together.file) > MAX_FILES:
            raise SchemaDecodingError(f"schema PROTOBUF_NATIVE: more than {MAX_FILES} files")
        pool = descriptor_pool.DescriptorPool()
        for file in _in_order(together):
            pool.Add(file)
        found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(root))
    except (ValueError, KeyError, TypeError, DecodeError, RecursionError) as error:
        raise SchemaDecodingError(
            f"schema PROTOBUF_NATIVE: the definition is wrong: {type(error).__name__}"
        ) from None
    return found


def _in_order(together: descriptor_pb2.FileDescriptorSet) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the files, each behind those that it imports.

    The clients in Java and Go write them in any order.
    Raises `ValueError` for files that import each other.
    """
    files = {file.name: file for file in together.file}
    names = TopologicalSorter({name: file.dependency for name, file in files.items()}).static_order()
    return [files[name] for name in names if name in files]


# --- the definition as an Avro type -----------------------------------------------------------------------

_AVRO_TYPES = {
    FieldDescriptor.CPPTYPE_INT32: "int",
    FieldDescriptor.CPPTYPE_UINT32: "int",
    FieldDescriptor.CPPTYPE_INT64: "long",
    FieldDescriptor.CPPTYPE_UINT64: "long",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
}


class ProtobufSchema(_ProtobufSchema[M], Generic[M]):
    """Protobuf messages, registered as an Avro type: `ProtobufSchema(Order)`.

    The definition follows Avro's mapping of protobuf, so that producers in Java and Python may share a topic:
    names as in the `.proto`, optional messages as unions with null, unsigned numbers as signed ones.
    """

    def __init__(self, model: type[M]) -> None:
        _check(model)
        descriptor: Any = model.DESCRIPTOR
        parsing = [
            {
                "number": field.number,
                "name": field.name,
                "type": _PARSING_TYPES[field.type],
                "label": _label(field),
                "definition": None,
            }
            for field in descriptor.fields
        ]
        info = SchemaInfo(
            SchemaType.PROTOBUF,
            "",
            avro_text(_avro_record(descriptor, set())).encode(),
            (("__PARSING_INFO__", avro_text(parsing)),),
        )
        super().__init__(model, info)


_PARSING_TYPES = {
    number: name.removeprefix("TYPE_") for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}
"""Numbers of the types of fields -> their names in Java's `__PARSING_INFO__`."""


def _label(field: FieldDescriptor) -> str:
    if field.is_repeated:
        return "LABEL_REPEATED"
    return "LABEL_REQUIRED" if field.is_required else "LABEL_OPTIONAL"


def _names(descriptor: Any) -> dict[str, str]:
    """Return name and namespace; types within a message have its name in their namespace."""
    inner, _, name = descriptor.full_name.rpartition(".")
    return {"name": name, "namespace": inner} if inner else {"name": name}


def _avro_record(descriptor: Any, seen: set[str]) -> Any:
    if descriptor.full_name in seen:
        return descriptor.full_name
    seen.add(descriptor.full_name)
    fields = []
    for field in descriptor.fields:
        avro = _avro_field(field, seen)
        entry = {"name": field.name, "type": {"type": "array", "items": avro} if field.is_repeated else avro}
        if field.is_repeated:
            entry["default"] = []
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            entry["type"] = ["null", avro]
            entry["default"] = None
        else:
            entry["default"] = _default(field)
        fields.append(entry)
    return {"type": "record", **_names(descriptor), "fields": fields}


def _avro_field(field: Any, seen: set[str]) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _avro_record(field.message_type, seen)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        kind = field.enum_type
        if kind.full_name in seen:
            return kind.full_name
        seen.add(kind.full_name)
        return {"type": "enum", **_names(kind), "symbols": [value.name for value in kind.values]}
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return "bytes" if field.type == FieldDescriptor.TYPE_BYTES else "string"
    return _AVRO_TYPES[field.cpp_type]


def _default(field: Any) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return field.enum_type.values_by_number[field.default_value].name
    if isinstance(field.default_value, bytes):
        return str(field.default_value, "latin-1")
    return field.default_value
