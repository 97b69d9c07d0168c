"""Coverage of simulated worlds: recorded where it happens, without a trace in the machines or in the run."""

import pickle
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import pulsar_sansio
from pulsar_sansio import Broker, BrokerConfig, MemoryStore
from pulsar_sansio.broker import broker as broker_root
from pulsar_sansio.broker.topics.producing.deduplication import Deduplication
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.core.buffers import ReceiveBuffer
from pulsar_sansio.core.transitions import Transitions
from pulsar_sansio.model.errors import PersistenceError
from pulsar_sim import Outcome, World
from pulsar_sim.coverage_points import COVERAGE_POINTS, CoveragePoint, coverage_point
from pulsar_sim.runs.coverage import MAPS, TABLES, TO_BROKERS, TO_CLIENTS, Coverage, Recorder

FIRST, FEWEST, MOST = 121, 4, 40
"""From which seed on, and how many, until the connection's table is reached. Which do it changes with the
draws."""


@pytest.fixture(scope="module")
def observed() -> tuple[Coverage, list[str], int]:
    """Return the coverage of a few worlds, their hashes, and the number of MESSAGE in their transcripts.

    Conversations with raw brokers are left out: neither brokers nor transcripts see them.
    """
    coverage = Coverage()
    hashes = []
    messages = 0
    with pytest.MonkeyPatch.context() as patches, Recorder() as recorder:
        patches.setattr("pulsar_sim.world.world.hold_client_conversations", lambda *_: None)
        for seed in range(FIRST, FIRST + MOST):
            report = World(seed, keep_trace=True).run()
            assert report.outcome is not Outcome.EXCEPTION, report.text
            hashes.append(report.trace_hash)
            messages += sum(" <- MESSAGE" in line for line in report.transcript)
            coverage.add(recorder.take())
            if len(hashes) >= FEWEST and not coverage.missing("connection"):
                break
    return coverage, hashes, messages


def modules() -> Iterator[ModuleType]:
    for found in walk_packages(pulsar_sansio.__path__, "pulsar_sansio."):
        yield import_module(found.name)


def test_every_transition_table_is_watched() -> None:
    tables = {
        id(value): value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, Transitions)
    }
    assert sorted(table.name for table in tables.values()) == sorted(TABLES)


def test_the_machines_are_as_they_were() -> None:
    watched = [(point.owner, point.method) for point in COVERAGE_POINTS.values()]
    watched += [(Transitions, "check"), (Transitions, "allows")]
    before = [vars(owner)[method] for owner, method in watched]
    handlers = broker_root.HANDLERS
    with Recorder():
        during = [vars(owner)[method] for owner, method in watched]
        assert broker_root.HANDLERS is not handlers
    assert [vars(owner)[method] for owner, method in watched] == before
    assert all(new is not old for new, old in zip(during, before, strict=True))
    assert broker_root.HANDLERS is handlers


def test_a_point_that_does_not_fit_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    misfit = CoveragePoint("misfit", "Never.", Permits, "no_such_method", lambda *_: False)
    monkeypatch.setitem(COVERAGE_POINTS, "misfit", misfit)
    check = vars(Transitions)["check"]
    with pytest.raises(KeyError, match="no_such_method"), Recorder():
        pass
    assert vars(Transitions)["check"] is check


@pytest.mark.slow
def test_a_world_does_not_notice_that_it_is_watched(observed: tuple[Coverage, list[str], int]) -> None:
    hashes = observed[1]
    assert [World(seed).run().trace_hash for seed in range(FIRST, FIRST + len(hashes))] == hashes


def test_moves_and_commands_tell_one_story(observed: tuple[Coverage, list[str], int]) -> None:
    cells = observed[0].cells
    connected = cells["connection", "Handshaking", "CONNECTED"]
    assert connected == cells[TO_CLIENTS, "handshaking", "CONNECTED"]
    assert (
        connected
        <= cells[TO_BROKERS, "before CONNECT", "CONNECT"]
        <= cells["connection", "Opening", "OPENED"] + cells["connection", "Authenticating", "OPENED"]
    )
    opened = cells["attachment", "Opening", "OPENED"]
    assert 0 < opened <= cells["attachment", "Connecting", "CONNECTED"]
    answered = cells[TO_CLIENTS, "answer awaited", "PRODUCER_SUCCESS"]
    assert answered <= cells[TO_BROKERS, "for no handle", "PRODUCER"]
    # Every message counts, also those that the client decodes as uniform messages.
    messages = sum(
        count for (name, _, kind), count in cells.items() if (name, kind) == (TO_CLIENTS, "MESSAGE")
    )
    assert messages == observed[2]


def test_only_what_a_table_has_is_counted_as_a_move(observed: tuple[Coverage, list[str], int]) -> None:
    coverage = observed[0]
    for name, row, column in coverage.cells:
        assert (row, column) in MAPS[name].legal
    for name, row, column in coverage.illegal:
        assert (row, column) not in MAPS[name].legal


def test_maps_have_the_whole_of_their_tables() -> None:
    for name, table in TABLES.items():
        each = MAPS[name]
        assert len(each.legal) == len(table.table)
        assert {row for row, _ in each.legal} <= set(each.rows)
        assert {column for _, column in each.legal} <= set(each.columns)
        assert len(each.rows) == len(table.states)


def test_a_few_worlds_reach_most_of_it(observed: tuple[Coverage, list[str], int]) -> None:
    coverage, hashes, _ = observed
    assert coverage.missing("connection") == []
    found = coverage.as_json()
    assert found["maps"]["connection"]["reached"] == 8
    assert found["maps"]["connection"]["legal"] == 8
    assert set(found["coverage_points_missing"]) == set(COVERAGE_POINTS) - set(coverage.points)
    assert "frame in pieces" in coverage.points
    assert found["coverage_points"]["frame in pieces"]["seeds"] <= len(hashes)
    assert (
        found["maps"]["attachment"]["cells"]["Idle"]["START"] == coverage.cells["attachment", "Idle", "START"]
    )


def test_what_is_missing_is_named() -> None:
    missing = Coverage().missing_moves
    assert "connection: OPENED in Opening" in missing
    assert len(missing) == sum(len(table.table) for table in TABLES.values())
    assert Coverage(points={"window full": 1}).missing_points == [
        name for name in COVERAGE_POINTS if name != "window full"
    ]


def test_coverage_adds_up_and_travels_between_processes() -> None:
    one = Coverage({("m", "r", "c"): 1}, {("m", "r", "d"): 2}, {"a": 3, "b": 1}, {"a": 1, "b": 1})
    other = pickle.loads(pickle.dumps(Coverage({("m", "r", "c"): 5}, {}, {"a": 4}, {"a": 1})))
    one.add(other)
    assert one == Coverage({("m", "r", "c"): 6}, {("m", "r", "d"): 2}, {"a": 7, "b": 1}, {"a": 2, "b": 1})


def test_taking_begins_anew() -> None:
    with Recorder() as recorder:
        buffer = ReceiveBuffer()
        buffer.hold(bytes(2), 0)
        assert buffer.feed(bytes(2)) == bytes(4)
        assert recorder.take().points == {"frame in pieces": 1}
        assert recorder.take() == Coverage()


def test_what_is_not_legal_is_counted_apart() -> None:
    with Recorder() as recorder:
        broker = Broker(0, BrokerConfig(), MemoryStore().load(), seed=1, wall_time=0)
        broker.accepted(0, 7, "a-producer")
        broker.receive_data(0, 7, bytes.fromhex("00000006 00000002 0878"))  # of a later version
        coverage = recorder.take()
    assert coverage.illegal == {(TO_BROKERS, "before CONNECT", "command 120"): 1}
    assert coverage.cells == {}


# --- coverage points -----------------------------------------------------------------------------------


def test_each_point_says_what_happened_and_watches_a_method() -> None:
    for each in COVERAGE_POINTS.values():
        assert each.text.endswith(".")
        assert callable(vars(each.owner)[each.method])


def test_no_two_points_have_one_name() -> None:
    def window_full(*_: object) -> bool:
        return False

    with pytest.raises(ValueError, match="window full"):
        coverage_point(Permits, "charge")(window_full)


def test_more_messages_than_permits_is_an_overrun() -> None:
    with Recorder() as recorder:
        permits = Permits(4)
        permits.attach(lambda granted: None)
        permits.at_broker -= 3  # a batch of three
        permits.give_back(3)
        assert recorder.take().points == {}
        permits.at_broker -= 16  # a batch of sixteen
        permits.give_back(16)
        assert recorder.take().points == {"permits overrun": 1}


def test_a_message_sent_again_is_known_or_not_yet() -> None:
    with Recorder() as recorder:
        known = Deduplication({}, now=0, limit=10)
        assert not known.is_duplicate("producer", 0, 4)
        assert recorder.take().points == {}
        with pytest.raises(PersistenceError):
            known.is_duplicate("producer", 0, 4)
        assert recorder.take().points == {}
        known.stored("producer", 4)
        assert known.is_duplicate("producer", 0, 4)
        assert recorder.take().points == {"resent message known": 1}
