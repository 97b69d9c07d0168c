"""State that machines must release at an end, at the loss of a connection, and at rest."""

import pytest

from pulsar_sansio.client.connecting.pool import Pool
from pulsar_sansio.client.consuming.blocked_watch import BlockedWatch
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.positions.positions import Positions
from pulsar_sansio.core.context import Context
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.leftovers.audit import Moment
from pulsar_sim.mutants import broken_by
from pulsar_sim.world import world as worlds


@pytest.mark.parametrize(
    ("machine", "method", "world", "text"),
    [
        (Permits, "detach", "produce-single", "has ended, and Permits._grant is a function"),
        (Pool, "ended", "produce-single", "is closed, and Links.open is a dict of 1"),
        (BlockedWatch, "detach", "consume-shared", "has ended, and BlockedWatch._connection is a Connection"),
        (
            Positions,
            "detach",
            "unload-while-receiving",
            "is detached, and Positions._connection is a Connection",
        ),
    ],
)
def test_what_is_not_let_go_of_is_named(
    monkeypatch: pytest.MonkeyPatch, machine: type, method: str, world: str, text: str
) -> None:
    """A machine that does not forget its connection is found at its end or at the loss."""
    monkeypatch.setattr(worlds, "AUDITED_PERMILLE", 1000)
    assert broken_by(f"{world}: order of time") == ""
    monkeypatch.setattr(machine, method, lambda self, *arguments, **options: None)
    assert broken_by(f"{world}: order of time").endswith(text)


def test_a_link_that_is_given_up_before_it_is_open_leaves_nothing() -> None:
    """In these worlds clients give up links while they are connecting, and are closed later."""
    for seed in (1012, 1017, 1037):
        assert broken_by(f"seed {seed}") == ""


def test_a_timer_belongs_to_a_part_of_the_machine() -> None:
    """A timer of a released part is found; a timer of a part in use, or one that is not set, is not."""
    root: Context[object] = Context(0, 0)
    gone: Context[object] = Context(0, 0)
    moment = Moment("is at rest", "")
    slot = root.deadlines.slot(gone.new_id)  # type: ignore[arg-type]
    moment.check_root("root", root, root.deadlines)
    slot.set(10)
    with pytest.raises(ViolationError, match=r"root is at rest and waits to call Context\.new_id"):
        moment.check_root("root", root, root.deadlines)
    slot.clear()
    root.deadlines.slot(root.new_id).set(10)  # type: ignore[arg-type]
    moment.check_root("root", root, root.deadlines)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("Context: outputs=empty", "Context.outputs is a deque of 1"),
        ("Context: _next_link=0", "Context._next_link is 1"),
        ("Context: _next_id=0 unknown=1", ""),
        ("Context: _next_link=in:outputs", "Context._next_link is 1"),
    ],
)
def test_a_table_says_what_attributes_hold(table: str, text: str) -> None:
    """A table gives attributes that are empty or have a value; an attribute that an object lacks is
    ignored."""
    root: Context[object] = Context(0, 0)
    root.emit(object())
    root.new_link()
    found = ""
    try:
        Moment("is at rest", table).check("root", root)
    except ViolationError as error:
        found = error.text.removeprefix("root is at rest, and ")
    assert found == text
