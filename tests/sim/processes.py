"""What a command of the simulator finds does not depend on how many processes look."""

import json
from typing import Any

import pytest

from pulsar_trio_command.command import main


def found_by_one_or_two(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    """What both find, but for the time that it takes."""
    found: list[dict[str, Any]] = []
    for jobs in "12":
        main(["simulate", *command, "--jobs", jobs, "--json"])
        result = json.loads(capsys.readouterr().out)
        del result["seconds"]
        found.append(result)
    alone, together = found
    assert alone == together
    return alone
