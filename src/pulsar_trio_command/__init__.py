"""The entry point of the `pulsar-trio` command: so small that it runs within milliseconds.

Owns the state of the process before a command: a Ctrl-C while the packages are imported, and standard streams
that the caller has closed. Knows nothing of the commands; `pulsar_trio_command.command` has them.
"""

import os
import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command of `sys.argv` and give its exit code.

    While the packages are imported, and after the command, a SIGINT ends the process as it ends one that has
    no handler (a shell shows 130). Python would print a traceback of the import. A process that ignores
    SIGINT, as under `nohup`, goes on ignoring it.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_closed_streams()
    from .command import main as run_command

    return run_command(interruptible=interruptible)


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller has closed (`>&-`).

    Python has None for such a stream, and the next file or socket gets its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
    for number, (name, mode) in enumerate([("stdin", "r"), ("stdout", "w"), ("stderr", "w")]):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
