"""`python -m fuzz`: hostile peers, and the targets under hypothesis or atheris.

    python -m fuzz hostile [--seconds 60] [--frames N] [--jobs 2] [--seed 1] [--side client|broker] [--json]
    python -m fuzz hostile --replay client:17
    python -m fuzz hypothesis TARGET|all [--seconds 10]
    python -m fuzz atheris TARGET|all [--seconds 60] [--keep]
    python -m fuzz corpus

Exit code 0: no failure was found. 1: a failure was found. 2: the command line is wrong.
"""

import argparse
import json
import sys
import time

from fuzz import corpus, engines, hostile
from fuzz.reports import Report
from fuzz.targets import TARGETS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Strangers' bytes, by the million.")
    commands = parser.add_subparsers(dest="command", required=True)

    peers = commands.add_parser("hostile", help="hostile brokers and clients against the machines")
    peers.add_argument("--seconds", type=float, default=60.0)
    peers.add_argument("--frames", type=int, help="end after so many, if the time is not over before")
    peers.add_argument("--jobs", type=int, default=1, help="processes")
    peers.add_argument("--seed", type=int, default=1, help="of the first round; the others follow")
    peers.add_argument("--side", choices=sorted(hostile.SIDES), help="only this side under attack")
    peers.add_argument("--replay", metavar="SIDE:SEED", help="play one round again")
    peers.add_argument("--json", action="store_true")

    for name, text in (
        ("hypothesis", "search a target by hypothesis"),
        ("atheris", "search a target by coverage; needs atheris (pip install atheris)"),
    ):
        engine = commands.add_parser(name, help=text)
        engine.add_argument("target", choices=[*TARGETS, "all"])
        engine.add_argument("--seconds", type=float, default=10.0)
        engine.add_argument("--json", action="store_true")
        if name == "atheris":
            engine.add_argument("--keep", action="store_true", help="keep what it found in the corpus")
    commands.add_parser("corpus", help="make the corpus from the recorded conversations and the mutations")

    options = parser.parse_args(arguments)
    match options.command:
        case "hostile":
            return _hostile(options)
        case "corpus":
            print(corpus.make())
            return 0
    names = list(TARGETS) if options.target == "all" else [options.target]
    results = []
    for name in names:
        if options.command == "hypothesis":
            results.append(engines.run_hypothesis(name, options.seconds))
        else:
            results.append(engines.run_atheris(name, options.seconds, keep=options.keep))
        if not options.json:
            print(results[-1])
    if options.json:
        print(json.dumps([result._asdict() for result in results], indent=2))
    return 1 if any(result.failure for result in results) else 0


def _hostile(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    if options.replay:
        side, _, seed = options.replay.partition(":")
        if side not in hostile.SIDES or not seed.isdecimal():
            print(f"--replay: client:SEED or broker:SEED, not {options.replay!r}", file=sys.stderr)
            return 2
        report = hostile.play(side, int(seed), traced=True)
    else:
        report = hostile.run(
            seconds=options.seconds,
            jobs=options.jobs,
            seed=options.seed,
            sides=(options.side,) if options.side else ("client", "broker"),
            frames=None if options.frames is None else -(-options.frames // options.jobs),
        )
    seconds = time.monotonic() - begun
    if options.json:
        print(json.dumps(report.as_json() | {"seconds": round(seconds, 3)}, indent=2))
    else:
        _print(report, seconds)
    return 1 if report.failures else 0


def _print(report: Report, seconds: float) -> None:
    rate = report.frames / seconds if seconds else 0.0
    print(f"{report.frames} hostile frames ({report.bytes / 1e6:.1f} MB) in {seconds:.0f} s: {rate:.0f}/s")
    if report.processor:
        rate = report.frames / report.processor
        print(
            f"{report.processor:.0f} s of processor time: {rate:.0f} frames a second of it; "
            f"processes of at most {report.resident / 1e6:.0f} MB"
        )
    print(
        f"{report.rounds} rounds, {report.links} links; {report.attached} of the frames met a machine, "
        f"{report.cases} were single cases"
    )
    print(f"{report.delivered} hostile messages delivered; others were seen to go on {report.innocent} times")
    print(
        f"per input at most {report.outputs} outputs, {report.answer} bytes to write, "
        f"{report.slowest * 1000:.0f} ms ({report.slowest_label[:60]})"
    )
    if report.traced:
        print(
            f"memory, traced in {report.traced} rounds: at most {report.peak / 1e6:.2f} MB "
            f"of {report.bound / 1e6:.0f} MB allowed"
        )
    print(f"{sum(report.killed.values())} links killed, by cause:")
    for cause, count in report.killed.most_common(40):
        print(f"{count:8}  {cause}")
    print(f"{len(report.failures)} violations")
    for failure in report.failures:
        print(f"\nFAILED: {failure}")


if __name__ == "__main__":
    sys.exit(main())
