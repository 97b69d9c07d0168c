"""A campaign in lines for a terminal. Counts come from the campaign; the caller brings the seconds.

`summary` says what matters in at most `SUMMARY_LINES` lines; `details` says all of it.
"""

from collections.abc import Mapping

from ..world.world import SeedReport
from .campaign import Campaign

SUMMARY_LINES = 15
"""A summary has at most so many lines, whatever happened: it is read at a glance."""

SHOWN_FAILURES = 5
"""Failures in a summary, and in the lines that a run prints as it goes."""

SHOWN_FAULTS = 4
"""Kinds of faults in a summary, the most frequent ones."""

SHOWN_GAPS = 3
"""Gaps in a summary, by name."""

SHOWN_WIDTH = 240
"""Characters of a failure in a summary."""


def summary(campaign: Campaign, seconds: float) -> list[str]:
    """At most `SUMMARY_LINES` lines. `seconds`: the duration of the campaign, more than 0."""
    found = campaign.as_json()["coverage"]
    maps = found["maps"].values()
    moves = f"{sum(each['reached'] for each in maps)} of {sum(each['legal'] for each in maps)} moves"
    reached = len(found["coverage_points"]) - len(found["coverage_points_missing"])
    gaps = campaign.gaps
    most = "".join(f", {number} {name}" for name, number in _by_number(campaign.faults)[:SHOWN_FAULTS])
    hidden = len(campaign.failures) - SHOWN_FAILURES
    return [
        _pace(campaign, seconds),
        f"faults: {sum(campaign.faults.values())} of {len(campaign.faults)} kinds{most}",
        f"reached: {moves}, {reached} of {len(found['coverage_points'])} coverage points, "
        f"{found['fault_pairs']['seen']} of {found['fault_pairs']['possible']} pairs of fault kinds",
        *(
            [f"never reached: {len(gaps)} (--json and --report name all): {', '.join(gaps[:SHOWN_GAPS])}"]
            if gaps
            else []
        ),
        f"{len(campaign.failures)} violations",
        *(f"  {brief(report)}" for report in campaign.failures[:SHOWN_FAILURES]),
        *([f"  and {hidden} more, named by --json and --report"] if hidden > 0 else []),
        *(
            [f"to look at one: pulsar-trio simulate shrink --seed {campaign.failures[0].seed}"]
            if campaign.failures
            else []
        ),
        f"trace hash {campaign.as_json()['trace_hash']}",
    ]


def details(campaign: Campaign) -> list[str]:
    """All that a summary counts, by name: fault kinds, maps, gaps, failures with their whole text."""
    maps = campaign.as_json()["coverage"]["maps"]
    return [
        "faults:",
        *(f"  {number:8} {name}" for name, number in _by_number(campaign.faults)),
        "moves reached:",
        *(f"  {each['reached']:4} of {each['legal']:4} {name}" for name, each in maps.items()),
        "never reached:",
        *(f"  never: {gap}" for gap in campaign.gaps),
        "violations:",
        *(f"  {report}" for report in campaign.failures),
    ]


def brief(report: SeedReport) -> str:
    """A failure in one line of `SHOWN_WIDTH` characters: of a traceback its last line."""
    lines = report.text.strip().splitlines() or [""]
    line = f"seed {report.seed} failed in phase {report.phase}: {report.rule}: {lines[-1].strip()}"
    return line if len(line) <= SHOWN_WIDTH else line[: SHOWN_WIDTH - 1] + "…"


def _pace(campaign: Campaign, seconds: float) -> str:
    return (
        f"{campaign.seeds} seeds in {seconds:.1f} s ({campaign.seeds / seconds:.1f}/s): "
        f"{campaign.messages} messages delivered and acknowledged ({campaign.messages / seconds:,.0f}/s), "
        f"{campaign.virtual_ns / 1e9:,.0f} virtual seconds, {campaign.events} events"
    )


def _by_number(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most frequent first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
