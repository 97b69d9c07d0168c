"""`python -m tests.cluster`: runs every scenario and prints the table of docs/cluster.md."""

from time import monotonic

import trio

from tests.cluster.real_cluster import RealCluster
from tests.cluster.scenarios import SCENARIOS


def main() -> int:
    print("| cluster | scenario | confirmed | delivered again | longest pause | took |")
    print("| --- | --- | --- | --- | --- | --- |")
    failed = 0
    for secure in (False, True):
        with RealCluster(secure=secure) as cluster:
            for scenario in SCENARIOS:
                if not (scenario.secure if secure else scenario.plain):
                    continue
                began = monotonic()
                verdict = trio.run(scenario.run, cluster)
                failed += not verdict.holds
                print(
                    f"| {'TLS, tokens' if secure else 'plain'} | {scenario.name} | {verdict.confirmed:,} | "
                    f"{', '.join(f'{kind} {count:,}' for kind, count in verdict.again.items())} | "
                    f"{verdict.longest:.1f} s | {monotonic() - began:.0f} s |"
                    + ("" if verdict.holds else f" FAILED: {verdict}"),
                    flush=True,
                )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
