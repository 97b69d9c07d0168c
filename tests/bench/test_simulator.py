"""The simulator's row: what is counted, and that it stands beside its targets."""

from bench.simulator import Simulated, simulate

SIMULATED = Simulated(
    seeds=40, messages=12_000, entries=1_000, stored=4_500, failures=0, seconds=4.0, cpu_seconds=2.0
)


def test_rates_are_by_processor_time() -> None:
    assert SIMULATED.seeds_a_second == 20.0
    assert SIMULATED.messages_a_second == 6_000.0
    assert SIMULATED.mean_batch == 4.5


def test_the_text_has_the_targets_beside_what_was_measured() -> None:
    lines = SIMULATED.text().splitlines()
    assert lines[2].split() == ["seeds", "a", "second", "20.0", "20", "10.0"]
    assert lines[3].split() == ["messages", "a", "second", "6,000", "5,000", "3,000"]
    assert lines[4].split() == ["mean", "batch", "4.50", "≤", "5"]


def test_a_seed_that_fails_is_not_hidden() -> None:
    assert "FAILED" not in SIMULATED.text()
    failed = Simulated(40, 12_000, 1_000, 4_500, 2, 4.0, 2.0)
    assert "2 of them FAILED" in failed.text()
    assert failed.record()["failures"] == 2


def test_the_record_has_the_fields_of_the_other_rows() -> None:
    record = SIMULATED.record()
    assert (record["workload"], record["ours"], record["ours_cpu_us"]) == ("simulate", 6_000, 166.667)
    assert record["official"] is record["ratio"] is record["official_cpu_us"] is None


def test_a_short_run_counts_what_happened_in_its_worlds() -> None:
    found = simulate(seconds=0.0, first_seed=1)
    assert found.seeds == 1
    assert found.messages > 0
    assert found.stored >= found.entries > 0
