"""The kinds of models whose values become records, and their fields.

A model is a dataclass, a pydantic model or a msgspec Struct. The last two exist only where the application
brings those libraries: nothing here imports them, and a process without them has no such class.
"""

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard, get_type_hints

from ..model.errors import InvalidConfiguration


class ModelField:
    """One field of a model. `json_name`: its name in the JSON of the model's library. `make_default` is None
    where the field has no default."""

    __slots__ = ("annotation", "json_name", "make_default", "name")

    def __init__(
        self, name: str, annotation: Any, make_default: Callable[[], Any] | None, json_name: str | None = None
    ) -> None:
        self.name = name
        self.annotation = annotation
        self.make_default = make_default
        self.json_name = json_name or name


def is_model(kind: object) -> TypeGuard[type]:
    """Tell whether `kind` is a class that becomes a record."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or is_pydantic(kind) or is_struct(kind))


def is_pydantic(kind: type) -> bool:
    """Tell whether `kind` is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def is_struct(kind: type) -> bool:
    """Tell whether `kind` is a msgspec Struct."""
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(kind, msgspec.Struct)


def fields_of(model: type) -> list[ModelField]:
    """Return the fields of a model's constructor. Raises `InvalidConfiguration` for a type of a field that is
    not known where the class is defined."""
    try:
        hints = get_type_hints(model, include_extras=True)
    except NameError as error:
        raise InvalidConfiguration(
            f"schema of {model.__name__}: {error}; types of fields must be known where the class is defined"
        ) from None
    if dataclasses.is_dataclass(model):
        return [
            ModelField(field.name, hints[field.name], _maker(field.default, field.default_factory))
            for field in dataclasses.fields(model)
            if field.init
        ]
    if is_pydantic(model):
        pydantic_fields: dict[str, Any] = vars(model)["__pydantic_fields__"]
        return [
            ModelField(
                name,
                hints[name],
                None if field.is_required() else partial(field.get_default, call_default_factory=True),
                field.serialization_alias,
            )
            for name, field in pydantic_fields.items()
        ]
    structs = sys.modules["msgspec"]
    return [
        ModelField(
            field.name,
            hints[field.name],
            _maker(field.default, field.default_factory, structs.NODEFAULT),
            field.encode_name,
        )
        for field in structs.structs.fields(model)
    ]


def _maker(default: Any, factory: Any, missing: object = dataclasses.MISSING) -> Callable[[], Any] | None:
    if default is not missing:
        return lambda: default
    return None if factory is missing else factory


def constructor(model: type) -> Callable[[dict[str, Any]], Any]:
    """Return a function that makes an instance of arguments by the fields' names. Whatever a validator raises
    comes out."""
    if is_pydantic(model):
        validate: Any = getattr(model, "model_validate")  # noqa: B009
        return partial(validate, by_alias=False, by_name=True)
    return lambda arguments: model(**arguments)
