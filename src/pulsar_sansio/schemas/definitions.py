"""`AvroDefinition`: the definition of a type in Avro's JSON, checked before any payload is read with it.

Definitions come from applications and, through the broker, from strangers. This module reads them itself and
writes them anew, so that nothing but known attributes of known types reaches the Avro library. It refuses
definitions with which a small payload could become values without end.
"""

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from .shapes.containers import array_shape, map_shape, union_shape
from .shapes.leaves import LOGICAL, PRIMITIVES, decimal_of, decimal_shape, fixed_shape, symbols_shape
from .shapes.shape import ABSENT, Convert, Form, Shape, WrongValueError, full_name, same, wrong

MAX_EMPTY_VALUES = 100
"""The number of values that take no bytes (nulls, records without fields) that one value may bring with it.
Records within records multiply them: thirty short definitions could make a billion out of nothing."""

MAX_PRECISION = 1000
"""Digits of a decimal number. The time to make a number of bytes grows with the square of their count."""

MAX_DEPTH = 200
"""The depth of types within types. Conversions are functions within functions, and Python counts them."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)*")
"""Names may have `$`: the Java client names nested classes so."""
_NAMESPACE = re.compile(rf"(?:{_NAME.pattern})?")
_FIELD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""No library for Avro takes `$` here."""

_LOGICAL_DECIMAL = "decimal"


class DefinitionError(ValueError):
    """A text is no definition of an Avro type; the error says what is wrong and at which type."""


class AvroDefinition:
    """One type with all that it is made of.

    `avro`: the type, written anew. `recursive`: a record holds itself, so that values can be of any depth.
    `decimals`: some values are decimal numbers.
    Raises `DefinitionError`.
    """

    def __init__(self, given: bytes | str | Mapping[str, Any]) -> None:
        self._open: list[str] = []
        self._empty: dict[str, int] = {}
        self.named: dict[str, Any] = {}
        """The records, enums and fixed types by their full names."""
        self.recursive = self.decimals = False
        self.avro, _ = self._read(_loaded(given), "", 0)

    def _read(self, given: Any, namespace: str, depth: int) -> tuple[Any, int]:
        """Return a type, written anew, and the number of values without bytes in one of its values.

        The number is -1 where a value may take no bytes at all, see `_weight`.
        """
        if depth > MAX_DEPTH:
            raise DefinitionError(f"more than {MAX_DEPTH} types within each other")
        if isinstance(given, str):
            return self._reference(given, namespace)
        if isinstance(given, list):
            return self._union(given, namespace, depth)
        if not isinstance(given, Mapping):
            raise DefinitionError(f"a type is text, a list or an object, not {_short(given)}")
        kind = given.get("type")
        if isinstance(kind, (list, Mapping)):
            return self._read(kind, namespace, depth + 1)
        match kind:
            case "array" | "map":
                return self._container(kind, given, namespace, depth)
            case "record" | "error":
                return self._record(given, namespace, depth)
            case "enum":
                return self._enum(given, namespace), 0
            case "fixed":
                return self._fixed(given, namespace)
            case str() if kind in PRIMITIVES:
                return self._primitive(kind, given), _null_weight(kind)
            case str():
                return self._reference(kind, namespace)
            case _:
                raise DefinitionError(f"an object without a type: {_short(given)}")

    def _reference(self, name: str, namespace: str) -> tuple[Any, int]:
        if name in PRIMITIVES:
            return name, _null_weight(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = full if full in self.named else name
        if found not in self.named:
            raise DefinitionError(f"unknown type {_short(name)}")
        if found in self._open:
            self.recursive = True
            return found, 0
        return found, self._empty[found]

    def _union(self, given: list[Any], namespace: str, depth: int) -> tuple[Any, int]:
        if not given:
            raise DefinitionError("a union without branches")
        branches = []
        most = 0
        for each in given:
            branch, empty = self._read(each, namespace, depth + 1)
            if isinstance(branch, list):
                raise DefinitionError("a union directly within a union")
            branches.append(branch)
            most = max(most, abs(empty))
        kinds = [_kind_of(branch) for branch in branches]
        if len(set(kinds)) < len(kinds):
            raise DefinitionError(f"a union with one type twice: {', '.join(kinds)[:200]}")
        # The number of the branch takes a byte.
        return branches, most

    def _container(self, kind: str, given: Mapping[str, Any], namespace: str, depth: int) -> tuple[Any, int]:
        key = "items" if kind == "array" else "values"
        if key not in given:
            raise DefinitionError(f"an {kind} without {key}" if kind == "array" else f"a map without {key}")
        item, empty = self._read(given[key], namespace, depth + 1)
        if empty < 0 and kind == "array":
            raise DefinitionError("an array of items that take no bytes: its length would have no limit")
        return {"type": kind, key: item}, 0

    def _begin(self, given: Mapping[str, Any], namespace: str) -> tuple[dict[str, Any], str, str]:
        """Return the beginning of a named type, its full name, and the namespace within it."""
        name = given.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise DefinitionError(
                f"{given['type']}: a name of letters, digits, '_' and '$', not {_short(name)}"
            )
        own = given.get("namespace")
        if own is not None and not (isinstance(own, str) and _NAMESPACE.fullmatch(own)):
            raise DefinitionError(f"{given['type']} {name}: a wrong namespace {_short(own)}")
        if "." in name:
            inner, _, name = name.rpartition(".")
        else:
            inner = namespace if own is None else own
        avro = {"type": given["type"], "name": name}
        if inner:
            avro["namespace"] = inner
        full = full_name(avro)
        if name in PRIMITIVES or full in self.named:
            raise DefinitionError(f"{given['type']} {full}: the name is taken")
        self.named[full] = avro
        return avro, full, inner

    def _record(self, given: Mapping[str, Any], namespace: str, depth: int) -> tuple[Any, int]:
        avro, full, inner = self._begin(given, namespace)
        avro["type"] = "record"  # an error is a record to Java, and nothing to the library avro
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise DefinitionError(f"record {full}: fields is a list, not {_short(fields)}")
        self._open.append(full)
        avro["fields"] = entries = []
        total = 1
        takes_bytes = False
        names: set[str] = set()
        for field in fields:
            entry, empty = self._field(field, full, inner, depth)
            if entry["name"] in names:
                raise DefinitionError(f"record {full}: two fields {entry['name']}")
            names.add(entry["name"])
            entries.append(entry)
            total += abs(empty)
            takes_bytes = takes_bytes or empty >= 0
        self._open.pop()
        if total > MAX_EMPTY_VALUES:
            raise DefinitionError(
                f"record {full}: brings {total} values that take no bytes, {MAX_EMPTY_VALUES} are allowed"
            )
        self._empty[full] = total if takes_bytes else -total
        return avro, self._empty[full]

    def _field(self, field: Any, record: str, namespace: str, depth: int) -> tuple[dict[str, Any], int]:
        name = field.get("name") if isinstance(field, Mapping) else None
        if not isinstance(name, str) or not _FIELD.fullmatch(name) or "type" not in field:
            raise DefinitionError(f"record {record}: a field has a name and a type, not {_short(field)}")
        try:
            avro, empty = self._read(field["type"], namespace, depth + 1)
        except DefinitionError as error:
            raise DefinitionError(f"{record}.{name}: {error}") from None
        entry = {"name": name, "type": avro}
        if "default" in field:
            entry["default"] = field["default"]
        return entry, empty

    def _enum(self, given: Mapping[str, Any], namespace: str) -> Any:
        avro, full, _ = self._begin(given, namespace)
        symbols = given.get("symbols")
        if not isinstance(symbols, list) or not all(
            isinstance(each, str) and _SYMBOL.fullmatch(each) for each in symbols
        ):
            raise DefinitionError(f"enum {full}: symbols is a list of names, not {_short(symbols)}")
        if len(set(symbols)) < len(symbols):
            raise DefinitionError(f"enum {full}: a symbol twice")
        avro["symbols"] = list(symbols)
        default = given.get("default")
        if default is not None:
            if default not in symbols:
                raise DefinitionError(f"enum {full}: the default {_short(default)} is none of its symbols")
            avro["default"] = default
        self._empty[full] = 0
        return avro

    def _fixed(self, given: Mapping[str, Any], namespace: str) -> tuple[Any, int]:
        avro, full, _ = self._begin(given, namespace)
        size = given.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**31:
            raise DefinitionError(f"fixed {full}: size is a whole number from 0, not {_short(size)}")
        avro["size"] = size
        if given.get("logicalType") == _LOGICAL_DECIMAL:
            avro.update(self._decimal(given, full))
        self._empty[full] = -1 if size == 0 else 0
        return avro, self._empty[full]

    def _primitive(self, kind: str, given: Mapping[str, Any]) -> Any:
        """Return a primitive type with its logical type. An unknown logical type means nothing, says Avro."""
        logical = given.get("logicalType")
        if not isinstance(logical, str):
            return kind
        if kind == "bytes" and logical == _LOGICAL_DECIMAL:
            return {"type": kind, **self._decimal(given, "bytes")}
        return {"type": kind, "logicalType": logical} if (kind, logical) in LOGICAL else kind

    def _decimal(self, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        precision, scale = given.get("precision"), given.get("scale", 0)
        if not (type(precision) is int and type(scale) is int and 0 <= scale <= precision <= MAX_PRECISION):
            precision = 0
        if not precision:
            raise DefinitionError(
                f"decimal {where}: precision from 1 to {MAX_PRECISION} and scale from 0 to precision, "
                f"not {_short(given.get('precision'))} and {_short(scale)}"
            )
        self.decimals = True
        return {"logicalType": _LOGICAL_DECIMAL, "precision": precision, "scale": scale}


def named_as(reader: Any, writer: Any) -> Any:
    """Return the type `reader` under the name of the type `writer`, where both are records.

    The Java client and broker do not compare the names of the outermost records, and libraries for Avro do.
    """
    if not (_is_record(reader) and _is_record(writer)) or full_name(reader) == full_name(writer):
        return reader
    old, new = full_name(reader), full_name(writer)
    renamed = _with_reference(reader, old, new)
    del renamed["name"]
    renamed.pop("namespace", None)
    namespace, _, name = new.rpartition(".")
    return {"type": renamed.pop("type"), "name": name, "namespace": namespace, **renamed}


def _is_record(avro: Any) -> bool:
    return isinstance(avro, dict) and avro["type"] == "record"


def _with_reference(avro: Any, old: str, new: str) -> Any:
    """Return a type, written anew, in which references to `old` are to `new`. A record may have the name of a
    kind of types, such as array."""
    if isinstance(avro, list):
        return [_with_reference(each, old, new) for each in avro]
    if isinstance(avro, str):
        return new if avro == old else avro
    renamed = dict(avro)
    for key in ("items", "values"):
        if key in renamed:
            renamed[key] = _with_reference(renamed[key], old, new)
    if "fields" in renamed:
        fields = renamed["fields"]
        renamed["fields"] = [{**each, "type": _with_reference(each["type"], old, new)} for each in fields]
    if "name" in renamed:
        renamed.setdefault("namespace", "")  # a type within keeps its full name
    return renamed


def _loaded(given: bytes | str | Mapping[str, Any]) -> Any:
    """Return the JSON of a definition. A bare name is that of a type."""
    if isinstance(given, Mapping) or (isinstance(given, str) and _NAME.fullmatch(given)):
        return given
    try:
        return json.loads(given)
    except (ValueError, UnicodeDecodeError) as error:
        raise DefinitionError(f"no JSON: {error}"[:200]) from None
    except RecursionError:
        raise DefinitionError(f"more than {MAX_DEPTH} types within each other") from None


def _short(value: Any) -> str:
    return f"{value!r:.100}"


def _null_weight(kind: str) -> int:
    return -1 if kind == "null" else 0


def _kind_of(avro: Any) -> str:
    """Return the text that tells a branch of a union from the others: its name, or else its kind."""
    if isinstance(avro, str):
        return avro
    return full_name(avro) if "name" in avro else str(avro["type"])


# --- shapes of values that have no class -------------------------------------------------------------------


def definition_shape(definition: AvroDefinition, form: Form) -> Shape:
    """Return the shape whose values are dicts, lists, text and numbers, as the definition says."""
    return _Shapes(definition, form).shape(definition.avro)


class _Shapes:
    def __init__(self, definition: AvroDefinition, form: Form) -> None:
        self._named = definition.named
        self._form = form
        self._done: dict[str, Shape] = {}

    def shape(self, avro: Any) -> Shape:
        if isinstance(avro, str):
            return PRIMITIVES[avro][self._form] if avro in PRIMITIVES else self._reference(avro)
        if isinstance(avro, list):
            return union_shape(self._form, [self.shape(branch) for branch in avro])
        logical = avro.get("logicalType")
        if logical == _LOGICAL_DECIMAL:
            return self._keep(avro, decimal_shape(self._form, avro))
        if logical is not None:
            return LOGICAL[avro["type"], logical][self._form]
        match avro["type"]:
            case "array":
                return array_shape(self.shape(avro["items"]))
            case "map":
                return map_shape(self.shape(avro["values"]))
            case "enum":
                return self._keep(avro, symbols_shape(avro))
            case "fixed":
                return self._keep(avro, fixed_shape(self._form, avro))
        return self._keep(avro, self._record(avro))

    def _keep(self, avro: Any, shape: Shape) -> Shape:
        if "name" in avro:
            self._done[full_name(avro)] = shape
        return shape

    def _reference(self, name: str) -> Shape:
        """Return the shape of a type by its name. Its record may be in progress: it is looked up for each
        value."""
        done = self._done

        def later(which: str) -> Convert:
            return lambda value: getattr(done[name], which)(value)

        avro = self._named[name]
        is_record = avro["type"] == "record"
        if not is_record:
            return done[name]
        return Shape(name, later("encode"), later("decode"), later("default"), _is_dict, name)

    def _record(self, avro: Any) -> Shape:
        name = full_name(avro)
        fields = {field["name"]: self.shape(field["type"]) for field in avro["fields"]}
        defaults = {
            field["name"]: partial(_default_value, self._named, field["type"], field["default"])
            for field in avro["fields"]
            if "default" in field
        }
        allowed = ", ".join(fields)

        def convert_with(converters: dict[str, Convert], strict: bool) -> Convert:
            def each(value: Any) -> dict[str, Any]:
                if not isinstance(value, Mapping):
                    raise wrong(f"a dict with the fields of {name}", value)
                unknown = next((key for key in value if key not in fields), None)
                if unknown is not None and strict:
                    raise WrongValueError(
                        f"{name} has no field {_short(unknown)}; its fields are {allowed:.200}"
                    )
                plain = {}
                field = ""
                try:
                    for field, convert in converters.items():
                        given = value.get(field, ABSENT)
                        if given is not ABSENT:
                            plain[field] = convert(given)
                        elif field in defaults:
                            default = defaults[field]()
                            plain[field] = convert(default) if strict else default
                        else:
                            raise WrongValueError("the field is missing")
                except WrongValueError as error:
                    raise error.within(f".{field}") from None
                return plain

            return each

        encode = convert_with({field: shape.encode for field, shape in fields.items()}, strict=True)
        default = convert_with({field: shape.default for field, shape in fields.items()}, strict=True)
        decode = convert_with({field: shape.decode or same for field, shape in fields.items()}, strict=False)
        return Shape(avro, encode, decode, default, _is_dict, name)


def _default_value(named: Mapping[str, Any], avro: Any, default: Any) -> Any:
    """Return a default of a definition as a value. A union's default belongs to its first branch.

    Each record gets lists and dicts of its own. Raises `WrongValueError` for a default of another type.
    """
    if isinstance(avro, list):
        return _default_value(named, avro[0], default)
    if isinstance(avro, str):
        if avro not in PRIMITIVES:
            return _default_value(named, named[avro], default)
        avro = {"type": avro}
    kind, logical = avro["type"], avro.get("logicalType")
    try:
        if kind in ("bytes", "fixed"):
            data = default.encode("latin-1")
            return decimal_of(data, avro["scale"]) if logical == _LOGICAL_DECIMAL else data
        if kind == "array":
            return [_default_value(named, avro["items"], each) for each in default]
        if kind == "map":
            return {key: _default_value(named, avro["values"], each) for key, each in default.items()}
        if kind == "record":
            return {
                field["name"]: _default_value(
                    named,
                    field["type"],
                    default[field["name"]] if field["name"] in default else field["default"],
                )
                for field in avro["fields"]
            }
    except (AttributeError, TypeError, LookupError, ValueError):
        raise WrongValueError(f"the default is no {kind}") from None
    if logical is not None:
        convert = LOGICAL[kind, logical][Form.JSON].decode
        assert convert is not None
        return convert(default)
    return default if kind == "enum" else PRIMITIVES[kind][Form.JSON].encode(default)


def _is_dict(value: Any) -> bool:
    return isinstance(value, Mapping)
