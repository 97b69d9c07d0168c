"""`RegisteredSchema`: the schema of a producer whose payloads are encoded already."""

from ..model.schema import Schema, SchemaInfo


class RegisteredSchema(Schema[bytes]):
    """Registers `info`; the payloads are as they came."""

    def __init__(self, info: SchemaInfo) -> None:
        self._info = info

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data
