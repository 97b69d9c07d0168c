"""The bench of transactions: order of measuring, medians and ratios."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.jobs import Measurement
from bench.transactions.__main__ import MESSAGES, ROWS, WORKLOADS, Bench, main, table
from bench.transactions.jobs import Job


class Client:
    """A client whose jobs each take `seconds`, and a tenth of it of processor time."""

    def __init__(self, name: str, seconds: Callable[[], float], jobs: list[tuple[str, Job]]) -> None:
        self._name = name
        self._seconds = seconds
        self._jobs = jobs

    def run(self, job: Job) -> Measurement:
        self._jobs.append((self._name, job))
        seconds = self._seconds()
        return Measurement(job.messages * job.transactions, seconds, seconds / 10)


def bench(jobs: list[tuple[str, Job]], ours: list[float], java: list[float]) -> Bench:
    clients = [Client("ours", lambda: ours[-1], jobs), Client("Java", lambda: java[-1], jobs)]
    return Bench("pulsar://x", *clients)


def test_each_client_is_first_in_every_second_round_over_topics_of_its_own() -> None:
    jobs: list[tuple[str, Job]] = []
    measured = bench(jobs, [1.0], [1.0])
    measured.round(1, counts=True)
    measured.round(2, counts=True)
    sent = [(name, job) for name, job in jobs if job.workload == "send" and job.messages == 100]
    assert [name for name, _ in sent] == ["ours", "Java", "Java", "ours"]
    assert len({job.topic for _, job in sent}) == 4


def test_a_pipeline_reads_what_our_client_has_sent() -> None:
    jobs: list[tuple[str, Job]] = []
    bench(jobs, [1.0], [1.0]).round(1, counts=True)
    for index, (_, job) in enumerate(jobs):
        if job.workload == "pipeline":
            assert jobs[index - 1] == ("ours", replace(job, workload="fill"))


def test_the_table_has_medians_of_the_rounds_that_count() -> None:
    ours, java = [1.0], [1.0]
    measured = bench([], ours, java)
    for seconds, counts in ((100.0, False), (1.0, True), (2.0, True), (50.0, True)):
        ours.append(seconds)
        java.append(seconds * 3)
        measured.round(1, counts=counts)
    lines = table(measured.measured).splitlines()
    rows = [line.split() for line in lines[2 : 2 + len(ROWS)]]
    assert [(row[0], row[1]) for row in rows] == [
        (workload, f"{messages:,}") for workload in WORKLOADS for messages in MESSAGES
    ]
    hundred = rows[1]
    assert hundred[2:5] == ["3,000", "1,000", "3.0×"]
    assert hundred[7] == "3.0×"


def test_a_job_is_one_line() -> None:
    job = Job("pulsar://x", "send", "topic", 100, 3)
    assert Job.of(job.line()) == job


def test_no_round_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
