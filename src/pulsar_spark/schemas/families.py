"""The families of schemas that have values in Spark: decoders and encoders are chosen by these."""

from enum import Enum, auto
from typing import NamedTuple

from pulsar_sansio import SchemaDecodingError
from pulsar_sansio.schemas import KeyValueEncoding, SchemaInfo, SchemaType
from pulsar_sansio.schemas.key_value import parts_of

from .avro_types import NoSparkTypeError
from .primitive_types import PRIMITIVES


class Family(Enum):
    """The definitions of a family are of one kind, and so are its payloads."""

    PRIMITIVE = auto()
    STRUCTURE = auto()
    """AVRO and JSON."""
    PROTOBUF = auto()
    PAIR = auto()


def family_of(info: SchemaInfo) -> Family:
    """Return the family of a definition. Raises `NoSparkTypeError` where Spark has no type for its values."""
    if info.type in PRIMITIVES:
        return Family.PRIMITIVE
    match info.type:
        case SchemaType.AVRO | SchemaType.JSON:
            return Family.STRUCTURE
        case SchemaType.PROTOBUF_NATIVE:
            return Family.PROTOBUF
        case SchemaType.KEY_VALUE:
            return Family.PAIR
        case SchemaType.PROTOBUF:
            raise NoSparkTypeError(
                "values of the schema type PROTOBUF have no type in Spark: the definition lacks the numbers "
                "of fields. Read bytes, and use from_protobuf"
            )
    raise NoSparkTypeError(f"values of the schema type {info.type.name} have no type in Spark")


class Pair(NamedTuple):
    """The definitions of a key and a value."""

    key: SchemaInfo
    value: SchemaInfo
    separated: bool


def pair_of(info: SchemaInfo) -> Pair:
    """Return the parts of a KEY_VALUE definition. Raises `NoSparkTypeError` where it is wrong."""
    try:
        key, value, encoding = parts_of(info)
    except SchemaDecodingError as error:
        raise NoSparkTypeError(str(error)) from None
    return Pair(key, value, encoding is KeyValueEncoding.SEPARATED)
