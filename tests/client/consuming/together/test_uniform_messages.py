"""Plain messages taken many at once: whatever the stream holds, the consumer ends up as if each frame had
been decoded alone."""

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.wire import UniformMessageReader, encode_message
from tests.client.broker_script import ConsumerScript, batch_bytes, entry_bytes

QUEUE = 12

Outcome = tuple[Any, ...]


def frame(kind: str, entry: int, number: int) -> bytes:
    payload = f"message {number}".encode()
    match kind:
        case "batch":
            stored = batch_bytes([payload, payload + b"!"], sequence_id=number)
        case "marker":
            stored = entry_bytes(payload, sequence_id=number, marker_type=1)
        case "keyed":
            stored = entry_bytes(payload, sequence_id=number, partition_key=f"key {number}")
        case _:
            stored = entry_bytes(payload, sequence_id=number)
    if kind == "damaged":
        stored = stored[:-1] + b"\xff"
    consumer = 9 if kind == "stranger's" else 0
    epoch = {"outdated": 0, "of this epoch": 1}.get(kind)
    return b"".join(encode_message(consumer, 1, entry, consumer_epoch=epoch, stored=stored))


PLAIN = st.just("plain")
KINDS = (
    PLAIN
    | PLAIN
    | st.sampled_from(["batch", "marker", "keyed", "damaged", "stranger's", "outdated", "of this epoch"])
)
FRAMES = st.lists(st.tuples(KINDS, st.integers(0, 30)), min_size=1, max_size=30)
STEPS = st.lists(
    FRAMES | st.integers(1, 20) | st.sampled_from(["acknowledge", "redeliver", "release"]), max_size=12
)


def play(steps: list[Any], cut: int) -> Outcome:
    """The outputs to application and broker, and the state left inside."""
    s = ConsumerScript(receiver_queue_size=QUEUE, acknowledgement_group_time=3600.0)
    s.accept()
    taken: list[Any] = []
    said: list[Any] = []
    number = 0
    for step in steps:
        match step:
            case list():
                frames = []
                for kind, entry in step:
                    frames.append(frame(kind, entry, number))
                    number += 1
                data = b"".join(frames)
                # One cut somewhere: the rest of a frame comes with the next read.
                s.bytes(data[: cut % len(data)])
                s.bytes(data[cut % len(data) :])
            case int():
                taken += s.take(step)
            case "acknowledge":
                for message in taken[-3:]:
                    s.acknowledge(message)
            case "redeliver":
                s.redeliver()
            case "release":
                s.negative_acknowledge(taken[-2:])
        said.append([(name, str(command)) for name, command in s.frames() if name != "FLOW"])
        said.append([str(output) for output in s.outputs()])
    machine = s.machine
    messages = [
        (m.data, m.message_id, m.key, m.sequence_id, m.publish_time, m.producer_name, m.redelivery_count)
        for m in taken + s.take()
    ]
    # When permits are reported depends on where the items of the queue end; how many there are does not.
    permits = machine.permits.at_broker + machine.permits.unreported
    return messages, said, asdict(machine.counters), permits


@given(STEPS, st.integers(0, 5000))
@settings(max_examples=60)
def test_both_ways_end_in_the_same(steps: list[Any], cut: int) -> None:
    together = play(steps, cut)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UniformMessageReader, "take", lambda *_: None)
        one_by_one = play(steps, cut)
    assert together == one_by_one


def test_a_read_full_of_plain_messages_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    original = UniformMessageReader.take

    def take(self: UniformMessageReader, data: bytes, position: int, limit: int) -> Any:
        run = original(self, data, position, limit)
        taken.append(0 if run is None else len(run.payloads))
        return run

    monkeypatch.setattr(UniformMessageReader, "take", take)
    s = ConsumerScript(receiver_queue_size=100)
    s.accept()
    s.bytes(b"".join(frame("plain", entry, entry) for entry in range(50)))
    assert sum(taken) >= 49
    assert [message.message_id.entry_id for message in s.take()] == list(range(50))


def test_what_is_redelivered_leaves_a_read_that_is_delivered_in_part() -> None:
    s = ConsumerScript(receiver_queue_size=100)
    s.accept()
    s.bytes(b"".join(frame("plain", entry, entry) for entry in range(10)))
    first = s.take(3)
    s.machine._queue.remove({(1, 5), (1, 7)})
    rest = s.take()
    assert [message.message_id.entry_id for message in first + rest] == [0, 1, 2, 3, 4, 6, 8, 9]
