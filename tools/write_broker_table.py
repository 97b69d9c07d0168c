"""Write the table of docs/broker.md anew, from the table that the command reads settings by.

python tools/write_broker_table.py
"""

from pathlib import Path

from pulsar_trio_command.broker.settings import table

DOCS = Path(__file__).parent.parent / "docs" / "broker.md"
BEGIN, END = "<!-- settings -->\n", "<!-- end of settings -->\n"


def main() -> None:
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCS.write_text(f"{before}{BEGIN}\n{table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
