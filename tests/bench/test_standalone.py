"""The bench of brokers, with sizes that take seconds."""

import re
import subprocess
import sys

import pytest

SMALL = [
    *("--entries", "400"),
    *("--topics", "5"),
    *("--connections", "20"),
    *("--abusers", "20"),
    *("--backlog", "2000"),
]


def small_run(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench.standalone", *SMALL, *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert "left out" not in done.stdout
    return done.stdout


def test_each_row_is_measured_with_our_broker_in_memory_and_with_data() -> None:
    lines = small_run("--ours").splitlines()[1:]
    first = [line.strip().partition("  ")[0] for line in lines]
    both = ["start", "400 entries, 4 producers", "5 topics, a message each", "20 idle connections"]
    both += ["20 silent connections", "20 halves of a frame", "2 consumers that do not read"]
    assert first == [
        *("ours, in memory:", *both),
        *("ours, --sync always:", *both, "2,000 entries after SIGKILL"),
    ]
    assert all(re.search(r"\d (s|MB)|\d/s", line) for line in lines if line.startswith("  "))


@pytest.mark.real
@pytest.mark.long
def test_each_row_is_measured_with_a_real_pulsar() -> None:
    lines = small_run().splitlines()
    real = lines[lines.index("Apache Pulsar, standalone:") :]
    assert len(real) == 9
