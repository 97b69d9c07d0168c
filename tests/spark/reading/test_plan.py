"""Plans: how far a micro-batch goes, how it is divided, and what counts as lost."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_spark.reading.offsets import NOTHING, Position, Range
from pulsar_spark.reading.plan import (
    EntryRun,
    Extent,
    admit,
    clip,
    entries,
    forward,
    lost_by_deletion,
    lost_by_retention,
    pack,
    ranges,
    split,
    walk,
)

few = settings(max_examples=40)


@st.composite
def logs(draw: st.DrawFn) -> list[EntryRun]:
    """The ledgers of a topic, the first perhaps read in part."""
    ledgers = sorted(draw(st.sets(st.integers(0, 40), max_size=4)))
    first = draw(st.integers(0, 5))
    return [
        EntryRun(ledger, first if number == 0 else 0, (first if number == 0 else 0) + draw(st.integers(0, 9)))
        for number, ledger in enumerate(ledgers)
    ]


def begin(log: Extent) -> Position:
    return (log[0].ledger, log[0].first - 1) if log else NOTHING


def end(log: Extent) -> Position:
    return (log[-1].ledger, log[-1].last) if log else NOTHING


def listed(log: Extent) -> list[Position]:
    return [(run.ledger, entry) for run in log for entry in range(run.first, run.last + 1)]


def within(log: Extent, start: Position, stop: Position) -> list[Position]:
    return [position for position in listed(log) if start < position <= stop]


topics = st.dictionaries(st.sampled_from("abcde"), logs(), max_size=5)


@given(logs())
@few
def test_walking_is_counting(log: Extent) -> None:
    assert [walk(log, count) for count in range(1, entries(log) + 1)] == listed(log)


@given(
    logs(),
    st.tuples(st.integers(-1, 41), st.integers(-1, 12)),
    st.tuples(st.integers(-1, 41), st.integers(-1, 12)),
)
@few
def test_clipping_is_filtering(log: Extent, start: Position, stop: Position) -> None:
    assert listed(clip(log, start, stop)) == within(log, start, stop)


@given(topics, st.floats(0.1, 100), st.dictionaries(st.sampled_from("abcde"), st.floats(0.5, 20)))
@few
def test_a_micro_batch_moves_on_and_keeps_to_its_budget(
    logs: dict[str, Extent], budget: float, weights: dict[str, float]
) -> None:
    start = {name: begin(log) for name, log in logs.items()}
    last = {name: end(log) for name, log in logs.items()}
    found = admit(start, last, logs, weights, budget)
    assert set(found) == set(logs)
    spent = 0.0
    for name, log in logs.items():
        assert start[name] <= found[name] <= last[name]
        took = len(within(log, start[name], found[name]))
        assert took >= (1 if log else 0), "every topic that has something moves on"
        spent += took * weights.get(name, 1.0)
    least = sum(weights.get(name, 1.0) for name, log in logs.items() if log)
    assert spent <= budget + least, "soft by one entry of each topic"


@given(topics, st.integers(1, 30))
@few
def test_limits_come_to_the_end(logs: dict[str, Extent], budget: int) -> None:
    """Micro-batch after micro-batch, everything is read once, and the number of them is bounded."""
    last = {name: end(log) for name, log in logs.items()}
    place = {name: begin(log) for name, log in logs.items()}
    read: dict[str, list[Position]] = {name: [] for name in logs}
    batches = 0
    while place != last:
        reached = admit(place, last, {n: clip(log, place[n], last[n]) for n, log in logs.items()}, {}, budget)
        assert reached != place
        for each in ranges(place, reached):
            read[each.topic] += within(logs[each.topic], each.start, each.end)
        place = reached
        batches += 1
    assert read == {name: listed(log) for name, log in logs.items()}
    assert batches <= sum(map(entries, logs.values()))


def test_a_limit_is_shared_out_in_proportion() -> None:
    logs = {"a": [EntryRun(1, 0, 899)], "b": [EntryRun(7, 0, 49), EntryRun(9, 0, 49)]}
    found = admit({"a": (1, -1), "b": (7, -1)}, {"a": (1, 899), "b": (9, 49)}, logs, {}, 100)
    assert found == {"a": (1, 89), "b": (7, 9)}


def test_a_limit_counts_what_entries_hold() -> None:
    logs = {"a": [EntryRun(1, 0, 99)]}
    assert admit({}, {"a": (1, 99)}, logs, {"a": 100.0}, 1000) == {"a": (1, 9)}


def test_no_topic_goes_back_and_none_disappears() -> None:
    assert forward({"a": (5, 3), "b": (2, 2)}, {"a": (4, 9), "c": (1, 1)}) == {
        "a": (5, 3),
        "b": (2, 2),
        "c": (1, 1),
    }
    assert ranges({"a": (5, 3)}, {"a": (4, 9), "c": (1, 1)}) == [Range("c", NOTHING, (1, 1))]
    assert ranges({"a": (5, 3)}, {}) == []


@given(topics, st.integers(1, 20))
@few
def test_parts_cover_the_whole_without_overlap(logs: dict[str, Extent], least: int) -> None:
    whole = ranges({n: begin(log) for n, log in logs.items()}, {n: end(log) for n, log in logs.items()})
    parts = split(whole, logs, least)
    for each in whole:
        mine = [part for part in parts if part.topic == each.topic]
        assert (mine[0].start, mine[-1].end) == (each.start, each.end)
        assert all(part.start < part.end for part in mine)
        assert all(one.end == other.start for one, other in pairwise(mine))
    assert len(parts) >= min(least, sum(map(entries, logs.values())))
    assert parts == split(whole, logs, least)


@given(topics, st.integers(1, 20), st.integers(1, 6))
@few
def test_tasks_have_every_part_once(logs: dict[str, Extent], least: int, most: int) -> None:
    whole = ranges({n: begin(log) for n, log in logs.items()}, {n: end(log) for n, log in logs.items()})
    parts = split(whole, logs, least)
    tasks = pack(parts, most, logs)
    assert len(tasks) <= most
    assert sorted((part for task in tasks for part in task), key=parts.index) == parts
    assert all(list(task) == sorted(task, key=parts.index) for task in tasks)


def test_parts_are_even() -> None:
    parts = split([Range("a", (1, -1), (2, 499))], {"a": [EntryRun(1, 0, 499), EntryRun(2, 0, 499)]}, 4)
    assert [(part.start, part.end) for part in parts] == [
        ((1, -1), (1, 249)),
        ((1, 249), (1, 499)),
        ((1, 499), (2, 249)),
        ((2, 249), (2, 499)),
    ]


def test_tasks_are_even_where_topics_are_not() -> None:
    logs = {"big": [EntryRun(1, 0, 99)], **{f"small{n}": [EntryRun(2, 0, 9)] for n in range(10)}}
    whole = ranges(
        {name: begin(log) for name, log in logs.items()}, {name: end(log) for name, log in logs.items()}
    )
    tasks = pack(whole, 2, logs)
    assert sorted(len(task) for task in tasks) == [1, 10]


def test_a_range_without_an_extent_counts_by_its_positions() -> None:
    whole = [Range("a", (1, -1), (1, 99)), Range("b", (1, 0), (1, 1)), Range("c", (1, 0), (2, 0))]
    assert pack(whole, 2, {}) == [(whole[0],), (whole[1], whole[2])]


def test_what_is_lost_truth_table() -> None:
    assert lost_by_deletion({"a": (1, 2), "b": (3, 4)}, ["b", "c"])[0].topic == "a"
    assert lost_by_deletion({"b": (3, 4)}, ["b", "c"]) == []
    for start, begins, complete, lost in [
        ((10, 50), (10, -1), [], False),  # its ledger is still the first
        ((10, 50), (9, 99), [], False),  # or one later
        ((10, 50), (11, -1), [], True),  # gone, and no look saw its end
        ((10, 50), (11, -1), [(10, 50)], False),  # gone, and that was its end
        ((10, 50), (11, -1), [(10, 51)], True),  # gone with one entry more
        (NOTHING, (11, -1), [], False),  # nothing was read, so nothing is expected
        ((10, 50), NOTHING, [], False),  # the broker does not say
    ]:
        assert (lost_by_retention("a", start, begins, complete) is not None) == lost, (
            start,
            begins,
            complete,
        )
