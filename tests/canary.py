"""The canary, a text in the credentials of all tests, and a plugin that looks for it in what a run leaves.

`tests/conftest.py` adds the plugin. A test fails when the canary is in its log records, its standard
output and error, the text of its failure, or the output of a process that it started. A run fails
when a file in its temporary folder or in `build/` has the canary. Tokens and HTTP headers encode a credential
by Base64, so the plugin knows these forms of the canary, too. It also looks for private keys.
"""

import logging
import subprocess
import time
from base64 import b64encode
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

CANARY = "canary-secret"
"""A part of every password, token, key and client secret of the tests."""

BUILD = Path(__file__).parents[1] / "build"

CREDENTIAL_FILES = (
    "*.conf",
    "*.key",
    "*.ini",
    "*.toml",
    "*credentials*",
    "*passwd*",
    "password*",
    "*secret*",
    "*token*",
)
"""Names of files by which a test gives a credential to a program."""

LOGGERS = ("pulsar_trio", "pulsar_spark", "pulsar_security", "pulsar_sansio")
"""The loggers of the project. The tests of `tests/security` and some others switch their debug records on."""


def forms(text: str) -> tuple[bytes, ...]:
    """Return the text as it stands, and what Base64 makes of it at each of the three places in a group."""
    plain = text.encode()
    encoded = [plain, b"PRIVATE KEY-----"]
    for before in range(3):
        whole = b64encode(bytes(before) + plain)
        encoded.append(whole[-(-before * 8 // 6) : (before + len(plain)) * 8 // 6])
    return tuple(encoded)


FORMS = forms(CANARY)


def has_canary(text: str | bytes) -> bool:
    """Return whether the text has the canary in one of its forms."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    return any(form in data for form in FORMS)


_found: list[str] = []
"""The places where the canary was seen since the last report."""


class _Records(logging.Handler):
    """Reads each record as a handler of the application would write it, with its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        if has_canary(self.format(record)):
            _found.append(f"a log record of {record.name}")


_records = _Records()
_communicate = subprocess.Popen.communicate


def _searched_communicate(
    process: "subprocess.Popen[Any]", *arguments: Any, **options: Any
) -> tuple[Any, Any]:
    """Read the output of a process, and search it."""
    outputs = _communicate(process, *arguments, **options)
    for name, output in zip(("standard output", "standard error"), outputs, strict=True):
        if output and has_canary(output):
            _found.append(f"the {name} of a process that the test started")
    return outputs


def pytest_configure() -> None:
    for name in LOGGERS:
        logging.getLogger(name).addHandler(_records)
    subprocess.Popen.communicate = _searched_communicate  # type: ignore[method-assign, assignment]


def pytest_unconfigure() -> None:
    for name in LOGGERS:
        logging.getLogger(name).removeHandler(_records)
    subprocess.Popen.communicate = _communicate  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    found, _found[:] = list(_found), []
    for name, text in report.sections:  # with those of the phases before, which have been searched
        if name.endswith(report.when) and has_canary(text):
            found.append(f"section {name!r} of the report")
    if report.failed and has_canary(report.longreprtext):
        found.append("the text of the failure")
    if found:
        report.outcome = "failed"
        report.longrepr = f"{report.longreprtext}\na credential of the tests is in {', '.join(found)}".strip()
    return report


@pytest.fixture(scope="session", autouse=True)
def _files_without_the_canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Search the files of the run when the last test has ended."""
    began = time.time()
    yield
    found = [*files_with_canary(tmp_path_factory.getbasetemp()), *files_with_canary(BUILD, began)]
    assert not found, f"a credential of the tests is in {', '.join(map(str, found[:20]))}"


def files_with_canary(folder: Path, since: float = 0.0) -> Iterator[Path]:
    """Find files that have the canary and that no test wrote as a credential. `since`: seconds since 1970."""
    for file in _files(folder):
        if any(fnmatch(file.name, pattern) for pattern in CREDENTIAL_FILES):
            continue
        with suppress(OSError):  # a process that ends may still remove its files
            if file.stat().st_mtime >= since and has_canary(file.read_bytes()):
                yield file


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
