"""Write the tables of docs/spark.md anew, from the tables that the code is made from.

    python tools/write_spark_tables.py

Needs the extra "spark" for the columns' types.
"""

from pathlib import Path

from pulsar_spark.options.option_table import READS, WRITES
from pulsar_spark.options.query_options import options_table
from pulsar_spark.reading.columns import ALL_COLUMNS

DOCS = Path(__file__).parent.parent / "docs" / "spark.md"


def replaced(text: str, name: str, table: str) -> str:
    """The text with this table between the marks of that name."""
    before, rest = text.split(f"<!-- {name} -->\n")
    _, after = rest.split(f"<!-- end of {name} -->\n")
    return f"{before}<!-- {name} -->\n\n{table.strip()}\n\n<!-- end of {name} -->\n{after}"


def columns_table() -> str:
    rows = [f"| `{name}` | {column.ddl} | {column[-1]} |" for name, column in ALL_COLUMNS.items()]
    return "\n".join(["| column | type | what |", "| --- | --- | --- |", *rows])


def main() -> None:
    text = DOCS.read_text()
    text = replaced(text, "columns", columns_table())
    text = replaced(text, "options of reads", options_table(READS))
    DOCS.write_text(replaced(text, "options of writes", options_table(WRITES)))


if __name__ == "__main__":
    main()
