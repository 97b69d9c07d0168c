"""The command as people and scripts use it: what it prints, what it returns, how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import trio

from pulsar_trio import EmbeddedBroker, open_broker, open_client
from pulsar_trio.cli import main

COMMAND = [sys.executable, "-m", "pulsar_trio"]


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker() as running:
        yield running


async def run(*arguments: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process, to its end; its output as bytes."""
    with trio.fail_after(30):
        return await trio.run_process(
            [*COMMAND, *arguments],
            stdin=given,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, "PYTHONPATH": "src", **environment},
        )


def objects(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


async def lines(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    """As many lines, and nothing after them."""
    output = b""
    with trio.fail_after(30):
        while output.count(b"\n") < count:
            output += await stream.receive_some(10_000)
    return output


def one_line(output: bytes) -> str:
    (line,) = output.decode().splitlines()
    return line


@pytest.mark.slow
async def test_demo_says_what_came_of_it() -> None:
    done = await run("demo", "--count", "5000")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "messages/s" in text
    assert "p50" in text
    assert "p99" in text
    assert "lost 0, repeated 0, reordered 0" in text
    assert b"\x1b" not in done.stdout + done.stderr, "a bar or colour without a terminal"


@pytest.mark.slow
async def test_demo_against_another_broker_as_json(broker: EmbeddedBroker) -> None:
    done = await run("demo", "--url", broker.url, "--count", "3000", "--size", "1000", "--json")
    assert done.returncode == 0
    assert done.stderr == b""
    (result,) = objects(done.stdout)
    assert (result["messages"], result["size"]) == (3000, 1000)
    assert (result["lost"], result["repeated"], result["reordered"]) == (0, 0, 0)
    assert 0 < result["p50_ms"] <= result["p99_ms"]
    assert result["rate"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_broker_says_when_it_is_ready_and_ends_cleanly(ending: signal.Signals) -> None:
    with trio.fail_after(30):
        process = await trio.lowlevel.open_process(
            [*COMMAND, "broker", "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": "src"},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        (ready,) = objects(await lines(process.stdout, 1))
        assert ready["event"] == "ready"
        assert ready["url"] == f"pulsar://127.0.0.1:{ready['port']}"
        async with open_client(ready["url"]) as client, client.create_producer("t") as producer:
            await producer.send(b"1")
            process.send_signal(ending)
            assert await process.wait() == 0
        assert objects(await lines(process.stdout, 1)) == [{"event": "stopped"}]
        assert await process.stderr.receive_some(10_000) == b""


@pytest.mark.slow
async def test_produce_and_consume_generated_messages(broker: EmbeddedBroker) -> None:
    done = await run("produce", "t", "--url", broker.url, "--count", "2500", "--size", "10", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = objects(done.stdout)
    assert result["produced"] == 2500
    assert result["topic"] == "persistent://public/default/t"
    consume = ("consume", "t", "--subscription", "s", "--url", broker.url, "--json", "--count")
    done = await run(*consume, "2000")
    assert done.returncode == 0, done.stderr
    messages = objects(done.stdout)
    assert [message["value"] for message in messages[:2]] == ["0 ........", "1 ........"]
    assert len(messages) == 2000
    # what was printed is acknowledged, the rest is still there
    done = await run(*consume, "500")
    assert [int(message["value"].split()[0]) for message in objects(done.stdout)] == list(range(2000, 2500))


@pytest.mark.slow
async def test_produce_lines_of_standard_input(broker: EmbeddedBroker) -> None:
    texts = [f"line {number}" for number in range(3000)] + ["\x1b[31mred", "", "last without its end"]
    done = await run("produce", "t", "--url", broker.url, given="\n".join(texts).encode() + b"\n\xff")
    assert done.returncode == 0, done.stderr
    assert "produced 3004 messages" in done.stdout.decode()
    consume = (
        "consume",
        "t",
        "--url",
        broker.url,
        "--count",
        "3004",
        "--kind",
        "exclusive",
        "--subscription",
    )
    done = await run(*consume, "text")
    assert done.returncode == 0
    printed = [line.partition(" ")[2] for line in done.stdout.decode().splitlines()]
    assert printed[:3000] == texts[:3000]
    assert printed[3000:] == ["\\x1b[31mred", "", texts[-1], "\\xff"]
    assert "consumed 3004 messages" in done.stderr.decode()
    done = await run(*consume, "json", "--json")
    messages = objects(done.stdout)
    assert [message.get("value") for message in messages[:-1]] == texts
    assert messages[-1]["base64"] == "/w=="


async def test_produce_keeps_a_rate(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("produce", "t", "--url", broker.url, "--count", "50", "--rate", "250", "--json")
    assert await trio.to_thread.run_sync(main, command) == 0
    (result,) = objects(capsys.readouterr().out.encode())
    assert result["produced"] == 50
    assert 0.19 < result["seconds"] < 5


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_consume_ends_cleanly_when_it_is_told_to(
    broker: EmbeddedBroker, ending: signal.Signals
) -> None:
    async with open_client(broker.url) as client, client.create_producer("t", batching=None) as producer:
        with trio.fail_after(30):
            process = await trio.lowlevel.open_process(
                [*COMMAND, "consume", "t", "--subscription", "s", "--url", broker.url],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": "src"},
            )
            assert process.stdout is not None
            await producer.send(b"one")
            assert b"one" in await process.stdout.receive_some(10_000)
            process.send_signal(ending)
            assert await process.wait() == 0
        await producer.send(b"two")
        async with client.subscribe("t", "s") as consumer:
            assert (await consumer.receive()).data == b"two"


async def test_the_url_may_come_from_the_environment(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_URL", broker.url)
    assert await trio.to_thread.run_sync(main, ["produce", "t", "--count", "1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "command"),
        (["sing"], 2, "sing"),
        (["demo", "--count", "0"], 2, "at least 1, not '0'"),
        (["demo", "--size", "-1"], 2, "at least 0, not '-1'"),
        (["broker", "--port", "65536"], 2, "a port from 0 to 65535, not '65536'"),
        (["produce", "t", "--count", "x"], 2, "not 'x'"),
        (["produce", "t", "--rate", "0"], 2, "more than 0, not '0'"),
        (["produce", "t", "--count", "1", "--url", "http://localhost"], 2, "begins with pulsar://"),
        (["produce", "t", "--count", "1", "--url", "pulsar+ssl://localhost"], 2, "not supported yet"),
        (["produce", "a/b", "--count", "1"], 2, "topic name 'a/b'"),
        (["consume", "t"], 2, "--subscription"),
        (["consume", "t", "--subscription", "s", "--kind", "all"], 2, "'all'"),
        (["broker", "--host", "192.0.2.1"], 1, "assign"),
    ],
)
def test_an_error_is_one_line_with_a_hint(
    arguments: Sequence[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        returned = main(arguments)
    except SystemExit as end:
        returned = end.code  # type: ignore[assignment]
    captured = capsys.readouterr()
    assert returned == code, captured.err
    line = one_line(captured.err.encode())
    assert line.startswith("pulsar-trio")
    assert words in line
    assert "(hint: " in line
    assert captured.out == ""


async def test_a_refusal_of_the_broker_is_one_line(
    broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("t")
    broker.terminate("t")
    command = ("produce", "t", "--url", broker.url, "--count", "1")
    assert await trio.to_thread.run_sync(main, command) == 1
    assert "terminated" in one_line(capsys.readouterr().err.encode())


async def test_an_error_as_json(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.create_partitioned_topic("t", 2)
    command = ("produce", "t", "--url", broker.url, "--count", "1", "--json")
    assert await trio.to_thread.run_sync(main, command) == 1
    (error,) = objects(capsys.readouterr().err.encode())
    assert "partition" in error["error"]
    assert set(error) == {"error", "hint"}


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["broker", "--port", str(taken.getsockname()[1])]) == 1
    line = one_line(capsys.readouterr().err.encode())
    assert "in use" in line
    assert "--port" in line


@pytest.mark.slow
async def test_a_reader_that_has_read_enough_is_no_error(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url) as client, client.create_producer("t") as producer:
        await producer.send_many([b"x" * 100] * 5000)
    with trio.fail_after(30):
        done = await trio.run_process(
            f"{sys.executable} -m pulsar_trio consume t --subscription s --url {broker.url} | head -n 1",
            shell=True,
            capture_stdout=True,
            capture_stderr=True,
            env={**os.environ, "PYTHONPATH": "src"},
        )
    assert one_line(done.stdout).endswith("x" * 100)
    assert b"Traceback" not in done.stderr
