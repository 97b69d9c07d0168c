"""Tests of what the report of a failed test takes from the log of a real broker."""

from pathlib import Path

from tests.real_pulsar.java_process import JavaProcess
from tests.real_pulsar.told import LINES, telling

LOG = """\
12:00:01.000 [main] INFO  Broker - started
12:00:02.000 [io-1] WARN  PersistentTopic - Failed to persist msg in store
java.lang.IllegalStateException: no snapshot
\tat org.apache.pulsar.Some.method(Some.java:1)
12:00:03.000 [io-1] INFO  PersistentTopic - Un-fencing topic
"""


def test_lines_that_tell_of_trouble_are_shown_without_stack_traces() -> None:
    lines = LOG.splitlines()
    assert telling(LOG) == [lines[1], lines[2], lines[4]]
    assert telling(lines[0]) == ["no warning"]
    assert (
        telling("".join(f"at {number} ERROR x\n" for number in range(100)))[0] == f"at {100 - LINES} ERROR x"
    )


def test_a_test_sees_the_log_from_where_it_was_when_the_test_began(tmp_path: Path) -> None:
    process = JavaProcess("Main", [], tmp_path, [], tmp_path)
    (tmp_path / "log").write_text("before\n")
    began = process.logged
    (tmp_path / "log").write_text("before\nmeanwhile\n")
    assert (process.log_from(began), process.log) == ("meanwhile\n", "before\nmeanwhile\n")
