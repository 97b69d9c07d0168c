"""`pulsar-trio spark …`: the jobs as commands.

`add_parser` is what the entry-point group `pulsar_trio.commands` names: the command line calls it with its
subparsers and with the class that prints. Knows arguments and what to print; the jobs know nothing of either.
Nothing here imports PySpark until a job runs, so `--help` works where it is not installed.
"""

import argparse
from typing import Any


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add `spark` and its jobs."""
    parser = subparsers.add_parser("spark", help="jobs on Apache Spark", description="Jobs on Apache Spark.")
    parser.add_subparsers(required=True, metavar="JOB")
