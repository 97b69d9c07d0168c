"""Every planted bug is noticed, by an invariant that has to do with it: the whole bank, a world for each.

`known_seeds.json` holds for each bug a seed that noticed it when the table was made. What a seed means
changes with the simulator; a bug that its seed shows no more must be noticed by some other seed soon. When
many have changed, the table is made anew (docs/bank.md says how).
"""

import json
import re
from pathlib import Path

import pytest

from pulsar_sim.bug_bank import BANK
from pulsar_sim.runs.recall import recall_one, try_seed, unknown

KNOWN: dict[str, int] = json.loads(Path(__file__).with_name("known_seeds.json").read_text())

PAGE = (Path(__file__).parents[3] / "docs" / "bank.md").read_text()

SOON = 60
"""Other seeds that are tried where the known one notices nothing any more."""


def test_every_bug_has_a_known_seed() -> None:
    assert set(KNOWN) == set(BANK)


@pytest.mark.slow
@pytest.mark.no_cover  # it would take three times as long, and shows nothing that other tests do not
@pytest.mark.parametrize("name", list(BANK))
def test_the_bug_is_noticed(name: str) -> None:
    recalled = unknown(name)
    if not try_seed(BANK[name], KNOWN[name], recalled) or not recalled.right:
        recalled = recall_one(name, SOON, sample=1)
    assert not recalled.broken, recalled.broken
    assert recalled.caught, f"neither seed {KNOWN[name]} nor {SOON} others notice {name}"
    assert recalled.right, f"noticed by {recalled.rules}: {recalled.first}"
    assert any(recalled.calls.values()), f"noticed, and never called: {recalled.calls}"


def test_every_entry_of_history_is_accounted_for() -> None:
    """An entry of docs/bank.md is planted, or the page says what is missing for it."""
    planted = {bug.origin for bug in BANK.values()} - {"own"}
    rows = re.findall(r"^\| (BUG-\d{3}) \|.*\| ([^|]*?) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 118
    for entry, missing in rows:
        assert (entry in planted) is not bool(missing), entry


def test_the_table_has_every_bug() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (BUG-\d{3}|own) \|", PAGE, re.MULTILINE)
    assert rows == [(bug.name, bug.origin) for bug in BANK.values()]
