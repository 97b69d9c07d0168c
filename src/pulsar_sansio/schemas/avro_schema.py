"""`AvroSchema`: values as Avro's binary encoding, without a header; read by writer's and reader's definition.

fastavro does the encoding (extra `avro`). A payload is read with the definition that its producer registered,
and Avro's rules for resolution make a value of this schema of it (rule SCHEMA-10).
"""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ..model.errors import InvalidConfiguration, InvalidMessage, NotSupported, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from .annotations import Annotations
from .definitions import AvroDefinition, DefinitionError, definition_shape, named_as
from .models import is_model
from .shapes.shape import ABSENT, Form, Shape, WrongValueError, avro_text

if TYPE_CHECKING:
    from typing import Protocol

    class _Fastavro(Protocol):
        def schemaless_writer(self, out: BytesIO, schema: Any, record: Any) -> None: ...
        def schemaless_reader(
            self,
            source: BytesIO,
            writer_schema: Any,
            reader_schema: Any,
            return_record_name: bool = ...,
            return_record_name_override: bool = ...,
        ) -> Any: ...


T = TypeVar("T")

_READING_FAILS = (ValueError, TypeError, LookupError, EOFError, ArithmeticError, AttributeError)
"""The errors of fastavro for payloads that are cut, too long, or of another definition, beside its own."""


def unpickled(kind: Any, model: Any, definition: Any, namespace: str | None) -> Any:
    """Return a schema of a class that takes a model or a definition, by the arguments it was made with."""
    return kind(definition=definition) if definition is not None else kind(model, namespace=namespace)


def structure(
    form: Form, model: type | None, definition: Mapping[str, Any] | str | None, namespace: str | None
) -> Shape:
    """Return the shape of a schema's model, or of its definition. Raises `InvalidConfiguration`."""
    if (model is None) == (definition is None):
        raise InvalidConfiguration("schema: a model or a definition, and not both")
    if definition is not None:
        try:
            return definition_shape(AvroDefinition(definition), form)
        except DefinitionError as error:
            raise InvalidConfiguration(f"schema, definition: {error}") from None
    if not is_model(model):
        raise InvalidConfiguration(
            f"schema: a dataclass, a pydantic model or a msgspec Struct, not {model!r:.100}"
        )
    return Annotations(form, namespace).shape(model, model.__name__)


class AvroSchema(Schema[T], Generic[T]):
    """Values of a model as Avro: `AvroSchema(Order)`; or dicts: `AvroSchema(definition=text)`.

    `model`: a dataclass, pydantic model or msgspec Struct. `definition`: a type in Avro's JSON, as text or as
    a dict; the values are dicts then. `namespace`: of the model's records; Java's is the package.

    Raises `InvalidConfiguration` for a type that Avro cannot express, and `NotSupported` without the extra
    `avro`.
    """

    wants_writer = True

    @overload
    def __init__(self, model: type[T], *, namespace: str | None = None) -> None: ...
    @overload
    def __init__(self: "AvroSchema[Any]", *, definition: Mapping[str, Any] | str) -> None: ...
    def __init__(
        self,
        model: Any = None,
        *,
        definition: Mapping[str, Any] | str | None = None,
        namespace: str | None = None,
    ) -> None:
        self._arguments = model, definition, namespace
        shape = structure(Form.AVRO, model, definition, namespace)
        try:
            self._codec = AvroCodec(shape, model is None)
        except DefinitionError as error:
            raise InvalidConfiguration(f"schema, definition: {error}") from None
        self._info = SchemaInfo(SchemaType.AVRO, "", self._codec.text.encode())
        self._own = self.decoder(self._info)

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: T) -> bytes:
        return self._codec.encode(value)

    def decode(self, data: bytes) -> T:
        return self._own(data)

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], T]:
        if writer is None:
            return self._own
        if writer.type is not SchemaType.AVRO:
            raise SchemaDecodingError(f"schema AVRO: the message was written as {writer.type.name}")
        return self._codec.decoder(writer.data)

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (AvroSchema, *self._arguments)

    def __repr__(self) -> str:
        return f"<schema AVRO {self._codec.text:.100}>"


class AvroCodec:
    """One type's Avro encoding and decoding. `text`: its definition as JSON.

    Raises `DefinitionError` for a definition that the Avro library refuses.
    """

    def __init__(self, shape: Shape, values_are_plain: bool) -> None:
        self._shape = shape
        self.text = avro_text(shape.avro)
        self._definition = AvroDefinition(self.text)
        library = _library(self._definition.recursive)
        self._write = library.schemaless_writer
        self._schema = _parsed(self._definition.avro)
        self._values_are_plain = values_are_plain and not self._definition.decimals

    def encode(self, value: Any) -> bytes:
        """Return the Avro of a value. Raises `InvalidMessage`."""
        out = BytesIO()
        try:
            self._write(out, self._schema, self._shape.encode(value))
        except WrongValueError as error:
            raise InvalidMessage(f"schema AVRO: {error}") from None
        except RecursionError:
            raise InvalidMessage("schema AVRO: values are nested too deep") from None
        return out.getvalue()

    def decoder(self, definition: bytes) -> Callable[[bytes], Any]:
        """Return a function that reads payloads of a producer's definition. Raises `SchemaDecodingError`."""
        try:
            writer = AvroDefinition(definition)
            if writer.avro == self._definition.avro:
                schema, reader = self._schema, None
            else:
                wanted = named_as(self._definition.avro, writer.avro)
                schema, reader = _parsed(writer.avro), _with_absent_defaults(_parsed(wanted, defaults=True))
        except DefinitionError as error:
            raise SchemaDecodingError(f"schema AVRO: the producer's definition is wrong: {error}") from None
        recursive = writer.recursive or self._definition.recursive
        read = _library(recursive).schemaless_reader
        stream = _Payload if recursive else BytesIO
        convert = None if self._values_are_plain and reader is None else self._shape.decode

        def decode(data: bytes) -> Any:
            try:
                if convert is None:
                    return read(stream(data), schema, reader)
                # Names of records tell the branches of a union apart, where several are records.
                return convert(read(stream(data), schema, reader, True, True))
            except WrongValueError as error:
                raise SchemaDecodingError(f"schema AVRO: {error}") from error.__cause__
            except RecursionError:
                raise SchemaDecodingError("schema AVRO: values are nested too deep") from None
            except _READING_FAILS as error:
                raise SchemaDecodingError(_words(error)) from None
            except Exception as error:
                if type(error).__name__ != "SchemaResolutionError":
                    raise
                raise SchemaDecodingError(_words(error)) from None

        return decode


class _Payload(BytesIO):
    """A payload for fastavro's Python code, which reads numbers of any length, bytewise, and so for hours."""

    _continued = 0
    """The bytes that the present number has had so far."""

    def read(self, size: int | None = -1) -> bytes:
        """Raises `ValueError` within a number of more than 64 bits, and for a negative size."""
        if size is None or size < 0:
            raise ValueError("a negative length")
        data = super().read(size)
        if size != 1 or not data or data[0] < 0x80:
            if size == 1 and self._continued == _MOST_CONTINUED and data > b"\1":
                raise ValueError("a number of more than 64 bits")
            self._continued = 0
        else:
            self._continued += 1
            if self._continued > _MOST_CONTINUED:
                raise ValueError("a number of more than 64 bits")
        return data


_MOST_CONTINUED = 9
"""Bytes of seven bits each, behind which one bit of 64 is left."""


def _words(error: Exception) -> str:
    return f"schema AVRO: the payload is cut or of another definition: {type(error).__name__} {error}"[:300]


def _library(recursive: bool) -> "_Fastavro":
    """Return the module that encodes. Values that hold themselves are left to fastavro's Python code: its C
    code recurses without a limit, and a payload of a few bytes per level would end the process.

    Raises `NotSupported` where fastavro is not installed.
    """
    try:
        import fastavro
        from fastavro import _read_py, _write_py
    except ImportError:
        raise NotSupported(
            "Avro: install fastavro, the extra 'avro' (pip install 'pulsar-trio[avro]')"
        ) from None
    if not recursive:
        return fastavro  # type: ignore[return-value]

    class Recursive:
        schemaless_writer = staticmethod(_write_py.schemaless_writer)
        schemaless_reader = staticmethod(_read_py.schemaless_reader)

    return Recursive


def _parsed(definition: Any, defaults: bool = False) -> Any:
    """Return a definition as fastavro wants it. A writer's defaults have no use, and fastavro is stricter
    with them than Java. Raises `DefinitionError` for what it refuses."""
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    avro = _without_decimals(json.loads(avro_text(definition)))
    try:
        return parse_schema(avro if defaults else _without_defaults(avro))
    except (SchemaParseException, UnknownType) as error:
        raise DefinitionError(f"fastavro refuses it: {error}"[:300]) from None


def _without_defaults(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_without_defaults(each) for each in avro]
    if isinstance(avro, dict):
        return {
            key: _without_defaults(value) if key in ("type", "fields", "items", "values") else value
            for key, value in avro.items()
            if key != "default" or "symbols" in avro
        }
    return avro


def _without_decimals(avro: Any) -> Any:
    """Return a definition whose decimals are bytes: fastavro makes numbers of any size of them."""
    if isinstance(avro, list):
        return [_without_decimals(each) for each in avro]
    if isinstance(avro, dict):
        dropped = ("logicalType", "precision", "scale") if avro.get("logicalType") == "decimal" else ()
        return {
            key: _without_decimals(value) if key in ("type", "fields", "items", "values") else value
            for key, value in avro.items()
            if key not in dropped
        }
    return avro


def _with_absent_defaults(parsed: Any) -> Any:
    """Return a parsed definition whose fields have `ABSENT` as default.

    fastavro puts a default into values as the definition has it: bytes as text, moments as numbers, and one
    list into all values.
    """
    if isinstance(parsed, list):
        for each in parsed:
            _with_absent_defaults(each)
    elif isinstance(parsed, dict):
        for key in ("type", "fields", "items", "values", "__named_schemas"):
            inner = parsed.get(key)
            for each in inner.values() if key == "__named_schemas" and inner else (inner,):
                _with_absent_defaults(each)
        if "default" in parsed and "symbols" not in parsed:
            parsed["default"] = ABSENT
    return parsed
