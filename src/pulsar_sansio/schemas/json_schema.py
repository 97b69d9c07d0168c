"""`JsonSchema`: values as JSON text; the registered definition is Avro's, as every Pulsar client writes it.

Dataclasses and dicts are converted here. A pydantic model and a msgspec Struct write and read their own JSON,
with their validators, aliases and options; the definition then comes from the types of their fields. Readers
ignore fields that they do not know, and take an absent field as null (rule SCHEMA-10).
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from ..model.errors import InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from .avro_schema import structure, unpickled
from .models import is_pydantic, is_struct
from .shapes.shape import Form, Shape, WrongValueError, avro_text

T = TypeVar("T")


class JsonSchema(Schema[T], Generic[T]):
    """Values of a model as JSON: `JsonSchema(Order)`; or dicts: `JsonSchema(definition=text)`.

    `model`: a dataclass, pydantic model or msgspec Struct. `definition`: a type in Avro's JSON, as text or as
    a dict; the values are dicts then. `namespace`: of the model's records; Java's is the package.

    Dates and times of a dataclass are ISO 8601 text, unless an `AvroType` says otherwise; bytes are Base64.
    Raises `InvalidConfiguration` for a type that Avro cannot express.
    """

    @overload
    def __init__(self, model: type[T], *, namespace: str | None = None) -> None: ...
    @overload
    def __init__(self: "JsonSchema[Any]", *, definition: Mapping[str, Any] | str) -> None: ...
    def __init__(
        self,
        model: Any = None,
        *,
        definition: Mapping[str, Any] | str | None = None,
        namespace: str | None = None,
    ) -> None:
        self._arguments = model, definition, namespace
        shape = structure(Form.JSON, model, definition, namespace)
        self._info = SchemaInfo(SchemaType.JSON, "", avro_text(shape.avro).encode())
        self._write, self._read = _codec(model, shape)

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: T) -> bytes:
        try:
            return self._write(value)
        except WrongValueError as error:
            raise InvalidMessage(f"schema JSON: {error}") from None
        except RecursionError:
            raise InvalidMessage("schema JSON: values are nested too deep") from None

    def decode(self, data: bytes) -> T:
        try:
            value: T = self._read(data)
        except WrongValueError as error:
            raise SchemaDecodingError(f"schema JSON: {error}") from error.__cause__
        except RecursionError:
            raise SchemaDecodingError("schema JSON: values are nested too deep") from None
        return value

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], T]:
        if writer is not None and writer.type is not SchemaType.JSON:
            raise SchemaDecodingError(f"schema JSON: the message was written as {writer.type.name}")
        return self.decode

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (JsonSchema, *self._arguments)

    def __repr__(self) -> str:
        return f"<schema JSON {self._info.data.decode():.100}>"


def _codec(model: Any, shape: Shape) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    if model is not None and is_pydantic(model):
        return _with_their_own(
            model, lambda value: value.model_dump_json(by_alias=True).encode(), model.model_validate_json
        )
    if model is not None and is_struct(model):
        msgspec = sys.modules["msgspec"]
        return _with_their_own(model, msgspec.json.Encoder().encode, msgspec.json.Decoder(model).decode)
    convert = shape.decode
    assert convert is not None, "every shape of JSON checks what it decodes"

    def write(value: Any) -> bytes:
        return _JSON_ENCODER.encode(shape.encode(value)).encode()

    return write, lambda data: convert(load_json(data))


def _with_their_own(
    model: type, write: Callable[[Any], bytes], read: Callable[[bytes], Any]
) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Wrap the JSON of a model's own library. Validators are code of the application: they raise what they
    like."""

    def checked_write(value: Any) -> bytes:
        if not isinstance(value, model):
            raise WrongValueError(f"an instance of {model.__name__}, not of {type(value).__name__}")
        try:
            return write(value)
        except Exception as error:
            raise WrongValueError(f"{model.__name__} has no JSON: {type(error).__name__}") from error

    def checked_read(data: bytes) -> Any:
        try:
            return read(data)
        except Exception as error:
            raise WrongValueError(f"{model.__name__} refuses the JSON: {type(error).__name__}") from error

    return checked_write, checked_read


def load_json(data: bytes) -> Any:
    """Return the value of JSON text. Raises `WrongValueError`, and `RecursionError` for too deep nesting."""
    try:
        return _JSON_DECODER.decode(str(data, "utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise WrongValueError(f"the payload is no JSON: {error}"[:200]) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_JSON_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
"""Writes plain data, which a conversion has made, and in which nothing holds itself."""

_JSON_DECODER = json.JSONDecoder(parse_constant=_no_constant)
