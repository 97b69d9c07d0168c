"""The fixture `pulsar_broker` in the tests of other projects: what it gives, shows, and leaves behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytest_plugins = ("pytester",)

pytestmark = pytest.mark.slow

PLUGIN = "pulsar_trio_pytest.plugin"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project without any settings, and with a client that logs nothing."""
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(
        quiet="""
        import pulsar

        def quiet_client(url):
            return pulsar.Client(url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
        """
    )
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-W", "error", "-p", PLUGIN, "-p", "no:cacheprovider", *options)


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert entries == {PLUGIN: PLUGIN}
    assert import_module(PLUGIN).pulsar_broker is not None


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker of conversations is not loaded into processes that the test starts."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))


@pytest.mark.usefixtures("alone")
def test_importing_the_plugin_imports_neither_trio_nor_the_broker() -> None:
    packages = {"trio", "pulsar_sansio", "pulsar_trio", "pulsar_security", "pulsar_trio_command", "google"}
    program = f"import sys, {PLUGIN}; print(sorted({packages!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("alone")
def test_nothing_happens_unless_the_fixture_is_asked_for(project: pytest.Pytester) -> None:
    """A process could not be started here, and no module of the broker is imported."""
    project.makeconftest(
        """
        import subprocess

        def popen(*arguments, **options):
            raise AssertionError("a process is started")

        subprocess.Popen = popen
        """
    )
    project.makepyfile(
        """
        import sys

        def test_nothing_is_imported():
            assert not {"pulsar_sansio", "pulsar_trio"} & set(sys.modules)
        """
    )
    run(project).assert_outcomes(passed=1)


OFFICIAL = """
    import asyncio
    import pulsar
    import pulsar.asyncio
    import pytest

    QUIET = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")

    def test_a_synchronous_client(pulsar_broker):
        client = pulsar.Client(pulsar_broker.url, logger=QUIET)
        topic = pulsar_broker.topic("orders")
        refused = pulsar_broker.faults.add("SEND", "error", code="PersistenceError", times=1)
        consumer = client.subscribe(topic, "s")
        pulsar_broker.until(consumers=1, subscription="s")
        client.create_producer(topic).send(b"x")
        message = consumer.receive(60_000)
        consumer.acknowledge(message)
        pulsar_broker.until(backlog=0)
        assert (message.data(), refused.fired) == (b"x", 1)
        client.close()

    def test_an_asyncio_client(pulsar_broker):
        topic = pulsar_broker.topic("orders")
        late = pulsar_broker.faults.add("SEND_RECEIPT", "delay", seconds=0.2, topic=topic)

        async def main():
            client = pulsar.asyncio.Client(pulsar_broker.url, logger=QUIET)
            consumer = await client.subscribe(topic, "s")
            producer = await client.create_producer(topic)
            await producer.send(b"y")
            message = await consumer.receive()
            await consumer.acknowledge(message)
            await asyncio.to_thread(pulsar_broker.until, backlog=0, timeout=60.0)
            await client.close()
            return message.data()

        assert asyncio.run(main()) == b"y"
        assert late.fired == 1
    """

TRIO = """
    import trio
    from functools import partial
    from pulsar_trio import open_client

    def test_a_trio_client(pulsar_broker):
        refused = pulsar_broker.faults.add("PRODUCER", "error", code="ServiceNotReady", times=1)
        topic = pulsar_broker.topic("orders")

        async def main():
            async with open_client(pulsar_broker.url) as client:
                async with (
                    client.subscribe(topic, "s") as consumer,
                    client.create_producer(topic) as producer,
                ):
                    await producer.send(b"z")
                    message = await consumer.receive()
                    consumer.acknowledge(message)
                    await trio.to_thread.run_sync(partial(pulsar_broker.until, backlog=0, timeout=60.0))
                    return message.data

        assert trio.run(main) == b"z"
        assert refused.fired == 1
    """


def test_any_client_uses_the_broker(project: pytest.Pytester) -> None:
    project.makepyfile(test_official=OFFICIAL, test_trio=TRIO)
    run(project).assert_outcomes(passed=3)


def test_each_test_has_its_own_namespace_and_no_faults_of_the_one_before(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import json
        from urllib.request import urlopen

        import pytest
        from quiet import quiet_client

        used = []

        def namespaces(broker):
            with urlopen(f"{broker.admin_url}/admin/v2/namespaces/public") as answer:
                return json.load(answer)

        @pytest.mark.parametrize("number", range(3))
        def test_namespaces(pulsar_broker, pulsar_broker_process, number):
            assert pulsar_broker.namespace in namespaces(pulsar_broker)
            assert not set(used) & {pulsar_broker.namespace, *namespaces(pulsar_broker)}
            assert pulsar_broker.faults.describe() == ""
            used.append(pulsar_broker.namespace)
            pulsar_broker.faults.add("SEND", "drop")
            assert pulsar_broker.url == pulsar_broker_process.url
            topic = pulsar_broker.topic("t")
            assert topic == f"persistent://{pulsar_broker.namespace}/t"
            client = quiet_client(pulsar_broker.url)
            client.subscribe(topic, "s")  # a namespace is deleted though clients use it
        """
    )
    run(project).assert_outcomes(passed=3)


def test_the_log_of_the_broker_is_shown_below_a_test_that_fails(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from quiet import quiet_client

        def test_fails(pulsar_broker):
            pulsar_broker.faults.add("SUBSCRIBE", "close", times=1)
            client = quiet_client(pulsar_broker.url)
            client.subscribe(pulsar_broker.topic("t"), "s")
            client.close()
            assert False

        def test_passes(pulsar_broker):
            pulsar_broker.faults.add("ACK", "drop")
        """
    )
    result = run(project)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*- Pulsar broker (call) -*",
            "*connection * is closed: a rule of faults: <FaultRule 1: SUBSCRIBE close*",
            "rule 1: SUBSCRIBE close, topic *, fired 1",
        ]
    )
    assert "ACK drop" not in result.stdout.str()


def test_options_for_the_broker_and_a_broker_that_cannot_start(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def pulsar_broker_arguments():
            return ("--set", "maxMessageSize=2048")
        """
    )
    project.makepyfile(
        """
        import pulsar
        import pytest
        from pulsar_trio_pytest import BrokerHasEnded, BrokerProcess
        from quiet import quiet_client

        def test_the_option_counts(pulsar_broker):
            client = quiet_client(pulsar_broker.url)
            with pytest.raises(pulsar.MessageTooBig):
                client.create_producer(pulsar_broker.topic("t")).send(bytes(4096))
            client.close()

        def test_a_wrong_option():
            with pytest.raises(BrokerHasEnded, match="maxMessageSise"):
                BrokerProcess("--set", "maxMessageSise=2048")

        def test_a_broker_that_is_killed(pulsar_broker):
            with BrokerProcess() as process:
                with pytest.raises(BrokerHasEnded, match="exit code"):
                    with process.namespace() as broker:
                        process.close()
                        broker.reset()
        """
    )
    run(project).assert_outcomes(passed=3)


def test_each_worker_of_xdist_has_its_own_broker(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from pathlib import Path

        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_urls(pulsar_broker, worker_id, number):
            with Path("urls").open("a") as urls:
                print(worker_id, pulsar_broker.url, file=urls)
        """
    )
    run(project, "-n", "2", "--dist", "each").assert_outcomes(passed=8)
    lines = {tuple(line.split()) for line in (project.path / "urls").read_text().splitlines()}
    assert len(lines) == 2
    assert len({url for _, url in lines}) == 2


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("ending", ["a test that fails", "SIGKILL", "os._exit"])
def test_the_broker_ends_with_pytest_however_that_ends(project: pytest.Pytester, ending: str) -> None:
    end = {
        "a test that fails": "assert False",
        "SIGKILL": f"os.kill(os.getpid(), {int(signal.SIGKILL)})",
        "os._exit": "os._exit(1)",
    }[ending]
    project.makepyfile(
        f"""
        import os
        from pathlib import Path

        def test_ends(pulsar_broker):
            Path("port").write_text(pulsar_broker.url.rpartition(":")[2])
            {end}
        """
    )
    assert run(project).ret != 0
    port = int((project.path / "port").read_text())
    for _ in range(round(PATIENCE * 10)):
        if not listens(port):
            break
        time.sleep(0.1)
    assert not listens(port)


def test_the_command_stops_when_its_input_ends_and_not_before() -> None:
    command = [
        sys.executable,
        "-m",
        "pulsar_trio_command",
        "broker",
        "--port",
        "0",
        "--json",
        "--stop-at-eof",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        process.stdin.write(b"what is written here does not matter\n")
        process.stdin.flush()
        assert listens(ready["port"])
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out) == {"event": "stopped"}
