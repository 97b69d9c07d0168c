"""`Annotations`: from the types of an application's model to shapes.

A model becomes a record with its fields in their order; `models` knows the kinds of models.
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..model.errors import InvalidConfiguration
from .definitions import AvroDefinition, DefinitionError, definition_shape
from .models import ModelField, constructor, fields_of, is_model
from .shapes.containers import array_shape, map_shape, union_shape
from .shapes.leaves import BY_TYPE, NULL
from .shapes.shape import ABSENT, Convert, Form, Shape, WrongValueError, full_name, same, wrong

_ALLOWED = (
    "bool, int, float, str, bytes, datetime, date, time, UUID, an Enum, a Literal of text, list[…], "
    "tuple[X, …], dict[str, …], X | None and other unions, dataclasses, pydantic models, msgspec "
    "Structs, and Annotated[X, AvroType(…)]"
)


@dataclass(frozen=True, slots=True)
class AvroType:
    """The Avro type of a field, where another one than that of its Python type is wanted.

    `definition`: the name of a primitive type, or a type as Avro's JSON has it:
    `Annotated[Decimal, AvroType({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})]`.
    """

    # A dict has no hash, and a union of types asks for one.
    definition: str | Mapping[str, Any] = dataclasses.field(hash=False)


Int32 = Annotated[int, AvroType("int")]
"""A whole number of 32 bits; `int` alone has 64."""
Float32 = Annotated[float, AvroType("float")]
"""A number of 32 bits; `float` alone has 64."""


class Annotations:
    """The shapes of one schema's types. Each model is defined once, and named where it is used again."""

    def __init__(self, form: Form, namespace: str | None) -> None:
        self._form = form
        self._namespace = namespace
        self._records: dict[str, tuple[type, Shape | None]] = {}

    def shape(self, annotation: Any, where: str) -> Shape:
        """Return the shape of a type. Raises `InvalidConfiguration` for a type that Avro cannot express; it
        names `where`."""
        leaf = BY_TYPE.get(annotation) if isinstance(annotation, type) else None
        if leaf is not None:
            return leaf[self._form]
        if annotation is None or annotation is type(None):
            return NULL[self._form]
        if is_model(annotation):
            return self._record(annotation, where)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return self._enum(annotation, where)
        return self._composed(annotation, where)

    def _composed(self, annotation: Any, where: str) -> Shape:
        origin, parts = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            given = next((each for each in parts[1:] if isinstance(each, AvroType)), None)
            return self.shape(parts[0], where) if given is None else self._given(given, where)
        if origin is Union or origin is types.UnionType:
            return union_shape(self._form, [self.shape(part, where) for part in _null_first(parts)])
        if origin is Literal and all(isinstance(part, str) for part in parts):
            return _literal(self._form, parts)
        if origin in (list, Sequence):
            return array_shape(self.shape(parts[0], f"{where}[]"))
        if origin is tuple and len(parts) == 2 and parts[1] is ...:
            return _as_tuple(array_shape(self.shape(parts[0], f"{where}[]")))
        if origin in (dict, Mapping) and parts[0] is str:
            return map_shape(self.shape(parts[1], f"{where}[]"))
        raise InvalidConfiguration(
            f"schema, {where}: {annotation!r} has no Avro type; allowed are {_ALLOWED}"
        )

    def _given(self, given: AvroType, where: str) -> Shape:
        try:
            definition = AvroDefinition(given.definition)
            return definition_shape(definition, self._form)
        except DefinitionError as error:
            raise InvalidConfiguration(f"schema, {where}: {error}") from None

    def _name(self, kind: type, where: str) -> dict[str, Any]:
        """Return the beginning of a named type. Raises `InvalidConfiguration` for a name that another class
        has."""
        name = kind.__name__
        present = self._records.get(name)
        if present is not None:
            raise InvalidConfiguration(
                f"schema, {where}: {kind!r} and {present[0]!r} would have one name, {name}"
            )
        return {"name": name} if self._namespace is None else {"name": name, "namespace": self._namespace}

    def _enum(self, kind: type[Enum], where: str) -> Shape:
        present = self._records.get(kind.__name__)
        if present is not None and present[0] is kind and present[1] is not None:
            return dataclasses.replace(present[1], avro=full_name(present[1].avro))
        avro = {"type": "enum", **self._name(kind, where), "symbols": list(kind.__members__)}
        words = f"a {kind.__name__}"
        members = dict(kind.__members__)

        def encode(value: Any) -> str:
            if isinstance(value, kind):
                return value.name
            raise wrong(words, value)

        def decode(plain: Any) -> Enum:
            member = members.get(plain) if isinstance(plain, str) else None
            if member is None:
                raise wrong(f"one of {', '.join(members)}", plain)
            return member

        shape = Shape(avro, encode, decode, encode, lambda value: isinstance(value, kind))
        self._records[kind.__name__] = kind, shape
        return shape

    def _record(self, model: type, where: str) -> Shape:
        present = self._records.get(model.__name__)
        if present is not None and present[0] is model:
            return self._again(model)
        avro: dict[str, Any] = {"type": "record", **self._name(model, where)}
        self._records[model.__name__] = model, None
        entries = []
        fields = []
        for field in fields_of(model):
            inner = f"{model.__name__}.{field.name}"
            shape = self.shape(field.annotation, inner)
            name = field.json_name if self._form is Form.JSON else field.name
            entry: dict[str, Any] = {"name": name}
            if field.make_default is not None:
                shape = _with_default(shape, field.make_default(), entry, inner)
            entries.append({"name": name, "type": shape.avro, **entry})
            fields.append((field, shape))
        avro["fields"] = entries
        shape = _record_shape(self._form, model, avro, fields)
        self._records[model.__name__] = model, shape
        return shape

    def _again(self, model: type) -> Shape:
        """Return the shape of a model by its name. Its definition is done, or in progress around it."""
        records, name = self._records, model.__name__
        reference = name if self._namespace is None else f"{self._namespace}.{name}"

        def later(which: str) -> Convert:
            def convert(value: Any) -> Any:
                shape = records[name][1]
                assert shape is not None, "values are converted when all definitions are done"
                return getattr(shape, which)(value)

            return convert

        return Shape(
            reference,
            later("encode"),
            later("decode"),
            later("default"),
            lambda value: isinstance(value, model),
            reference,
        )


def _null_first(parts: tuple[Any, ...]) -> list[Any]:
    """Order a union as Avro's users do: null first, the others as they are written."""
    return sorted(parts, key=lambda part: part is not type(None))


def _with_default(shape: Shape, default: Any, entry: dict[str, Any], where: str) -> Shape:
    """Write a field's default into its definition. A union's default belongs to its first branch."""
    if default is None and not shape.fits(None):
        raise InvalidConfiguration(f"schema, {where}: the default None is no value of its type")
    if isinstance(shape.avro, list) and default is not None and shape.avro[0] == "null":
        shape = dataclasses.replace(shape, avro=[*shape.avro[1:], "null"])
    if default is None:
        entry["default"] = None
        return shape
    try:
        shape.encode(default)
        entry["default"] = shape.default(default)
    except WrongValueError as error:
        raise InvalidConfiguration(f"schema, {where}: the default is none of its type: {error}") from None
    return shape


def _literal(form: Form, values: tuple[str, ...]) -> Shape:
    words = f"one of {', '.join(map(repr, values))}"

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in values:
            return value
        raise wrong(words, value)

    return Shape("string", check, check, same, lambda value: isinstance(value, str) and value in values)


def _as_tuple(shape: Shape) -> Shape:
    decode = shape.decode
    return dataclasses.replace(shape, decode=tuple if decode is None else lambda plain: tuple(decode(plain)))


def _record_shape(form: Form, model: type, avro: Any, fields: list[tuple[ModelField, Shape]]) -> Shape:
    words = f"{'an' if model.__name__[0] in 'AEIOU' else 'a'} {model.__name__}"
    names = [field.json_name if form is Form.JSON else field.name for field, _ in fields]
    encoders = [(name, field.name, shape.encode) for name, (field, shape) in zip(names, fields, strict=True)]
    defaults = [(name, field.name, shape.default) for name, (field, shape) in zip(names, fields, strict=True)]

    def convert_with(converters: list[tuple[str, str, Convert]]) -> Convert:
        def each(value: Any) -> dict[str, Any]:
            if not isinstance(value, model):
                raise wrong(words, value)
            plain = {}
            name = ""
            try:
                for plain_name, name, convert in converters:
                    plain[plain_name] = convert(getattr(value, name))
            except WrongValueError as error:
                raise error.within(f".{name}") from None
            return plain

        return each

    decode = _avro_decoder(model, fields) if form is Form.AVRO else _json_decoder(model, fields)
    return Shape(
        avro,
        convert_with(encoders),
        decode,
        convert_with(defaults),
        lambda value: isinstance(value, model),
        full_name(avro),
    )


def _refused(model: type, error: Exception) -> WrongValueError:
    """Return the error for a constructor, whose `__post_init__` and validators raise what they like."""
    return WrongValueError(f"{model.__name__} refuses its fields: {type(error).__name__}")


def _avro_decoder(model: type, fields: list[tuple[ModelField, Shape]]) -> Convert:
    converters = [(field.name, shape.decode) for field, shape in fields if shape.decode is not None]
    construct = constructor(model)
    with_default = [field.name for field, _ in fields if field.make_default is not None]
    words = f"the fields of {model.__name__}"

    def decode(plain: Any) -> Any:
        if not isinstance(plain, dict):  # of another branch of a union
            raise wrong(words, plain)
        for name in with_default:
            if plain[name] is ABSENT:  # the model's constructor has the default
                del plain[name]
        name = ""
        try:
            for name, convert in converters:
                if name in plain:
                    plain[name] = convert(plain[name])
        except WrongValueError as error:
            raise error.within(f".{name}") from error.__cause__
        try:
            return construct(plain)
        except Exception as error:
            raise _refused(model, error) from error

    return decode


def _json_decoder(model: type, fields: list[tuple[ModelField, Shape]]) -> Convert:
    # An absent field is null to the Java client, which omits fields without a value.
    converters = [(field.json_name, field.name, shape.decode or shape.encode) for field, shape in fields]
    without_default = [(field.name, shape) for field, shape in fields if field.make_default is None]
    nullable = {name for name, shape in without_default if shape.fits(None)}
    required = {name for name, shape in without_default if not shape.fits(None)}
    words = f"an object with the fields of {model.__name__}"
    construct = constructor(model)

    def decode(plain: Any) -> Any:
        if not isinstance(plain, dict):
            raise wrong(words, plain)
        arguments = {}
        name = ""
        try:
            for plain_name, name, convert in converters:
                if plain_name in plain:
                    arguments[name] = convert(plain[plain_name])
                elif name in nullable:
                    arguments[name] = None
                elif name in required:
                    raise WrongValueError("the field is missing")
        except WrongValueError as error:
            raise error.within(f".{name}") from error.__cause__
        try:
            return construct(arguments)
        except Exception as error:
            raise _refused(model, error) from error

    return decode
