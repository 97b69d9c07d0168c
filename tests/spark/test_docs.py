"""docs/spark.md has the tables that the code is made from."""

from pathlib import Path

import pytest

from pulsar_spark.options.option_table import READS, WRITES, Use
from pulsar_spark.options.query_options import options_table

DOCS = (Path(__file__).parent.parent.parent / "docs" / "spark.md").read_text()


@pytest.mark.parametrize("uses", [READS, WRITES], ids=["reads", "writes"])
def test_every_option_is_there_as_it_is(uses: frozenset[Use]) -> None:
    missing = [line for line in options_table(uses).splitlines() if line not in DOCS]
    assert missing == []
