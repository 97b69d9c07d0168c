"""Counting what a call costs, in the interpreter's own operations: the same on every machine."""

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any


def operations(call: Callable[[], object]) -> int:
    """Count the operations of the interpreter that the call takes, with those of all that it calls."""
    count = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        return local

    def begin(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def each(call: Callable[[Any], object], values: Iterable[Any]) -> Callable[[], None]:
    """A call of `call` with every value, to be counted."""

    def calls() -> None:
        for value in values:
            call(value)

    return calls
