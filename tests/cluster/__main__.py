"""`python -m tests.cluster`: runs every scenario and prints the table of docs/cluster.md."""

from collections.abc import Mapping

import trio

from tests.cluster.real_cluster import RealCluster
from tests.cluster.scenarios import scenarios


def main() -> int:
    print("| cluster | way | fault | delivered again | longest pause | of one key |")
    print("| --- | --- | --- | --- | --- | --- |")
    failed = confirmed = 0
    for secure in (False, True):
        with RealCluster(secure=secure) as cluster:
            for scenario in scenarios(secure=secure):
                outcome = trio.run(scenario.run, cluster)
                failed += not outcome.holds
                confirmed += outcome.confirmed
                for fault, effect in outcome.effects.items():
                    cells = (
                        "TLS, tokens" if secure else "plain",
                        scenario.way,
                        fault,
                        _by_kind(effect.again, "{:,}"),
                        _by_kind(effect.pause, "{:.1f} s"),
                        _by_kind(effect.pause_of_a_key, "{:.1f} s"),
                    )
                    print(f"| {' | '.join(cells)} |", flush=True)
                if not outcome.holds:
                    print(f"FAILED: {scenario.name}: {outcome}", flush=True)
    print(f"\n{confirmed:,} messages confirmed")
    return 1 if failed else 0


def _by_kind(figures: Mapping[str, float], form: str) -> str:
    """Return the figures of shared, failover and key_shared, in this order."""
    return " / ".join(form.format(figure) for figure in figures.values())


if __name__ == "__main__":
    raise SystemExit(main())
