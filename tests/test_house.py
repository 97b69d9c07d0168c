"""The rules of the house that a machine can check: purity of the core, and nothing foreign in the text."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "src" / "pulsar_sansio"

FORBIDDEN_MODULES = {
    "asyncio",
    "concurrent",
    "datetime",
    "logging",
    "multiprocessing",
    "os",
    "random",
    "sched",
    "secrets",
    "select",
    "selectors",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
    "trio",
    "uuid",
}
"""Clocks, unseeded randomness, sockets, threads, processes and event loops."""

TIMES = CORE / "model" / "times.py"
"""Milliseconds and datetimes."""

DATETIME_VALUES = {
    TIMES,
    CORE / "model" / "message.py",
    CORE / "model" / "config" / "outgoing.py",
    CORE / "schemas" / "choice.py",
    CORE / "schemas" / "shapes" / "leaves.py",
    CORE / "schemas" / "primitives.py",
}
"""Modules that may name `datetime`, for values that applications give or get."""

DATETIME_MAKERS = {TIMES, CORE / "schemas" / "shapes" / "leaves.py", CORE / "schemas" / "primitives.py"}
"""Modules of the core that make datetimes, of numbers and texts that they are given."""

UUID_VALUES = CORE / "schemas" / "shapes" / "leaves.py"
"""The module that may name the type `UUID`, of which applications give and get values."""

RNG = CORE / "core" / "rng.py"
"""The one place that may import `random`, and only to seed it."""


PARALLEL_NAMES = {
    "Client": "the machine and its adapter",
    "Connection": "the two ends of a link",
    "Consumer": "the machines of client and broker, and the adapter",
    "ConsumerStatistics": "the machine and its adapter",
    "Disconnect": "an output of client and broker",
    "Link": "the sockets of the two adapters",
    "Producer": "the machines of client and broker, and the adapter",
    "ProducerBusy": "an error of the core and of Spark",
    "ProducerStatistics": "the machine and its adapter",
    "Reader": "the machine and its adapter",
    "TableView": "the machine and its adapter",
    "TopicNotFound": "an error of the core and of Spark",
    "Transaction": "the machine and its adapter",
    "Transmit": "an output of client and broker",
}
"""Classes that have their name in several rooms because they are one thing seen from each."""


def core_files() -> list[Path]:
    files = sorted(path for path in CORE.rglob("*.py") if not path.name.endswith("_pb2.py"))
    assert CORE / "__init__.py" in files
    return files


def imported_modules(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(CORE)))
def test_core_imports_no_clock_no_socket_no_thread_no_randomness(path: Path) -> None:
    allowed = {"random"} if path == RNG else {"datetime"} if path in DATETIME_VALUES else set()
    tree = ast.parse(path.read_text())
    if path == UUID_VALUES:
        allowed |= {"uuid"}
        assert "from uuid import UUID\n" in path.read_text(), "the type, and no function that makes one"
    assert not imported_modules(tree) & (FORBIDDEN_MODULES - allowed)
    dynamic = {
        node.func.id if isinstance(node.func, ast.Name) else ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert not dynamic & {"__import__", "open", "eval", "exec", "id", "hash"} - _HASH_USERS.get(
        path.name, set()
    )


@pytest.mark.parametrize("path", sorted(DATETIME_VALUES), ids=lambda path: str(path.relative_to(CORE)))
def test_datetimes_ask_no_clock(path: Path) -> None:
    """No `now`, `today` and the like; few modules make a datetime at all."""
    tree = ast.parse(path.read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"now", "today", "utcnow", "fromtimestamp", "astimezone"}
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert path in DATETIME_MAKERS or "datetime" not in called


_HASH_USERS = {"message_id.py": {"hash"}, "parts.py": {"id"}}
"""`id` and `hash` differ from process to process, so a trace must not depend on them. The exceptions are a
value's own `__hash__`, and the walk through a machine, which only asks if it was there before."""


def test_the_random_module_is_only_seeded() -> None:
    names = {
        node.attr
        for node in ast.walk(ast.parse(RNG.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random"
    }
    assert names <= {"Random"}


def tracked_text() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    return [ROOT / name for name in listed if name and not name.startswith("tests/captures/")]


def test_a_class_that_means_something_else_has_another_name() -> None:
    """States of a machine are named through their module (`states.Opening`), which ends in `_states`."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.stem.endswith("_states") or path.name.endswith("_pb2.py"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert sorted(shared) == sorted(PARALLEL_NAMES), {
        name: shared.get(name) for name in sorted(shared.keys() ^ PARALLEL_NAMES)
    }


def test_the_project_stands_alone() -> None:
    """No path of a machine, no folder beside the checkout, no package registry host."""
    registries = ["pypi" + ".org", "files.pythonhosted" + ".org", "repo1.maven" + ".org"]
    needles = [text.encode() for text in ["../" + "shared", "/" + "work/", "/tmp/" + "founder", *registries]]
    found = [
        (str(path.relative_to(ROOT)), needle.decode())
        for path in tracked_text()
        if path.is_file()
        for needle in needles
        if needle in path.read_bytes()
    ]
    assert found == []


def test_protocol_facts_are_cited_by_rule() -> None:
    """By ids of docs/rules.md, not by chapters of a text that the project does not have."""
    chapter = re.compile(rb"\b(exchanges|encodings|behaviour)(\.md|:| [0-9])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked_text()
        if path.is_file() and path.suffix in (".py", ".md", ".proto")
        for match in chapter.finditer(path.read_bytes())
    ]
    assert found == []


def test_the_proto_source_is_the_only_schema() -> None:
    assert [path.name for path in (ROOT / "proto").iterdir()] == ["PulsarApi.proto"]


def test_every_test_that_features_name_is_there() -> None:
    text = (ROOT / "docs" / "features.md").read_text()
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*(?:test_\w+\.py)?)`", text))
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    assert [row[1] for row in rows if row[2] == "yes" and "`" not in row[3]] == []
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).exists()] == []


def test_every_file_that_the_pages_name_is_there() -> None:
    """A path counts from the checkout, from `tests`, or from a package; results in `build` are left out."""
    packages = ("pulsar_sansio", "pulsar_sim", "pulsar_trio", "pulsar_spark")
    roots = [ROOT, ROOT / "tests", ROOT / "src", *(ROOT / "src" / package for package in packages)]
    missing = []
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        named = set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|json|txt|proto))`", text))
        missing += [
            f"{page.name}: {path}"
            for path in sorted(named)
            if not path.startswith("build/") and not any((root / path).exists() for root in roots)
        ]
        links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
        missing += [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_no_test_looks_at_a_stopwatch() -> None:
    """A duration says more of the machine than of the code, so tests count work instead (tests/work.py)."""
    stopwatches = {"process_time", "process_time_ns", "perf_counter", "perf_counter_ns", "timeit"}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name != "__main__.py" and path != Path(__file__):
            assert not stopwatches & set(re.findall(r"\w+", path.read_text())), path


def test_a_test_module_that_needs_spark_says_so() -> None:
    """tests/conftest.py goes by that line, and leaves such modules out of `make test`."""
    for path in sorted((ROOT / "tests" / "spark").glob("test_*.py")):
        text = path.read_text()
        needed = {"pyspark", "py4j", "pyarrow", "numpy"} & imported_modules(ast.parse(text))
        assert not needed or re.search(r"^pytestmark = .*\bmark\.spark\b", text, re.MULTILINE), path


def glossary() -> list[tuple[str, str]]:
    """The terms of docs/glossary.md, each with its text."""
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    return re.findall(r"^\* \*\*(.+?)\*\*: (.+(?:\n  .+)*)", text, re.MULTILINE)


def _in_any_spelling(term: str) -> re.Pattern[str]:
    """A pattern that finds `SendWindow`, `send_window` and `send window` alike."""
    return re.compile(r"[^a-z0-9]{0,6}".join(map(re.escape, re.split("[ -]", term))), re.IGNORECASE)


def test_the_glossary_has_each_term_once_in_order() -> None:
    terms = [term for term, _ in glossary()]
    assert len(terms) > 80
    assert terms == sorted(set(terms), key=str.lower)


def test_every_term_of_the_glossary_is_used() -> None:
    elsewhere = [
        *(path for path in (ROOT / "src").rglob("*.py") if not path.name.endswith("_pb2.py")),
        *(path for path in (ROOT / "docs").glob("*.md") if path.name != "glossary.md"),
    ]
    texts = [path.read_text("utf-8") for path in elsewhere]
    patterns = {term: _in_any_spelling(term) for term, _ in glossary()}
    assert [term for term, pattern in patterns.items() if not any(map(pattern.search, texts))] == []


def test_the_glossary_is_made_of_sentences_and_links_to_its_own_terms() -> None:
    terms = {term for term, _ in glossary()}
    for term, text in glossary():
        words = [len(sentence.split()) for sentence in re.split(r"(?<=[.:])\s+", text)]
        assert max(words) <= 25, term
        assert text.endswith("."), term
        links = re.findall(r"\*(.+?)\*", text.lower().replace("*(simulator)*", ""))
        known = [{link, link.removesuffix("s"), link.removesuffix("ies") + "y"} & terms for link in links]
        assert all(known), links
