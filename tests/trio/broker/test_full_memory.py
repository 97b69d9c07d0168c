"""A broker whose memory is full: producers wait for room, and send again what was refused."""

from pathlib import Path

import pytest
import trio

from pulsar_trio import open_broker, open_client
from pulsar_trio.broker import machine_memory
from pulsar_trio.broker.options import broker_config
from tests.patience import PATIENCE

LIMIT = 20_000


async def test_a_refused_message_is_sent_again_when_there_is_room() -> None:
    """BROKER-41: our client connects again after PersistenceError, as Java's does, and sends again."""
    async with open_broker(max_stored_bytes=LIMIT) as broker, open_client(broker.url) as client:
        async with client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", batching=None) as producer, trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(producer.send, b"x" * 1000)
                with trio.fail_after(PATIENCE):
                    for _ in range(50):
                        consumer.acknowledge(await consumer.receive())
            assert producer.statistics().confirmed == 50


def test_half_of_the_memory_by_default() -> None:
    url = "pulsar://127.0.0.1:6650"
    assert broker_config(url, {}).max_stored_bytes == machine_memory.machine_memory() // 2 > 0
    assert broker_config(url, {"max_stored_bytes": 0}).max_stored_bytes == 0


@pytest.mark.parametrize(
    "where",
    [
        "memory.max",
        "memory/memory.limit_in_bytes",
        "system.slice/memory.max",
        "system.slice/pulsar.service/memory.max",
    ],
)
@pytest.mark.parametrize(("text", "limited"), [("1048576\n", True), ("max\n", False)])
def test_the_limit_of_a_control_group(tmp_path: Path, where: str, text: str, limited: bool) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/system.slice/pulsar.service\n")
    for folder in ("", "memory", "system.slice/pulsar.service"):
        (tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True, exist_ok=True)
    file = tmp_path / "sys/fs/cgroup" / where
    file.write_text(text)
    assert (machine_memory.machine_memory(tmp_path) == 1048576) is limited


def test_a_system_that_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sysconf")
    assert machine_memory.machine_memory(tmp_path) == machine_memory.WHERE_UNKNOWN
