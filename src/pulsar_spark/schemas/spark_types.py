"""Types of Spark and of Arrow: which Arrow type Spark takes for a column, and how its DDL calls a type.

Spark compares the types of record batches with its own as a whole, the names of a list's items included.
Pure: Spark's types come in as the values of their JSON.
"""

import re
from typing import Any

import pyarrow as pa

from .value_types import map_type

TIMESTAMP = pa.timestamp("us", tz="UTC")

_BY_NAME: dict[str, tuple[Any, str]] = {
    "boolean": (pa.bool_(), "boolean"),
    "byte": (pa.int8(), "tinyint"),
    "short": (pa.int16(), "smallint"),
    "integer": (pa.int32(), "int"),
    "long": (pa.int64(), "bigint"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "string": (pa.string(), "string"),
    "binary": (pa.binary(), "binary"),
    "date": (pa.date32(), "date"),
    "timestamp": (TIMESTAMP, "timestamp"),
    "timestamp_ntz": (pa.timestamp("us"), "timestamp_ntz"),
}
"""By the name in Spark's JSON: Arrow's type, and the name in DDL."""

_DDL = {str(arrow): name for arrow, name in _BY_NAME.values()} | {
    str(pa.timestamp("ms", tz="UTC")): "timestamp",
    str(pa.timestamp("ms")): "timestamp_ntz",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class NoArrowTypeError(ValueError):
    """A type of Spark that no schema of a topic has."""


def arrow_of(spark: Any) -> Any:
    """Return the Arrow type of a Spark type, given as `DataType.jsonValue()`. Raises `NoArrowTypeError`."""
    if isinstance(spark, str):
        if spark in _BY_NAME:
            return _BY_NAME[spark][0]
        decimal = _DECIMAL.fullmatch(spark)
        if decimal is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
    elif spark.get("type") == "struct":
        return pa.struct(
            [
                pa.field(each["name"], arrow_of(each["type"]), nullable=each["nullable"])
                for each in spark["fields"]
            ]
        )
    elif spark.get("type") == "array":
        item = pa.field("element", arrow_of(spark["elementType"]), nullable=spark["containsNull"])
        return pa.list_(item)
    elif spark.get("type") == "map":
        return map_type(arrow_of(spark["keyType"]), arrow_of(spark["valueType"]), spark["valueContainsNull"])
    raise NoArrowTypeError(f"no schema of a topic has the type {spark!s:.100}")


def ddl_of(arrow: Any) -> str:
    """Return the type in Spark's DDL. Arrow's own words stand for a type that Spark lacks."""
    if pa.types.is_struct(arrow):
        fields = (f"{quoted(each.name)}:{ddl_of(each.type)}{_not_null(each)}" for each in arrow)
        return f"struct<{','.join(fields)}>"
    if pa.types.is_list(arrow):
        return f"array<{ddl_of(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"map<{ddl_of(arrow.key_type)},{ddl_of(arrow.item_type)}>"
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _DDL.get(str(arrow), str(arrow))


def as_spark(arrow: Any) -> Any:
    """Return the Arrow type that Spark takes for values of this type: timestamps have microseconds."""
    if pa.types.is_struct(arrow):
        return pa.struct([each.with_type(as_spark(each.type)) for each in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(as_spark(arrow.value_type)))
    if pa.types.is_map(arrow):
        return map_type(arrow.key_type, as_spark(arrow.item_type), arrow.item_field.nullable)
    return pa.timestamp("us", tz=arrow.tz) if pa.types.is_timestamp(arrow) else arrow


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _not_null(field: Any) -> str:
    return "" if field.nullable else " NOT NULL"
