"""Rounds of a broker that is killed (SIGKILL) at a random moment, over one folder of data.

Every round runs `pulsar-trio broker --data` as a process, with producers and consumers of ours. All that the
broker confirmed to them is written down, and looked for in a copy of the folder after the kill. The next
round's broker recovers the folder itself. Its consumers check that no acknowledged message is delivered
again.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from pulsar_sansio import MessageId, StoredState, StoredTopic
from pulsar_store import SYNCS, SqliteStore
from pulsar_store.inspection import check
from pulsar_trio import BatchingPolicy, Client, ExclusiveConsumer, PulsarError, open_client
from tests.store.reading import whole

TOPICS = tuple(f"persistent://public/default/killed-{number}" for number in range(2))

SUBSCRIPTIONS = ("shared", "cumulative", "slow")
"""Individual acknowledgements; cumulative ones; those of a few messages, which keeps the topics' data."""

SETTINGS = ("brokerDeduplicationEnabled=true", "acknowledgmentAtBatchIndexLevelEnabled=true")

LONGEST = 0.8
"""Seconds from the first message of a round to the kill, at most."""


@dataclass
class Confirmed:
    """All that brokers have confirmed, over all rounds."""

    messages: dict[str, dict[MessageId, bytes]] = field(
        default_factory=lambda: {topic: {} for topic in TOPICS}
    )
    """Topic -> the payload of each id."""
    acknowledged: dict[tuple[str, str], set[MessageId]] = field(
        default_factory=lambda: {(topic, name): set() for topic in TOPICS for name in SUBSCRIPTIONS}
    )
    up_to: dict[str, MessageId] = field(default_factory=dict)
    """Topic -> the last cumulative acknowledgement of "cumulative"."""
    sequences: dict[tuple[str, str], int] = field(default_factory=dict)
    """Topic and producer -> the highest sequence id."""
    faults: list[str] = field(default_factory=list)


@contextmanager
def broker(folder: Path, sync: str, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the command; gives its service URL and its process, which is killed at the end."""
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--json", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*command, "--data", str(folder), "--sync", sync, *settings],
        env=environment,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield json.loads(line)["url"], process
        finally:
            process.kill()


class Round:
    """One broker's life: applications that use it until it is killed."""

    def __init__(self, confirmed: Confirmed, seed: int) -> None:
        self._confirmed = confirmed
        self._random = random.Random(seed)
        self._began = trio.Event()

    async def run(self, url: str, process: "subprocess.Popen[bytes]") -> None:
        async with open_client(url) as client, trio.open_nursery() as nursery:
            for topic in TOPICS:
                for name, batching in (("single", None), ("batched", BatchingPolicy(max_delay=0.002))):
                    nursery.start_soon(self._alone, self._produce, client, topic, name, batching)
                for subscription in SUBSCRIPTIONS:
                    nursery.start_soon(self._alone, self._consume, client, topic, subscription)
            await self._began.wait()
            await trio.sleep(self._random.uniform(0.0, LONGEST))
            process.kill()
            nursery.cancel_scope.cancel()

    async def _alone(self, application: Any, *arguments: Any) -> None:
        """Run an application; the broker's end is not its failure."""
        try:
            await application(*arguments)
        except PulsarError:
            await trio.sleep_forever()

    async def _produce(self, client: Client, topic: str, name: str, batching: BatchingPolicy | None) -> None:
        async with client.create_producer(topic, name=name, batching=batching) as producer:
            known = self._confirmed.sequences.get((topic, name), -1)
            if producer.last_sequence_id < known:
                self._confirmed.faults.append(
                    f"{topic}: {name} is at sequence id {producer.last_sequence_id}, was at {known}"
                )
            number = producer.last_sequence_id
            while True:
                receipts = []
                for _ in range(self._random.randint(1, 60)):
                    number += 1
                    data = b"%s %d " % (name.encode(), number) + b"x" * self._random.choice([0, 100, 3000])
                    receipts.append((number, data, await producer.enqueue(data)))
                for number, data, receipt in receipts:
                    message_id = await receipt.wait()
                    self._confirmed.messages[topic][message_id] = data
                    self._confirmed.sequences[topic, name] = number
                self._began.set()

    async def _consume(self, client: Client, topic: str, subscription: str) -> None:
        confirmed = self._confirmed
        async with client.subscribe(
            topic,
            subscription,
            "exclusive" if subscription == "cumulative" else "shared",
            initial_position="earliest",
            acknowledgement_receipts=True,
            acknowledgement_group_time=0.005,
            batch_index_acknowledgement=True,
        ) as consumer:
            while True:
                messages = list(await consumer.receive_many(100))
                for message in messages:
                    again = message.message_id in confirmed.acknowledged[topic, subscription]
                    if again or (
                        subscription == "cumulative"
                        and topic in confirmed.up_to
                        and message.message_id <= confirmed.up_to[topic]
                    ):
                        confirmed.faults.append(
                            f"{topic}: {subscription} received {message.message_id} again"
                        )
                if subscription == "cumulative":
                    assert isinstance(consumer, ExclusiveConsumer)
                    consumer.acknowledge_cumulative(messages[-1])
                    await consumer.flush()
                    confirmed.up_to[topic] = messages[-1].message_id
                    continue
                if subscription == "slow":
                    messages = [each for each in messages if self._random.random() < 0.05]
                for message in messages:
                    consumer.acknowledge(message)
                await consumer.flush()
                confirmed.acknowledged[topic, subscription].update(each.message_id for each in messages)


def faults_of(state: StoredState, confirmed: Confirmed) -> Iterator[str]:
    """Yield what the store of a killed broker lacks of all that was confirmed."""
    for topic in TOPICS:
        stored = state.topics.get(topic)
        if stored is None:
            if confirmed.messages[topic]:
                yield f"{topic} is gone"
            continue
        entries = {
            (ledger_id, entry.entry_id): (ledger.first_offset + entry.entry_id, entry)
            for ledger_id, ledger in stored.ledgers.items()
            for entry in ledger.entries
        }
        for message_id, data in confirmed.messages[topic].items():
            found = entries.get((message_id.ledger_id, message_id.entry_id))
            if found is None or data not in found[1].data:
                yield f"{topic}: message {message_id} is lost"
        offsets = {place: offset for place, (offset, _) in entries.items()}
        for subscription in ("shared", "slow"):
            for message_id in confirmed.acknowledged[topic, subscription]:
                if not _is_acknowledged(stored, subscription, offsets, message_id):
                    yield f"{topic}: {subscription} lost its acknowledgement of {message_id}"
        last = confirmed.up_to.get(topic)
        if last is not None and not _is_acknowledged(stored, "cumulative", offsets, last, whole=True):
            yield f"{topic}: cumulative is behind {last}"
        for (of, producer), sequence_id in confirmed.sequences.items():
            if of == topic and stored.sequences.get(producer, -1) < sequence_id:
                yield f"{topic}: {producer} is behind sequence id {sequence_id}"


def _is_acknowledged(
    stored: StoredTopic,
    subscription: str,
    offsets: dict[tuple[int, int], int],
    message_id: MessageId,
    *,
    whole: bool = False,
) -> bool:
    """True when the cursor has the message; `whole`: and all messages before it."""
    cursor = stored.cursors.get(subscription)
    if cursor is None:
        return False
    offset = offsets[message_id.ledger_id, message_id.entry_id]
    if offset <= cursor.mark_delete:
        return True
    left = dict(cursor.partly).get(offset)
    index = max(message_id.batch_index, 0)
    if whole:
        return left is not None and offset == cursor.mark_delete + 1 and not left & ((2 << index) - 1)
    if any(first <= offset <= last for first, last in cursor.acknowledged):
        return True
    return left is not None and not left >> index & 1


def run_rounds(rounds: int, seed: int, folder: Path, report: Any = lambda text: None) -> Confirmed:
    """Run rounds over one folder, whose faults are in the result; ends with the first round that has some."""
    confirmed = Confirmed()
    for number in range(rounds):
        sync = SYNCS[number % len(SYNCS)]
        with broker(folder, sync) as (url, process):
            one = Round(confirmed, seed * 1_000_003 + number)
            trio.run(one.run, url, process)
            process.wait()
        with TemporaryDirectory() as copy:
            copied = Path(copy) / "data"
            shutil.copytree(folder, copied)
            store = SqliteStore(copied)
            confirmed.faults += faults_of(whole(store), confirmed)
            store.close()
            confirmed.faults += check(copied)[1]
        messages = sum(map(len, confirmed.messages.values()))
        acknowledged = sum(map(len, confirmed.acknowledged.values()))
        report(
            f"round {number + 1} of {rounds}, sync {sync}: {messages} messages, {acknowledged} acknowledged"
        )
        if confirmed.faults:
            break
    return confirmed
