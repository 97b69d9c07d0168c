"""A campaign in lines for a terminal. Counts come from the campaign; whoever ran it brings the seconds."""

from .campaign import Campaign

SHOWN_FAILURES = 20
"""The rest are in the report."""


def summary(campaign: Campaign, seconds: float) -> list[str]:
    """The lines, without line ends. `seconds`: how long the campaign took, more than 0."""
    found = campaign.as_json()["coverage"]
    maps = [f"{each['reached']} of {each['legal']} in {name}" for name, each in found["maps"].items()]
    reached = len(found["marks"]) - len(found["marks_missing"])
    pairs = found["fault_pairs"]
    return [
        f"{campaign.seeds} seeds in {seconds:.1f} s ({campaign.seeds / seconds:.1f}/s): "
        f"{campaign.messages} messages delivered and acknowledged ({campaign.messages / seconds:,.0f}/s), "
        f"{campaign.virtual_ns / 1e9:,.0f} virtual seconds, {campaign.events} events",
        f"{sum(campaign.faults.values())} faults of {len(campaign.faults)} kinds:",
        *(
            f"  {number:8} {name}"
            for name, number in sorted(campaign.faults.items(), key=lambda item: (-item[1], item[0]))
        ),
        f"reached: {', '.join(maps)}",
        f"reached: {reached} of {len(found['marks'])} marks, {pairs['seen']} of {pairs['possible']} pairs of "
        "fault kinds in one world",
        *(f"  never: {gap}" for gap in campaign.gaps),
        f"{len(campaign.failures)} violations",
        *(f"  {report}" for report in campaign.failures[:SHOWN_FAILURES]),
        f"trace hash {campaign.as_json()['trace_hash']}",
    ]
