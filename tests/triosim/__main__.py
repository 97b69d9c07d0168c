"""`python -m tests.triosim`: many seeds, or one with its trace."""

import argparse
import sys
from time import perf_counter

from .world import Report, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.triosim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    arguments = parser.parse_args()
    began = perf_counter()
    reports: list[Report] = []
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        report = run_seed(seed, arguments.trace)
        reports.append(report)
        print(*report.lines, sep="\n", end="\n" if report.lines else "")
        if report.failure:
            print(f"seed {seed}: {report.failure}", flush=True)
    failed = sum(bool(report.failure) for report in reports)
    print(
        f"{len(reports)} seeds, {failed} failed, {perf_counter() - began:.1f} s; "
        f"{sum(report.virtual_seconds for report in reports):.0f} virtual seconds, "
        f"{sum(report.steps for report in reports)} steps, "
        f"{sum(report.cancelled for report in reports)} cancellations, "
        f"{sum(report.faults for report in reports)} faults, "
        f"{sum(report.connections for report in reports)} connections, "
        f"messages: {sum(report.sent for report in reports)} sent, "
        f"{sum(report.confirmed for report in reports)} confirmed, "
        f"{sum(report.received for report in reports)} received"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
