"""The checker at every machine: it hears what a machine writes, and what its peer does is excused."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_sansio.conformance import Side
from pulsar_sansio.wire import encode_flow
from tests.broker.peer import World
from tests.client.script import Script, frame_success
from tests.conformance.listening import everywhere
from tests.conformance.listening.processes.sitecustomize import HEARD


@contextmanager
def listening() -> Iterator[None]:
    """This folder is left alone otherwise; and what is broken here is not held against the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(everywhere, "_listening", True)
        patch.setattr(everywhere, "_violations", [])
        yield


def broken(*excused: str) -> list[str]:
    return [violation.rule_id for violation in everywhere.found(excused, False)]


def test_what_a_client_writes_is_judged() -> None:
    with listening():
        script = Script()
        _, link = script.ready_producer()
        assert broken() == []
        script.connection(link).write(encode_flow(0, 0))
        script.pull(link)
        assert "FLOW-08" in broken()
        assert "FLOW-08" not in broken("FLOW-08")


def test_what_a_broker_writes_is_judged() -> None:
    with listening():
        world = World()
        peer = world.connect()
        peer.producer()
        assert broken() == []
        world.broker.links[peer.link].success(77)
        world.pump()
        assert broken() == ["CONN-07"]


def test_what_the_other_side_does_is_its_own_affair_unless_it_is_real() -> None:
    with listening():
        script = Script()
        _, link = script.ready_producer()
        script.feed(link, frame_success(4711))
        assert broken() == []
        [violation] = everywhere.found((), True)
        assert (violation.rule_id, violation.side) == ("CONN-07", Side.BROKER)


def test_what_a_process_does_that_a_test_starts_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEARD, str(tmp_path))
    code = """
from pulsar_sansio.wire import encode_flow
from tests.client.script import Script
script = Script()
_, link = script.ready_producer()
script.connection(link).write(encode_flow(0, 0))
script.pull(link)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    heard = everywhere.in_processes(tmp_path)
    assert [me for me, _ in heard] == [Side.CLIENT] * len(heard)
    assert "FLOW-08" in {violation.rule_id for _, violation in heard}
    assert everywhere.in_processes(tmp_path) == []
