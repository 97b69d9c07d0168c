"""docs/rules.md and its citations: an id stands there once, in order, and every cited id stands there.

Every rule that is built is cited by a test, at a point. There are three ways to cite, for all families alike:
the id by itself in a docstring or comment of a file in tests; `@breaks(id)` over a conversation that breaks
the rule (test_rules_are_broken.py); `caught_by` of a planted bug (test_known_seeds.py). A range of ids cites
nothing, and no file of src and tests may have one.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from pulsar_sim.bug_bank import BANK
from tests.conformance.cases.case import CASES
from tests.sentences import comments, docstrings

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "docs" / "rules.md"
CITING = ("src", "tests", "fuzz", "bench", "examples", "docs")

_NAMES = """
    CLIENT TOPIC MSG WIRE CONN POOL LOOKUP HAND PROD BATCH ROUTE PART CHUNK CONS FLOW LSNR INTC ACK UNACK
    REDEL NACK DLQ RETRY SEEK MULTI PATTERN READER SCHEMA CRYPTO STATS TIMER SUBT BROKER STORE LB TENANT
    GEO TIER PROXY DELAY COMPACT META ADMIN FUNC PROTO TXN ERR CFG GAP CHECK
"""
FAMILIES = (
    *_NAMES.split(),
    "INV-P",
    "INV-C",
    "INV-N",
    "INV-T",
    "INV-S",
    "INV-X",
    "INV-F",
    "INV-E",
    "INV-D",
    "INV-L",
    "INV-A",
)

# Invariants of a letter that has no table (INV-Q1) are recognised too, so that they are reported.
_CITED = re.compile(rf"(?<![\w-])(?:(?:{'|'.join(_NAMES.split())})-[0-9]+|INV-[A-Z][0-9]+)(?!\w)")
_RANGE = re.compile(
    rf"{_CITED.pattern}\s*(?:to|until|through|\.\.\.?|…|–|-|/)\s*(?:{_CITED.pattern}|-?[0-9]+\b)"
)
_NOT_BUILT = re.compile(r"\((?:cluster only, )?not built\)")
_HEADING = re.compile(r"## (?P<family>[A-Z]+(?:-[A-Z])?): \S")
_ROW = re.compile(r"\| (?P<family>[A-Z]+(?=-[0-9])|INV-[A-Z])-?(?P<number>[0-9]+) \| (?P<rule>[^|]*\S) \|")


def cited_ids(text: str) -> list[str]:
    """The rule ids in a text, in order, repetitions included."""
    return _CITED.findall(text)


def tables() -> dict[str, list[str]]:
    """The rows of rules.md by family. Fails on a row that is not `| id | rule |` under a heading."""
    found: dict[str, list[str]] = {}
    family = ""
    for line in RULES.read_text("utf-8").splitlines():
        if line.startswith("## "):
            heading = _HEADING.match(line)
            assert heading, f"not a heading of a table: {line!r}"
            family = heading["family"]
            assert family not in found, f"two tables of {family}"
            found[family] = []
        elif line.startswith("|") and line not in ("| id | rule |", "| --- | --- |"):
            assert family, f"a row before the first heading: {line!r}"
            found[family].append(line)
    return found


def listed_ids() -> list[str]:
    return [row.split(" ", 2)[1] for rows in tables().values() for row in rows]


def not_built() -> set[str]:
    """Return the ids whose lines end with the mark."""
    rows = [_ROW.fullmatch(row) for rows in tables().values() for row in rows]
    return {
        row[0].split(" ", 2)[1] for row in rows if row is not None and _NOT_BUILT.search(row["rule"][-30:])
    }


@cache
def cited_by_tests() -> dict[str, str]:
    """Return the cited ids, each with one of the places that cite it."""
    for path in sorted((ROOT / "tests" / "conformance" / "cases").glob("[!_]*.py")):
        import_module(f"tests.conformance.cases.{path.stem}")
    found = {each.rule_id: f"@breaks of {each.name}" for each in CASES}
    found |= {rule: f"caught_by of {bug.name}" for bug in BANK.values() for rule in bug.caught_by}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path != Path(__file__).resolve():
            source = path.read_text("utf-8")
            for line, text in [*docstrings(ast.parse(source)), *comments(source)]:
                if line == 1:
                    continue  # a module's docstring says what it is about, and shows nothing
                where = f"{path.relative_to(ROOT)}:{line}"
                found |= dict.fromkeys(cited_ids(_RANGE.sub("", text)), where)
    return found


def citing_files() -> Iterator[Path]:
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".md") and path.is_file() and path != Path(__file__).resolve():
                yield path
    yield from sorted(ROOT.glob("*.md"))


def test_no_docstring_of_a_test_module_cites_a_rule() -> None:
    """A rule is cited at the one test that shows it."""
    citing = {
        str(path.relative_to(ROOT)): cited_ids(ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "")
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__).resolve()
    }
    assert {name: ids for name, ids in citing.items() if ids} == {}


def test_there_is_one_table_for_each_family() -> None:
    assert tuple(tables()) == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_holds_its_own_ids_in_ascending_order(family: str) -> None:
    previous = -1
    rows = tables()[family]
    assert rows
    for row in rows:
        parts = _ROW.fullmatch(row)
        assert parts, f"not a row of the form | id | rule |: {row!r}"
        assert parts["family"] == family, row
        assert int(parts["number"]) > previous, f"out of order or twice: {row!r}"
        previous = int(parts["number"])


def test_every_id_is_listed_once() -> None:
    ids = listed_ids()
    assert len(ids) == len(set(ids))


def test_every_listed_id_is_recognised_where_it_is_cited() -> None:
    assert [found for listed in listed_ids() for found in cited_ids(f"(rule {listed}).")] == listed_ids()


def test_every_cited_id_is_listed() -> None:
    listed = set(listed_ids())
    unknown = [
        f"{path.relative_to(ROOT)}:{number}: {cited}"
        for path in citing_files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for cited in cited_ids(line)
        if cited not in listed
    ]
    assert not unknown, "cited but not in docs/rules.md:\n" + "\n".join(unknown)


def test_every_rule_that_is_built_is_cited_by_a_test() -> None:
    done = cited_by_tests().keys() | not_built()
    left = [rule for rule in listed_ids() if rule not in done]
    assert not left, f"neither cited by a test nor marked as not built: {left}"


def test_no_rule_that_is_not_built_is_cited_by_a_test() -> None:
    cited = cited_by_tests()
    assert {rule: cited[rule] for rule in not_built() if rule in cited} == {}


def test_the_mark_stands_at_the_end_of_its_line() -> None:
    marked = [row for rows in tables().values() for row in rows if "not built)" in row]
    assert marked
    assert [row for row in marked if not re.search(rf"{_NOT_BUILT.pattern} \|$", row)] == []


def test_no_file_has_a_range_of_ids() -> None:
    ranges = [
        f"{path.relative_to(ROOT)}: {' '.join(found[0].split())}"
        for folder in ("src", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__).resolve()
        for found in _RANGE.finditer(path.read_text("utf-8"))
    ]
    assert ranges == []


def test_the_files_that_cite_are_found() -> None:
    paths = set(citing_files())
    assert RULES in paths
    assert ROOT / "src" / "pulsar_sansio" / "model" / "message_id.py" in paths
    assert Path(__file__).resolve() not in paths


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("rules PROD-42, ACK-2 and INV-P99.", ["PROD-42", "ACK-2", "INV-P99"]),
        ("SUBT-01 to SUBT-08/CFG-001", ["SUBT-01", "SUBT-08", "CFG-001"]),
        ("CONN-10: unknown, INV-Q1", ["CONN-10", "INV-Q1"]),
        ("UNACK-01 is not ACK-01's", ["UNACK-01", "ACK-01"]),
        ("CRC-32 UTF-8 SHA-256 RFC-1950 BUG-001", []),
        ("deadACK-01 X_ACK-01 X-ACK-01 ACK-01a 0x0e01ACK-01", []),
        ("topic-partition-0 prod-42 INV-P INV-p1 ACK-", []),
    ],
)
def test_what_counts_as_a_citation(text: str, ids: list[str]) -> None:
    assert cited_ids(text) == ids


@pytest.mark.parametrize(
    "text",
    ["rules ACK-01 to ACK-09", "ACK-01 … ACK-09", "ACK-01/ACK-09", "ACK-01/-09", "ACK-01 to\n    ACK-09"],
)
def test_what_counts_as_a_range(text: str) -> None:
    assert _RANGE.search(text)


@pytest.mark.parametrize("text", ["ACK-01, ACK-09", "ACK-01 and ACK-09", "ACK-01 (to the broker)", "ACK-01."])
def test_what_is_no_range(text: str) -> None:
    assert not _RANGE.search(text)
