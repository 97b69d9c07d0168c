"""`pulsar-trio broker --data` and `pulsar-trio store`: what is kept, what is said, and the exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import trio

from pulsar_store.database import FILE
from pulsar_trio import open_client
from pulsar_trio_command.command import main

COMMAND = [sys.executable, "-m", "pulsar_trio_command"]
TOPIC = "persistent://public/default/t"


@contextmanager
def broker(*options: str) -> Iterator[dict[str, object]]:
    """Run the command until SIGTERM; gives its first line."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*COMMAND, "broker", "--port", "0", "--json", *options], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    assert process.returncode == 0


def exchange(url: object, *payloads: bytes) -> list[bytes]:
    """Send messages, then receive and acknowledge two."""

    async def run() -> list[bytes]:
        async with open_client(str(url)) as client, client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", batching=None) as producer:
                for payload in payloads:
                    await producer.send(payload)
            received = [await consumer.receive() for _ in range(2)]
            consumer.acknowledge(received)
            await consumer.flush()
            return [message.data for message in received]

    return trio.run(run)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as end:
        code = cast(int, end.code)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_data_is_kept_over_a_restart_checked_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "data")
    with broker("--data", folder) as ready:
        assert (ready["data"], ready["sync"]) == (folder, "always")
        assert exchange(ready["url"], b"1", b"2", b"3") == [b"1", b"2"]
        code, _, said = told(capsys, "store", "check", folder)
        assert (code, "is in use by another broker" in said) == (1, True)
        code, _, said = told(capsys, "broker", "--port", "0", "--data", folder)
        assert (code, f"the store in {folder} is in use" in said) == (1, True)
    with broker("--data", folder, "--sync", "none") as ready:
        assert ready["sync"] == "none"
        assert exchange(ready["url"], b"4") == [b"3", b"4"]
    assert told(capsys, "store", "check", folder) == (
        0,
        f"the store in {folder} is whole: 1 topics, 4 entries\n",
        "",
    )
    code, said, _ = told(capsys, "store", "dump", folder, "--json", "--entries")
    listed = [json.loads(line) for line in said.splitlines()]
    assert sum(each["kind"] == "entry" for each in listed) == 4
    (cursor,) = [each for each in listed if each["kind"] == "subscription"]
    assert (cursor["name"], cursor["subscription"], cursor["acknowledged_up_to"]) == (TOPIC, "s", 3)
    code, said, _ = told(capsys, "store", "dump", folder)
    assert f"subscription {TOPIC}: subscription s, acknowledged up to 3" in said


def test_a_damaged_store_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE).write_bytes(b"What is this? " * 1000)
    for command in (["store", "check", str(tmp_path)], ["broker", "--port", "0", "--data", str(tmp_path)]):
        code, out, said = told(capsys, *command)
        assert (code, out) == (1, "")
        assert f"the store in {tmp_path} is damaged" in said
        assert "restore" in said


def test_a_folder_without_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("check", "dump"):
        code, _, said = told(capsys, "store", action, str(tmp_path))
        assert code == 1
        assert f"{tmp_path} has no store" in said


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (["broker", "--sync", "none"], "argument --sync: only with --data"),
        (["broker", "--data", "d", "--sync", "often"], "invalid choice: 'often'"),
        (["store", "check", "d", "--entries"], "argument --entries: not allowed with check"),
        (["store", "mend", "d"], "invalid choice: 'mend'"),
    ],
)
def test_wrong_options(arguments: list[str], mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = told(capsys, *arguments)
    assert code == 2
    assert mistake in said
