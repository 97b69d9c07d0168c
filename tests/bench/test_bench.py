"""The bench: rows, order of measuring, medians and ratios; and once for real, small."""

import json
import sys
from pathlib import Path

import pytest

from bench.__main__ import (
    CALLS,
    EVERY_SIZE,
    RECEIVING_ONCE,
    REPORT,
    WITH_FORMS,
    Bench,
    Line,
    main,
    table,
)
from bench.jobs import SEND_TIMEOUT, Job, Measurement
from bench.processes import ATTEMPTS, ClientProcess, Died, Failed
from bench.rows import FORMS, SPECIAL, Row
from tests.bench.clients import Client


def bench(ours: list[float], official: list[float], jobs: list[tuple[str, Job]]) -> Bench:
    clients = Client("ours", ours, jobs), Client("official", official, jobs)
    return Bench("pulsar://x", None, *clients, 100_000, "keys")


ROW = Row("receive", 100, True)


def test_each_client_is_first_in_every_second_round() -> None:
    jobs: list[tuple[str, Job]] = []
    measured = bench([1, 1], [1, 1], jobs)
    measured.round(1, [ROW])
    measured.round(2, [ROW])
    names = [name for name, job in jobs if job.workload == "receive"]
    assert names == ["ours", "official", "official", "ours"]
    assert len({job.topic for _, job in jobs}) == 2, "a round has topics of its own"


def test_all_receivers_of_a_round_read_the_same_messages_from_subscriptions_of_their_own() -> None:
    jobs: list[tuple[str, Job]] = []
    bench([1, 1], [1, 1], jobs).round(1, [ROW, Row("receive_many", 100, True)])
    assert [job.workload for _, job in jobs[:2]] == ["prepare", "fill"]
    assert len({job.topic for _, job in jobs}) == 1
    subscriptions = [job.subscription for _, job in jobs[2:]]
    assert len(set(subscriptions)) == 4
    assert sorted(subscriptions) == sorted(jobs[0][1].subscriptions)


def test_both_of_our_ways_to_send_stand_beside_the_official_one() -> None:
    jobs: list[tuple[str, Job]] = []
    measured = bench([800.0, 1200.0], [100.0], jobs)
    measured.round(1, [Row("send", 100, True), Row("send_many", 100, True)])
    lines = [Line.of(row, each) for row, each in measured.measured.items()]
    assert [(line.workload, line.ratio) for line in lines] == [("send", 8.0), ("send_many", 12.0)]
    assert len({job.topic for _, job in jobs}) == 3


def test_a_line_has_the_medians_of_the_rounds() -> None:
    measured = bench([300.0, 100.0, 200.0], [10.0, 1000.0, 50.0], [])
    for number in (1, 2, 3):
        measured.round(number, [ROW])
    line = Line.of(ROW, measured.measured[ROW])
    assert line == Line("receive", 100, 200, 50, 4.0, 1.0, 1.0)
    assert "4.0×" in table([line])


def test_every_row_names_the_calls_it_times() -> None:
    text = table([])
    for workload, (ours, official) in CALLS.items():
        assert workload in text
        assert ours in text
        assert official in text


def test_a_client_s_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        ["bench", "--simulator", "0", "--url", "no-url", "--rounds", "1", "--only", "send", "--size", "100"],
    )
    assert main() == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("bench: bench.o")
    assert "send of 100 B: " in said


def test_a_client_that_dies_is_told() -> None:
    with (
        ClientProcess("bench.no_such_module") as client,
        pytest.raises(Failed, match=r"bench\.no_such_module"),
    ):
        client.run(Job("pulsar://x", "send", "t", 100, True, 1000, 0))


def test_a_job_that_kills_its_process_is_done_in_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("pulsar://x", "load_large_table", "t", 100, True, 1000, 0)
    outcomes: list[Measurement | None] = [None, None, Measurement(1000, 1.0, 1.0)]

    def run(_process: ClientProcess, _job: Job) -> Measurement:
        if (outcome := outcomes.pop(0)) is None:
            raise Died("it is dead")
        return outcome

    monkeypatch.setattr(ClientProcess, "__enter__", lambda process: process)
    monkeypatch.setattr(ClientProcess, "__exit__", lambda *_: None)
    monkeypatch.setattr(ClientProcess, "run", run)
    assert ClientProcess("official").run_apart(job).messages == 1000
    outcomes += [None] * ATTEMPTS
    with pytest.raises(Died):
        ClientProcess("official").run_apart(job)
    assert not outcomes


def test_a_large_table_that_cannot_be_loaded_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    class Fragile(Client):
        def run_apart(self, job: Job) -> Measurement:
            raise Died(f"it died of {job.workload}")

    jobs: list[tuple[str, Job]] = []
    ours, official = Client("ours", [1.0] * 9, jobs), Fragile("official", [1.0] * 9, jobs)
    rows = [row for row in SPECIAL if row.workload.startswith("load")]
    measured = Bench("pulsar://x", None, ours, official, 100_000, "keys")
    measured.round(1, rows)
    assert [row.workload for row in measured.measured] == ["load_table"]
    assert "load_large_table is left out: it died" in capsys.readouterr().err


def test_a_row_that_the_broker_cannot_take_is_left_out_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Choosy(Client):
        def run(self, job: Job) -> Measurement:
            if job.workload == "send_chunked" and rounds:
                self.jobs.append((self.module, job))
                raise Failed("the broker refuses it")
            return super().run(job)

    jobs: list[tuple[str, Job]] = []
    rounds: list[int] = []
    ours, official = Client("ours", [1.0] * 9, jobs), Choosy("official", [1.0] * 9, jobs)
    rows = [row for row in SPECIAL if row.workload in ("send_chunked", "send_one")]
    measured = Bench("pulsar://x", None, ours, official, 100_000, "keys")
    measured.round(1, rows)
    assert len(measured.measured) == 2
    for number in (2, 3):
        rounds.append(number)
        measured.round(number, rows)
    assert [row.workload for row in measured.measured] == ["send_one"]
    assert capsys.readouterr().err == "send_chunked is left out: the broker refuses it\n"
    assert [job.workload for _, job in jobs].count("send_chunked") == 3
    assert (ours.renewed, official.renewed) == (1, 1), "either may be at it still"


def test_a_chunk_that_is_never_confirmed_fails_in_time() -> None:
    """Other rows wait for ever, so that nothing but sending is in their figures."""
    jobs = [Job("pulsar://x", workload, "t", 100, False, 4, 0) for workload in ("send_chunked", "send")]
    assert [job.send_timeout for job in jobs] == [SEND_TIMEOUT, 0.0]
    assert SEND_TIMEOUT < jobs[0].limit < 60.0


@pytest.mark.slow
def test_a_client_s_process_that_died_at_one_job_is_there_for_the_next() -> None:
    with ClientProcess("bench.ours") as client:
        client.renew()
        with pytest.raises(Failed, match=r"bench\.ours, send of 100 B: .*no-url"):
            client.run(Job("no-url", "send", "t", 100, True, 1000, 0))


@pytest.mark.slow
@pytest.mark.official
def test_a_small_run_for_real(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["--simulator", "0.1", "--rounds", "1", "--messages", "1000", "--size", "100"]
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    monkeypatch.setattr("bench.__main__.REPORT", tmp_path / "build" / REPORT.name)
    monkeypatch.setattr("bench.__main__.WARM_QUEUES", 0)
    assert main() == 0
    *report, simulated = json.loads((tmp_path / "build" / REPORT.name).read_text())
    assert simulated["workload"] == "simulate"
    encrypted = [line for line in report if "processor" in line]
    assert [line["workload"] for line in encrypted] == [
        *("send, TLS", "receive, TLS", "send, unbatched, TLS", "receive, unbatched, TLS")
    ]
    for line in encrypted:
        assert all(value > 0 for name in ("clock", "processor") for value in line[name].values())
    report = [line for line in report if line not in encrypted]
    assert [line["workload"] for line in report] == [
        *EVERY_SIZE,
        *RECEIVING_ONCE,
        *(f"{workload}, unbatched" for workload in EVERY_SIZE),
        *(row.name for row in SPECIAL),
        *(
            f"{workload}{batching}, {form}"
            for form in FORMS
            for batching in ("", ", unbatched")
            for workload in WITH_FORMS
        ),
    ]
    for line in report:
        assert set(line) == {
            *("workload", "size", "ours", "official", "ratio", "ours_cpu_us", "official_cpu_us")
        }
        assert line["ours"] > 0
        assert line["ratio"] == pytest.approx(line["ours"] / line["official"], abs=0.01, rel=0.01)
    assert "our broker" in capsys.readouterr().out
