"""Runs commands of `pulsar-trio`, one after the other, in one process with one JVM.

    python -m tests.spark.scenes.command_runner

A line of the standard input has the arguments of a command as JSON. Its answer is a line with exit code,
output and errors. Each command starts and stops a Spark of its own; the second is ready sooner, because the
JVM is warm.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from pulsar_trio_command.command import main


def run(arguments: list[str]) -> tuple[int, str, str]:
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        code = main(arguments)
    return code, output.getvalue(), errors.getvalue()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
