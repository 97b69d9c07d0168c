"""The bank itself: every bug fits the machines, says what it is, and leaves nothing behind."""

import re
from types import ModuleType
from typing import Any

import pytest

from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sim import Streams, World, draw
from pulsar_sim.bug_bank import BANK, Patches, PlantedBug
from pulsar_sim.bug_bank.planted_bug import bug
from pulsar_sim.bug_bank.preconditions import general as needs
from pulsar_sim.faults.catalogue import FAULTS


def names() -> list[str]:
    return list(BANK)


class Recorder(Patches):
    """Sees what is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[tuple[type | ModuleType, str, Any]] = []

    def replace(self, owner: type | ModuleType, name: str, new: Any) -> None:
        self.replaced.append((owner, name, vars(owner)[name]))
        super().replace(owner, name, new)


@pytest.mark.parametrize("name", names())
def test_it_replaces_what_there_is_and_puts_it_back(name: str) -> None:
    patches = Recorder()
    BANK[name].plant(patches)
    assert patches.replaced
    for owner, attribute, before in patches.replaced:
        assert owner.__module__ if isinstance(owner, type) else owner.__name__
        assert vars(owner)[attribute] is not before
    patches.restore()
    for owner, attribute, before in patches.replaced:
        assert vars(owner)[attribute] is before


@pytest.mark.parametrize("name", names())
def test_it_says_what_it_is(name: str) -> None:
    bug = BANK[name]
    assert re.fullmatch(r"BUG-\d{3}|own", bug.origin)
    assert bug.text.endswith(".")
    assert bug.caught_by
    assert all(re.fullmatch(r"[A-Z]+-[A-Z]?\d+|exception", rule) for rule in bug.caught_by)


def test_only_the_machines_are_replaced() -> None:
    """A bug in the simulator would prove nothing."""
    for planted in BANK.values():
        patches = Recorder()
        planted.plant(patches)
        patches.restore()
        for owner, _, _ in patches.replaced:
            module = owner.__module__ if isinstance(owner, type) else owner.__name__
            assert not module.startswith("pulsar_sim"), planted.name


def test_what_does_not_fit_any_more_is_told_at_once() -> None:
    with pytest.raises(KeyError, match="no_such_method"):
        Patches().replace(Producer, "no_such_method", lambda: None)


def test_what_fails_while_it_is_planted_leaves_nothing_behind() -> None:
    before = vars(Permits)["give_back"]

    def half(patches: Patches) -> None:
        patches.replace(Permits, "give_back", lambda *_: None)
        patches.replace(Permits, "no_such_method", lambda *_: None)

    bug = PlantedBug("half", "own", "Half of it fits.", (), ("INV-C6",), half)
    with pytest.raises(KeyError), bug.planted():
        raise AssertionError("it was planted")
    assert vars(Permits)["give_back"] is before


def test_calls_are_counted() -> None:
    class Machine:
        def double(self, number: int) -> int:
            return 2 * number

        @property
        def size(self) -> int:
            return 3

    patches = Patches()
    patches.around(Machine, "double", lambda original, self, number: original(self, number) + 1)
    patches.replace(Machine, "size", property(lambda self: 4))
    machine = Machine()
    assert (machine.double(2), machine.double(3), machine.size) == (5, 7, 4)
    assert patches.calls == {"Machine.double": 2, "Machine.size": 1}
    patches.restore()
    assert (machine.double(2), machine.size) == (4, 3)


def test_two_bugs_cannot_have_one_name() -> None:
    def flow_of_zero(patches: Patches) -> None:
        """Another one."""

    with pytest.raises(ValueError, match="flow-of-zero"):
        bug("own", caught_by=["INV-C13"])(flow_of_zero)


def test_nothing_is_planted_in_a_world_of_its_own() -> None:
    """An unused bank costs nothing: the run before one with a bug equals the run after it."""
    before = World(1).run().trace_hash
    with BANK["flow-of-zero"].planted():
        assert World(1).run().trace_hash != before
    assert World(1).run().trace_hash == before


# --- needs ------------------------------------------------------------------------------------------------


def test_every_bug_finds_its_seeds() -> None:
    """No need asks for what is hardly ever drawn."""
    profiles = [draw(Streams(seed)) for seed in range(800)]
    for planted in BANK.values():
        assert any(all(need(profile) for need in planted.needs) for profile in profiles), planted.name


def test_faults_that_are_needed_exist() -> None:
    for name in [*needs.BREAKING, *needs.UNLOADING]:
        assert name in FAULTS


def test_a_fault_that_does_not_exist_cannot_be_needed() -> None:
    with pytest.raises(ValueError, match="earthquake"):
        needs.fault("earthquake")


def test_suitable() -> None:
    assert needs.suitable(1, [])
    assert not needs.suitable(1, [lambda profile: False])
    fitting = [seed for seed in range(40) if needs.suitable(seed, [needs.deduplication])]
    assert fitting == [seed for seed in range(40) if draw(Streams(seed)).deduplication]
    assert 0 < len(fitting) < 40
