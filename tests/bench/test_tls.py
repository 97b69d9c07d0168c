"""TLS beside plain connections: the order of measuring, and the ratios."""

import sys

import pytest

from bench.__main__ import main
from bench.jobs import Job
from bench.rows import Row
from bench.tls import TLS_ROWS, WAYS, Ratios, TlsBench, TlsBroker, TlsLine, tls_table
from tests.bench.clients import Client

BROKER = TlsBroker("pulsar://x", "pulsar+ssl://x", "authority.pem")
RECEIVE, SEND = Row("receive", 100, True), Row("send", 100, True)


def bench(ours: list[float], official: list[float], jobs: list[tuple[str, Job]]) -> TlsBench:
    return TlsBench(BROKER, Client("ours", ours, jobs), Client("official", official, jobs), 100_000)


def test_each_way_is_first_in_every_fourth_round() -> None:
    jobs: list[tuple[str, Job]] = []
    measured = bench([1] * 8, [1] * 8, jobs)
    for number in range(4):
        measured.round(number, [SEND])
    firsts = [(client, bool(job.trust)) for client, job in jobs[::4]]
    assert firsts == list(WAYS)
    assert len({job.topic for _, job in jobs}) == 16


def test_a_job_with_tls_has_the_authority_and_one_without_has_none() -> None:
    jobs: list[tuple[str, Job]] = []
    bench([1] * 2, [1] * 2, jobs).round(0, [SEND])
    assert [(client, job.url, job.trust) for client, job in jobs] == [
        ("ours", "pulsar://x", ""),
        ("official", "pulsar://x", ""),
        ("ours", "pulsar+ssl://x", "authority.pem"),
        ("official", "pulsar+ssl://x", "authority.pem"),
    ]


def test_all_ways_receive_the_same_messages_by_subscriptions_of_their_own() -> None:
    jobs: list[tuple[str, Job]] = []
    bench([1] * 2, [1] * 2, jobs).round(0, [RECEIVE])
    (_, prepared), (_, filled), *received = jobs
    assert (prepared.workload, filled.workload) == ("prepare", "fill")
    assert {job.topic for _, job in jobs} == {prepared.topic}
    assert [job.subscription for _, job in received] == list(prepared.subscriptions)
    assert len(set(prepared.subscriptions)) == 4


def test_a_line_has_the_ratios_of_the_medians_of_the_rounds() -> None:
    measured = bench([500_000, 250_000] * 3, [100_000, 50_000, 99_000, 1, 200_000, 90_000], [])
    for _ in range(3):
        measured.round(0, [SEND])
    line = TlsLine.of(SEND, measured.measured[SEND])
    assert line.clock == Ratios(2.0, 4.0, 1e6 / 100_000, 20.0)
    assert (line.clock.of_ours, line.clock.of_official, line.clock.of_tls) == (2.0, 2.0, 0.2)
    assert "4.00     20.00   2.00×     2.00×   0.20×" in tls_table([line])


def test_another_broker_needs_its_address_with_tls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows of TLS are left out without one, and an authority alone is a mistake."""
    named = ["bench", "--simulator", "0", "--rounds", "1", "--url", "no-url", "--only", "tls"]
    monkeypatch.setattr(sys, "argv", named)
    assert main() == 1
    assert "TLS is left out: it needs --tls-url and --trust\n" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*named, "--trust", "authority.pem"])
    with pytest.raises(SystemExit):
        main()
    assert "--tls-url and --trust go together" in capsys.readouterr().err


def test_sends_and_receives_of_both_sizes_are_measured_in_batches_and_without() -> None:
    assert {(row.workload, row.size, row.batched) for row in TLS_ROWS} == {
        (workload, size, batched)
        for workload in ("send", "receive")
        for size in (100, 1000)
        for batched in (True, False)
    }
