"""The code in README.md, docs/sending.md and docs/testing.md does what its page says."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
import trio

import pulsar_sansio
import pulsar_trio
from pulsar_trio import OutgoingMessage, open_broker, open_client
from tests.examples.pages import DOCS, blocks
from tests.patience import PATIENCE

SENDING = blocks("sending.md", "python")


def compiled(source: str, page: str) -> CodeType:
    code = compile(source, str(DOCS / page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(code, CodeType)
    return code


@pytest.mark.parametrize("number", range(len(SENDING)))
async def test_sending(number: int) -> None:
    async with open_broker() as broker, open_client(broker.url) as client:
        names = {
            "client": client,
            "broker": broker,
            "trio": trio,
            "OutgoingMessage": OutgoingMessage,
        }
        with trio.fail_after(PATIENCE):
            outcome = eval(compiled(SENDING[number], "sending.md"), names)
            if inspect.isawaitable(outcome):
                await outcome
        assert broker.topics() or broker.topics("public/exact"), "the block did something"


def test_the_page_about_sending_names_every_refusal_as_it_is() -> None:
    """The table's last column agrees with `retryable`. Rule PROD-58."""
    rows = (DOCS / "sending.md").read_text().split("## Errors")[1].splitlines()
    answers: set[bool] = set()
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        if len(cells) != 3 or not cells[0].startswith("`") or cells[2].startswith("a new producer"):
            continue
        for name in cells[0].replace("`", "").split(", "):
            kind = getattr(pulsar_trio, name, None) or getattr(pulsar_sansio, name)
            assert kind.retryable == cells[2].startswith("yes"), name
            answers.add(kind.retryable)
    assert answers == {True, False}


def test_the_readme() -> None:
    """Its one program runs as it stands, and prints the message that it has sent."""
    (program,) = blocks("../README.md", "python")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("b'hello' user-1 ")


TESTING = [*blocks("testing.md", "toml"), *blocks("testing.md", "python")]


def file_name(block: str) -> str:
    """Return the name in the first line of a block: `# conftest.py`."""
    first, _, _ = block.strip().partition("\n")
    assert first.startswith("# "), f"a block of the page names its file first, not {first!r}"
    return first.removeprefix("# ")


@pytest.mark.slow
def test_testing(tmp_path: Path) -> None:
    """Its blocks are the files of a project, whose tests pass with no settings but those of the page."""
    tests = 0
    for block in TESTING:
        (tmp_path / file_name(block)).write_text(block.strip() + "\n")
        tests += len(re.findall(r"^(?:async )?def test_", block, re.MULTILINE))
    # The plugin is loaded by name as well, for a checkout that was installed before it had one.
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "-p", "pulsar_trio_pytest.plugin"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{tests} passed" in run.stdout


def test_each_file_of_the_page_is_one() -> None:
    names = [file_name(block) for block in TESTING]
    assert names[:2] == ["pyproject.toml", "conftest.py"]
    assert len(set(names)) == len(names)
