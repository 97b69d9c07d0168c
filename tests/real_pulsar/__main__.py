"""`python -m tests.real_pulsar run`: a real Pulsar until it is interrupted; its URLs on standard output.

`python -m tests.real_pulsar fetch` says whether one can be had here, and fetches its jars if they are not
there yet.
Exit status: 0, 1 where it cannot be had (with one line that says why), 2 for wrong usage.
"""

import argparse
import signal
import sys
from typing import NoReturn

from tests.real_pulsar import VERSION, RealPulsar, Unavailable
from tests.real_pulsar.jars import jars, java


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_pulsar", description="a real Apache Pulsar")
    parser.add_argument("what", choices=["run", "fetch"])
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a line of its configuration"
    )
    arguments = parser.parse_args()
    try:
        settings = dict(line.split("=", 1) for line in arguments.set)
    except ValueError:
        parser.error("--set takes NAME=VALUE")
    try:
        return fetch() if arguments.what == "fetch" else run(settings)
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 1


def fetch() -> int:
    print(f"Apache Pulsar {VERSION}: {java()}, {jars()}")
    return 0


def run(settings: dict[str, str]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        with RealPulsar(settings, long_running=True) as pulsar:
            print(f"Apache Pulsar {VERSION} is ready\nurl {pulsar.url}\nadmin {pulsar.admin.url}", flush=True)
            print(f"pid {pulsar.pid}\nlog {pulsar.folder}/log", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    return 0


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
