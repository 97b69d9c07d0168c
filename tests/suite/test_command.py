"""The command line against both brokers: definitions, values in and values out."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.suite.brokers import BrokerUnderTest

RECORD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}

ORDERS = {"type": "AVRO", "schema": RECORD}

PAIRS = {"type": "KEY_VALUE", "key": {"type": "STRING"}, "value": ORDERS, "encoding": "SEPARATED"}


async def run(*arguments: str, given: bytes = b"", code: int = 0) -> str:
    """Run the command in a process of its own. Return its output, or its errors where it has to fail."""
    command = [sys.executable, "-m", "pulsar_trio_command", *arguments]
    done = await trio.run_process(command, stdin=given, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == code, done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()


def written(folder: Path, name: str, given: Any) -> str:
    (folder / name).write_text(json.dumps(given))
    return str(folder / name)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (ORDERS, [{"id": "o1"}, {"id": "ä"}, None]),
        (PAIRS, [{"key": "k", "value": {"id": "o1"}}, {"key": "k", "value": None}]),
    ],
)
async def test_values_by_the_definition_that_was_put(
    broker: BrokerUnderTest, topic: str, tmp_path: Path, schema: dict[str, Any], values: list[Any]
) -> None:
    url = ("--url", broker.url)
    file = written(tmp_path, "schema.json", schema)
    assert await run("schemas", "put", topic, file, *url) == f"{topic} has it as version 0\n"
    lines = "".join(json.dumps(value) + "\n" for value in values)
    await run("produce", topic, "--schema", "topic", *url, given=lines.encode())
    assert json.loads(await run("schemas", "get", topic, *url)) == schema
    assert len((await run("schemas", "get", topic, "--versions", *url)).splitlines()) == 1
    count = ("--count", str(len(values)))
    printed = await run("consume", topic, "--subscription", "s", "--json", *count, *url)
    assert [json.loads(line)["value"] for line in printed.splitlines()] == values


@pytest.mark.parametrize("pairs", [False, True])
async def test_a_definition_is_compared_over_http(
    broker: BrokerUnderTest, topic: str, tmp_path: Path, pairs: bool
) -> None:
    def file(name: str, *fields: dict[str, Any]) -> str:
        order = {"type": "AVRO", "schema": RECORD | {"fields": [*RECORD["fields"], *fields]}}
        return written(tmp_path, name, PAIRS | {"value": order} if pairs else order)

    await run("schemas", "put", topic, file("first"), "--url", broker.url)
    note = {"name": "note", "type": ["null", "string"], "default": None}
    http = ("--http-url", broker.admin.url)
    told = await run("schemas", "check", topic, file("good", note), *http)
    assert "is compatible with the schema of" in told
    told = await run("schemas", "check", topic, file("bad", {"name": "a", "type": "int"}), *http, code=1)
    assert "is not compatible with the schema of" in told
    assert "FULL" in told
    assert "\n\tat " not in told
    bad = str(tmp_path / "bad")
    assert "FULL" in await run("schemas", "put", topic, bad, "--url", broker.url, code=1)
