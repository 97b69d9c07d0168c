"""The plugin that looks for the canary finds it wherever a test lets it out, and nowhere else."""

import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from tests.canary import CANARY, files_with_canary, has_canary

ROOT = Path(__file__).parents[1]

TESTS = """
import base64
import logging
import subprocess
import sys

from tests.canary import CANARY

HEADER = base64.b64encode(f"user:{CANARY}".encode()).decode()

def test_no_leak():
    assert CANARY

def test_standard_output():
    print(CANARY)

def test_header_on_standard_error():
    print(HEADER, file=sys.stderr)

def test_debug_record(caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("pulsar_trio.request").debug("sent %s", {"token": CANARY})

def test_traceback_of_a_record():
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("pulsar_trio.broker").exception("failed")

def test_process():
    code = "import sys; sys.stderr.write(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, CANARY], capture_output=True, check=True)

def test_failure():
    raise ValueError(CANARY)
"""

WRITING_TEST = """
from tests.canary import CANARY

def test_one(tmp_path):
    (tmp_path / "trace").write_text(CANARY)
"""


def run(folder: Path, text: str) -> tuple[int, str]:
    """Run these tests with the plugin alone. What they leave is removed, so that this run has no leak."""
    (folder / "test_leaks.py").write_text(text)
    temporary = folder / "temporary"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.canary",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    with (folder / "secret-output").open("w+") as output:
        done = subprocess.run(
            [*command, f"--rootdir={folder}", f"--basetemp={temporary}", "test_leaks.py"],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={"PYTHONPATH": f"{ROOT}", "PATH": ""},
            check=False,
        )
        shutil.rmtree(temporary)
        output.seek(0)
        return done.returncode, output.read()


def test_each_leak_fails_its_test(tmp_path: Path) -> None:
    status, output = run(tmp_path, TESTS)
    assert status == 1
    assert "6 failed, 1 passed" in output
    found = [line for line in output.splitlines() if line.startswith("a credential of the tests is in ")]
    assert [line.removeprefix("a credential of the tests is in ") for line in found] == [
        "section 'Captured stdout call' of the report",
        "section 'Captured stderr call' of the report",
        "a log record of pulsar_trio.request, section 'Captured log call' of the report",
        "a log record of pulsar_trio.broker, section 'Captured log call' of the report",
        "the standard error of a process that the test started",
        "the text of the failure",
    ]


def test_a_file_fails_the_run(tmp_path: Path) -> None:
    status, output = run(tmp_path, WRITING_TEST)
    assert status == 1
    assert "a credential of the tests is in " in output
    assert "/trace" in output


def test_files_that_hold_credentials_are_left_out(tmp_path: Path) -> None:
    for name in ("client.conf", "token", "server.key", "log", "nothing"):
        (tmp_path / name).write_text("" if name == "nothing" else f"a {CANARY}")
    assert list(files_with_canary(tmp_path)) == [tmp_path / "log"]
    later = (tmp_path / "log").stat().st_mtime + 1
    assert list(files_with_canary(tmp_path, later)) == []
    (tmp_path / "log").unlink()


@pytest.mark.parametrize("before", ["", "a", "ab"])
@pytest.mark.parametrize("after", ["", "a", "ab"])
def test_base64_at_each_place_in_a_group(before: str, after: str) -> None:
    text = f"{before}{CANARY}{after}"
    assert has_canary(text)
    assert has_canary(b64encode(text.encode()))
    assert not has_canary(b64encode(text.replace("secret", "public").encode()))
