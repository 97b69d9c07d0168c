"""Many seeds, or one with its trace; with `--sweep`, one small run disturbed at every step; with `--calls`,
scenes in which calls are cancelled at every step.

python -m tests.triosim --seeds 200
python -m tests.triosim --seed 7 --trace

python -m tests.triosim --sweep [--kind "close client"] [--every 1]
python -m tests.triosim --sweep --kind "close client" --step 40 --trace
python -m tests.triosim --calls [--scene seek_of_a_reader] [--every 1] [--step 3 --trace]
"""

import argparse
import sys
from time import perf_counter

from tests.triosim.cancelling import scenes
from tests.triosim.sweep import KINDS, run_at, sweep
from tests.triosim.world import Report, run_seed


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.triosim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    parser.add_argument("--sweep", action="store_true", help="close and cancel at every step")
    parser.add_argument("--kind", choices=KINDS, help="of a sweep; all without it")
    parser.add_argument("--calls", action="store_true", help="cancel calls at every step")
    parser.add_argument("--scene", choices=scenes.SCENES, help="of --calls; all without it")
    parser.add_argument("--every", type=int, default=1, help="only each n-th step")
    parser.add_argument("--step", type=int, help="this step alone")
    arguments = parser.parse_args(given)
    if arguments.calls:
        return _cancel_calls(arguments)
    if arguments.sweep:
        return _sweep(arguments)
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


def _sweep(arguments: argparse.Namespace) -> int:
    failed = 0
    for kind in [arguments.kind] if arguments.kind else KINDS:
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            if arguments.step is not None:
                report, _ = run_at(seed, kind, arguments.step, arguments.trace)
                print(*report.lines, report.failure or "passed", sep="\n")
                failed += bool(report.failure)
                continue
            began = perf_counter()
            swept = sweep(seed, kind, arguments.every)
            print(*swept.failures, sep="\n", end="\n" if swept.failures else "")
            print(
                f"{kind}, seed {seed}: {swept.runs} of {swept.steps} steps, {swept.hits} met a task, "
                f"{len(swept.failures)} failed, {perf_counter() - began:.1f} s",
                flush=True,
            )
            failed += len(swept.failures)
    return 1 if failed else 0


def _cancel_calls(arguments: argparse.Namespace) -> int:
    failed = 0
    for name in [arguments.scene] if arguments.scene else scenes.SCENES:
        if arguments.step is not None:
            failure, stage = scenes.play_at(name, arguments.step, arguments.trace)
            print(*stage.trace.lines, failure or "passed", sep="\n")
            failed += bool(failure)
            continue
        began = perf_counter()
        steps, hits, failures = scenes.sweep(name, arguments.every)
        print(*failures, sep="\n", end="\n" if failures else "")
        print(
            f"{name}: {hits} of {steps} steps, {len(failures)} failed, {perf_counter() - began:.1f} s",
            flush=True,
        )
        failed += len(failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
