"""The command as people and scripts use it: what it prints, what it returns, how it ends."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from pulsar_trio import EmbeddedBroker, OutgoingMessage, open_broker, open_client
from pulsar_trio_command.command import main
from pulsar_trio_command.console import Output
from tests.patience import PATIENCE

COMMAND = [sys.executable, "-m", "pulsar_trio_command"]


class BrokerThread:
    """A broker in a thread, so that the command can have the main thread, as it has in real life."""

    def __init__(self, http_port: int | None = None) -> None:
        self._http_port = http_port
        self.ready = threading.Event()
        self.thread = threading.Thread(target=trio.run, args=(self._run,))
        self.thread.start()
        assert self.ready.wait(10)

    async def _run(self) -> None:
        self.token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self.scope:
            async with open_broker(http_port=self._http_port) as self.broker:
                self.url = self.broker.url
                self.ready.set()
                await trio.sleep_forever()

    def call(self, function: Callable[[EmbeddedBroker], None]) -> None:
        """Call a function with the broker, in its thread."""
        trio.from_thread.run_sync(function, self.broker, trio_token=self.token)

    def stop(self) -> None:
        self.token.run_sync_soon(self.scope.cancel)
        self.thread.join(10)


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    thread = BrokerThread()
    yield thread
    thread.stop()


class Command:
    """Runs the command in this process."""

    def __init__(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: Path
    ) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self._path = path

    def __call__(self, *arguments: str, given: bytes = b"") -> "Done":
        self._path.write_bytes(given)
        with self._path.open() as source:
            self._monkeypatch.setattr(sys, "stdin", source)
            try:
                code = main(arguments)
            except SystemExit as end:
                code = cast(int, end.code)
        captured = self._capsys.readouterr()
        return Done(code, captured.out, captured.err)


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        assert self.code == 0, self.err
        return objects(self.out)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path / "stdin")


def objects(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def one_line(output: str) -> str:
    (line,) = output.splitlines()
    return line


# --- in this process ----------------------------------------------------------------------------------------


def test_demo_says_what_came_of_it(command: Command) -> None:
    done = command("demo", "--count", "2000")
    assert done.code == 0, done.err
    assert "messages/s" in done.out
    assert "p50" in done.out
    assert "p99" in done.out
    assert "lost 0, repeated 0, reordered 0" in done.out
    assert "\x1b" not in done.out + done.err, "a bar or colour without a terminal"


def test_demo_against_another_broker_as_json(broker: BrokerThread, command: Command) -> None:
    done = command("demo", "--url", broker.url, "--count", "1000", "--size", "1000", "--json")
    (result,) = done.objects
    assert done.err == ""
    assert (result["messages"], result["size"]) == (1000, 1000)
    assert (result["lost"], result["repeated"], result["reordered"]) == (0, 0, 0)
    assert 0 < result["p50_ms"] <= result["p99_ms"]
    assert result["rate"] > 0


def test_produce_and_consume_generated_messages(broker: BrokerThread, command: Command) -> None:
    (result,) = command(
        "produce", "t", "--url", broker.url, "--count", "2500", "--size", "10", "--json"
    ).objects
    assert result["produced"] == 2500
    assert result["topic"] == "persistent://public/default/t"
    consume = ("consume", "t", "--subscription", "s", "--url", broker.url, "--json", "--count")
    messages = command(*consume, "2000").objects
    assert [message["value"] for message in messages[:2]] == ["0 ........", "1 ........"]
    assert len(messages) == 2000
    # what was printed is acknowledged, the rest is still there
    messages = command(*consume, "500").objects
    assert [int(message["value"].split()[0]) for message in messages] == list(range(2000, 2500))


def test_produce_lines_of_standard_input(broker: BrokerThread, command: Command) -> None:
    texts = [f"line {number}" for number in range(3000)] + ["\x1b[31mred", "", "last with an end"]
    done = command("produce", "t", "--url", broker.url, given="\n".join(texts).encode() + b"\n\xff")
    assert "produced 3004 messages" in done.out
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
    done = command(*consume, "text")
    printed = [line.partition(" ")[2] for line in done.out.splitlines()]
    assert printed[:3000] == texts[:3000]
    assert printed[3000:] == ["\\x1b[31mred", "", texts[-1], "\\xff"]
    assert "consumed 3004 messages" in done.err
    messages = command(*consume, "json", "--json").objects
    assert [message.get("value") for message in messages[:-1]] == texts
    assert messages[-1]["base64"] == "/w=="


def test_produce_keeps_a_rate(broker: BrokerThread, command: Command) -> None:
    produce = ("produce", "t", "--url", broker.url, "--json", "--rate")
    (result,) = command(*produce, "250", "--count", "50").objects
    assert result["produced"] == 50
    assert 0.19 < result["seconds"] < 5
    (result,) = command(*produce, "1000", given=b"a\nb\nc").objects
    assert result["produced"] == 3


def test_consume_shows_keys_and_the_end_of_a_topic(broker: BrokerThread, command: Command) -> None:
    async def produce() -> None:
        async with open_client(broker.url) as client, client.create_producer("t") as producer:
            await producer.send(b"blue", key="colour")
            await producer.send(OutgoingMessage(None, key="gone"))

    trio.run(produce)
    broker.call(lambda running: running.terminate("t") and None)
    done = command("consume", "t", "--subscription", "s", "--url", broker.url, "--kind", "exclusive")
    assert [line.partition(" ")[2] for line in done.out.splitlines()] == ["colour: blue", "gone: null"]
    assert done.code == 0


def test_consume_shows_what_is_no_text_and_goes_on(broker: BrokerThread, command: Command) -> None:
    """Clients in other languages may write such a message; a command that failed would never get past it."""

    async def produce() -> None:
        async with open_client(broker.url) as client, client.create_producer("t") as producer:
            await producer.send(b"1", key="\udcff", properties={"\udcfe": "é"})

    trio.run(produce)
    consume = ("consume", "t", "--url", broker.url, "--count", "1", "--subscription")
    done = command(*consume, "text")
    assert (done.code, done.out) == (0, "0:0:-1 \\udcff: 1 {\\udcfe=é}\n")
    (message,) = command(*consume, "json", "--json").objects
    assert (message["key"], message["properties"]) == ("\udcff", {"\udcfe": "é"})


def test_the_url_may_come_from_the_environment(
    broker: BrokerThread, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_SERVICE_URL", broker.url)
    assert command("produce", "t", "--count", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "command"),
        (["sing"], 2, "sing"),
        (["demo", "--count", "0"], 2, "at least 1, not '0'"),
        (["demo", "--size", "-1"], 2, "at least 0, not '-1'"),
        (["broker", "--port", "65536"], 2, "a port from 0 to 65535, not '65536'"),
        (["broker", "--http-port", "x"], 2, "a port from 0 to 65535, not 'x'"),
        (["produce", "t", "--count", "x"], 2, "not 'x'"),
        (["produce", "t", "--rate", "0"], 2, "more than 0, not '0'"),
        (["produce", "t", "--count", "1", "--url", "ftp://localhost"], 2, "begins with pulsar://"),
        (["broker", "--tls-port", "x"], 2, "a whole number from 0 to 65535, not 'x'"),
        (["broker", "--tls-port", "0"], 2, "needs tlsCertificateFilePath (--tls-certificate)"),
        (["broker", "--tls-certificate", "/no/file", "--tls-port", "0"], 2, "'/no/file': No such file"),
        (["produce", "a/b", "--count", "1"], 2, "topic name 'a/b'"),
        (["consume", "t"], 2, "--subscription"),
        (["consume", "t", "--subscription", "s", "--kind", "all"], 2, "'all'"),
        (["broker", "--host", "192.0.2.1"], 1, "assign"),
        (["broker", "--host", "0.0.0.0", "--port", "0"], 2, "--allow-unauthenticated"),
    ],
)
def test_an_error_is_one_line_with_a_hint(
    command: Command, arguments: Sequence[str], code: int, words: str
) -> None:
    done = command(*arguments)
    assert done.code == code
    line = one_line(done.err)
    assert line.startswith("pulsar-trio")
    assert words in line
    assert "(hint: " in line
    assert done.out == ""


def test_a_refusal_of_the_broker_is_one_line(broker: BrokerThread, command: Command) -> None:
    broker.call(lambda running: running.create_topic("t"))
    broker.call(lambda running: running.terminate("t") and None)
    for kind in (["--count", "1"], []):
        done = command("produce", "t", "--url", broker.url, *kind, given=b"a")
        assert done.code == 1
        assert "terminated" in one_line(done.err)


def test_an_error_as_json(broker: BrokerThread, command: Command) -> None:
    broker.call(lambda running: running.create_topic("t"))
    broker.call(lambda running: running.terminate("t") and None)
    done = command("produce", "t", "--url", broker.url, "--count", "1", "--json")
    assert done.code == 1
    (error,) = objects(done.err)
    assert "terminated" in error["error"]
    assert set(error) == {"error", "hint"}


def test_a_port_in_use(broker: BrokerThread, command: Command) -> None:
    done = command("broker", "--port", str(broker.broker.port))
    assert done.code == 1
    assert "in use" in one_line(done.err)
    assert "--port" in one_line(done.err)


End = Callable[[signal.Signals], None]


@pytest.fixture
def end_when_ready(monkeypatch: pytest.MonkeyPatch) -> End:
    """Has this process get a signal as soon as it has said that its broker is ready."""
    say = Output.result

    def end(ending: signal.Signals) -> None:
        def result(self: Output, text: str, **fields: Any) -> None:
            say(self, text, **fields)
            if fields["event"] == "ready":
                signal.raise_signal(ending)

        monkeypatch.setattr(Output, "result", result)

    return end


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_broker_ends_cleanly(command: Command, end_when_ready: End, ending: signal.Signals) -> None:
    end_when_ready(ending)
    ready, stopped = command("broker", "--port", "0", "--json").objects
    assert ready == {"event": "ready", "url": f"pulsar://127.0.0.1:{ready['port']}", "port": ready["port"]}
    assert stopped == {"event": "stopped"}


def test_broker_with_the_administration_over_http(command: Command, end_when_ready: End) -> None:
    end_when_ready(signal.SIGINT)
    ready, _ = command("broker", "--port", "0", "--http-port", "0", "--json").objects
    assert ready["admin_url"] == f"http://127.0.0.1:{ready['http_port']}"
    assert len({ready["http_port"], ready["port"], 0}) == 3


def test_broker_says_where_its_administration_is(command: Command, end_when_ready: End) -> None:
    end_when_ready(signal.SIGINT)
    done = command("broker", "--port", "0", "--http-port", "0")
    ready, admin, stopped = done.out.splitlines()
    assert ready.startswith("ready pulsar://127.0.0.1:")
    assert admin.startswith("admin http://127.0.0.1:")
    assert stopped == "stopped"


def test_a_bug_is_not_hidden(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pulsar_trio_command.broker.serve.run", broken)
    with pytest.raises(ZeroDivisionError):
        command("broker")


def test_an_interruption_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object) -> None:
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt()])

    monkeypatch.setattr("pulsar_trio_command.demo.run", interrupted)
    done = command("demo")
    assert (done.code, done.err) == (130, "pulsar-trio: interrupted\n")


# --- as processes of their own -----------------------------------------------------------------------------


async def lines(stream: trio.abc.ReceiveStream, count: int) -> str:
    """Read `count` lines, and nothing after them."""
    output = b""
    with trio.fail_after(PATIENCE):
        while output.count(b"\n") < count:
            output += await stream.receive_some(10_000)
    return output.decode()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_broker_serves_until_it_is_told_to_stop(ending: signal.Signals) -> None:
    with trio.fail_after(PATIENCE):
        process = await trio.lowlevel.open_process(
            [*COMMAND, "broker", "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        (ready,) = objects(await lines(process.stdout, 1))
        async with open_client(ready["url"]) as client, client.create_producer("t") as producer:
            await producer.send(b"1")
            process.send_signal(ending)
            assert await process.wait() == 0
        assert objects(await lines(process.stdout, 1)) == [{"event": "stopped"}]
        assert await process.stderr.receive_some(10_000) == b""


@pytest.mark.slow
async def test_consume_acknowledges_what_it_printed_before_it_was_told_to_stop() -> None:
    async with (
        open_broker() as broker,
        open_client(broker.url) as client,
        client.create_producer("t", batching=None) as producer,
    ):
        with trio.fail_after(PATIENCE):
            process = await trio.lowlevel.open_process(
                [*COMMAND, "consume", "t", "--subscription", "s", "--url", broker.url],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout is not None
            await producer.send(b"one")
            assert "one" in await lines(process.stdout, 1)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        await producer.send(b"two")
        async with client.subscribe("t", "s") as consumer:
            assert (await consumer.receive()).data == b"two"


@pytest.mark.slow
async def test_a_reader_that_has_read_enough_is_no_error() -> None:
    async with (
        open_broker() as broker,
        open_client(broker.url) as client,
        client.create_producer("t") as producer,
    ):
        await producer.send_many([b"x" * 100] * 5000)
        with trio.fail_after(PATIENCE):
            done = await trio.run_process(
                f"{' '.join(COMMAND)} consume t --subscription s --url {broker.url} | head -n 1",
                shell=True,
                capture_stdout=True,
                capture_stderr=True,
            )
    assert one_line(done.stdout.decode()).endswith("x" * 100)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_result_into_a_closed_pipe_is_no_bug() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pulsar_trio_command", "simulate", "recall", "--list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "not_imported"),
    [
        ("produce", {"pulsar_sim", "pulsar_spark", "pulsar_trio_command.demo"}),
        ("simulate", {"trio", "pulsar_trio", "pulsar_spark"}),
        ("spark", {"trio", "pulsar_trio", "pulsar_sim", "pyspark"}),
    ],
)
def test_a_command_imports_only_what_it_runs(command: str, not_imported: set[str]) -> None:
    script = (
        "import sys\nfrom pulsar_trio_command.command import main\n"
        f"try: main([{command!r}, '--help'])\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not not_imported & set(done.stderr.split())
