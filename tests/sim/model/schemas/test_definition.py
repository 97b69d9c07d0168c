"""Definitions of the reference model read each other as those of the library do."""

from itertools import product

import pytest

from pulsar_sansio.broker.schemas.strategies import unreadable
from pulsar_sansio.model.errors import SchemaDecodingError
from pulsar_sansio.schemas import AvroSchema
from pulsar_sim.model.schemas.definition import (
    COLOURED,
    DEFINITIONS,
    FOREIGN,
    MEASURED,
    PLAIN,
    SIZED,
    Definition,
)

SCHEMAS = {definition: AvroSchema(definition=definition.text) for definition in DEFINITIONS}

PAIRS = [
    pytest.param(one, other, id=f"{one.name} of {other.name}")
    for one, other in product(DEFINITIONS, repeat=2)
]


@pytest.mark.parametrize(("reader", "writer"), PAIRS)
def test_what_reads_what_is_what_the_library_says(reader: Definition, writer: Definition) -> None:
    """INV-S2: also each value is the library's."""
    schema, written = SCHEMAS[reader], SCHEMAS[writer]
    assert reader.reads(writer) is not bool(unreadable(schema.info, written.info))
    value = writer.value(7, "x")
    payload = written.encode(value)
    if reader.reads(writer):
        assert schema.decoder(written.info)(payload) == reader.read(value)
    else:
        with pytest.raises(SchemaDecodingError):
            schema.decoder(written.info)(payload)


def test_one_definition_may_follow_another_one_and_not_the_one_before() -> None:
    """Such a chain shows whether all versions count."""
    assert SIZED.reads(PLAIN)
    assert MEASURED.reads(SIZED)
    assert not MEASURED.reads(PLAIN)
    assert PLAIN.reads(MEASURED)


def test_a_foreign_definition_reads_its_own_values_alone() -> None:
    assert [each for each in DEFINITIONS if each.reads(FOREIGN) or FOREIGN.reads(each)] == [FOREIGN]


def test_values_differ_in_the_fields_of_their_definition() -> None:
    assert COLOURED.value(4, "x") == {"name": "x", "number": 4, "colour": "1"}
    assert SIZED.read(COLOURED.value(4, "x")) == {"name": "x", "number": 4, "size": 7}
