"""`TypedProgram`: another client's program that sends and receives typed messages as the test says.

The program reads a JSON object per line, and answers with the word "answer", a tab, and a JSON object. It
serves several tests, one request after the other.
"""

import json
import subprocess
from collections.abc import Iterable
from itertools import count
from types import TracebackType
from typing import Any

import trio


class RefusedByProgram(Exception):
    """The other client raised an error; `kind` is the class of the error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class TypedProgram:
    """The running program. As a context manager, it ends the program."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._ids = count()

    def __enter__(self) -> "TypedProgram":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    async def send(self, url: str, topic: str, schema: dict[str, Any], values: Iterable[Any]) -> None:
        """Send the values, each in the program's form. Raises `RefusedByProgram`."""
        await self._ask({"do": "send", "url": url, "topic": topic, "schema": schema, "values": list(values)})

    async def receive(self, url: str, topic: str, schema: dict[str, Any], count: int) -> list[Any]:
        """Return the first values of a topic in the program's form. Raises `RefusedByProgram`."""
        answer = await self._ask(
            {"do": "receive", "url": url, "topic": topic, "schema": schema, "count": count}
        )
        values: list[Any] = answer["values"]
        return values

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        request["id"] = next(self._ids)
        line = json.dumps(request) + "\n"
        answer = await trio.to_thread.run_sync(self._exchange, request["id"], line, abandon_on_cancel=True)
        if "error" in answer:
            raise RefusedByProgram(answer["error"], answer["text"])
        return answer

    def _exchange(self, number: int, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()
        for said in self._process.stdout:
            word, _, text = said.partition("\t")
            if word == "answer":  # other lines are of a log
                answer: dict[str, Any] = json.loads(text)
                if answer["id"] == number:  # a cancelled test left its answer unread
                    return answer
        raise EOFError("the program of the other client has ended")
