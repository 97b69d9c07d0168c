"""The trace of a world: its hash is that of everything in it, and of nothing else."""

from collections.abc import Callable

import pytest

from pulsar_sim.engine.trace import Trace

LINES = 1200
"""More lines than one portion of the hash."""


def filled(trace: Trace, notes: bool = False, asked: bool = False) -> Trace:
    for number in range(LINES):
        trace.add(number, "client", "sends")
        trace.add_bytes(number, "wire 1", "carries", b"%d" % number)
        if notes:
            trace.note(number, "wire 1", "SEND")
        if asked and number % 100 == 0:
            trace.hexdigest()
    return trace


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("notes", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_equal_runs_have_one_hash(keep: bool, notes: bool, asked: bool) -> None:
    """Neither what is kept or noted for readers counts, nor how often the hash was asked for."""
    assert filled(Trace(keep), notes, asked).hexdigest() == filled(Trace()).hexdigest()


MORE: list[Callable[[Trace], None]] = [
    lambda trace: trace.add(LINES, "client", "sends"),
    lambda trace: trace.add(0, "broker", "sends"),
    lambda trace: trace.add(0, "client", "receives"),
    lambda trace: trace.add_bytes(0, "wire 1", "carries", b"ab"),
    lambda trace: trace.add_bytes(0, "wire 1", "carries", b"ba"),
    lambda trace: trace.add_bytes(0, "wire 1", "carries", b"a"),
]


def test_every_part_of_an_event_counts() -> None:
    found = []
    for add in MORE:
        trace = filled(Trace())
        add(trace)
        found.append(trace.hexdigest())
    assert len({filled(Trace()).hexdigest(), *found}) == len(MORE) + 1


def test_lines_are_kept_in_their_order_with_the_notes_between_them() -> None:
    trace = Trace(keep=True)
    trace.add(1, "client", "sends")
    trace.note(2, "wire 1", "SEND producer_id=0")
    trace.add_bytes(3, "wire 1", "carries", b"abc")
    trace.hexdigest()
    assert trace.lines == [
        "1 client sends",
        "2 wire 1   SEND producer_id=0",
        "3 wire 1 carries 3 bytes",
    ]


def test_nothing_is_kept_for_no_reader() -> None:
    trace = filled(Trace(), notes=True)
    trace.hexdigest()
    assert trace.lines == []
