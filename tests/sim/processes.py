"""The result of a simulator command does not depend on the number of processes."""

import json
from typing import Any

import pytest

from pulsar_trio_command.command import main


def found_by_one_or_two(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    """Return the common result of one and of two processes, without the time."""
    found: list[dict[str, Any]] = []
    for jobs in "12":
        main(["simulate", *command, "--jobs", jobs, "--json"])
        result = json.loads(capsys.readouterr().out)
        del result["seconds"]
        found.append(result)
    alone, together = found
    assert alone == together
    return alone
