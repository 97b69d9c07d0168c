"""`SchemaQueue`: whatever arrives, messages are delivered in order, each when its definition is known."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import encode_message
from tests.client.broker_script import batch_bytes, entry_bytes
from tests.client.schemas.schema_script import NEW, OLD, Old, Order, SchemaScript, version

VERSIONS = st.sampled_from([None, 0, 0, 1, 1])
ARRIVALS = st.lists(st.tuples(VERSIONS, st.integers(0, 3)), min_size=1, max_size=8)
"""Entries that come in one piece of the stream: the version, and the size of the batch, 0 for a single."""

STEPS = st.lists(
    st.tuples(st.just("arrive"), ARRIVALS)
    | st.tuples(st.just("answer"), st.none())
    | st.tuples(st.just("take"), st.integers(1, 10))
    | st.tuples(st.just("receive"), st.none())
    | st.tuples(st.just("drop"), st.integers(0, 5))
    | st.tuples(st.just("redeliver"), st.none()),
    max_size=20,
)


def stored(entry: int, number: int | None, size: int) -> bytes:
    data = OLD.encode(Old(f"o{entry}")) if number == 0 else NEW.encode(Order(f"o{entry}", 7))
    fields: dict[str, Any] = {} if number is None else {"schema_version": version(number)}
    if size:
        return batch_bytes([data] * size, **fields)
    return entry_bytes(data, sequence_id=entry, **fields)


class Model:
    """The script, and beside it what has arrived and is not delivered."""

    def __init__(self) -> None:
        self.script = SchemaScript(receiver_queue_size=1000)
        self.script.questions = []
        self.waiting: list[tuple[int, int | None]] = []
        """Entry and version of each message."""
        self.known: set[int | None] = {None}
        self.entry = self.epoch = 0

    def arrive(self, entries: list[tuple[int | None, int]]) -> None:
        data = b""
        for number, size in entries:
            self.entry += 1
            entry = stored(self.entry, number, size)
            data += b"".join(encode_message(0, 1, self.entry, consumer_epoch=self.epoch, stored=entry))
            self.waiting += [(self.entry, number)] * max(size, 1)
        self.script.bytes(data)

    def answer(self, _: None) -> None:
        """Answer the question in flight, if there is one: it is for the first message that is held."""
        numbers = [int.from_bytes(asked or b"", "big") for _, asked in self.script.asked()]
        for number in numbers:
            held = next((each for _, each in self.waiting if each not in self.known), number)
            assert number == held
            self.script.answer(number)
            self.known.add(number)

    def deliverable(self) -> int:
        held = [number not in self.known for _, number in self.waiting]
        return held.index(True) if True in held else len(held)

    def delivered(self, messages: list[Any]) -> None:
        expected = self.waiting[: len(messages)]
        assert [(message.message_id.entry_id, message.value) for message in messages] == [
            (entry, Order(f"o{entry}", 1 if number == 0 else 7)) for entry, number in expected
        ]
        self.waiting = self.waiting[len(messages) :]

    def take(self, limit: int) -> None:
        count = min(limit, self.deliverable())
        messages = self.script.take(limit)
        assert len(messages) == count
        self.delivered(messages)

    def receive(self, _: None) -> None:
        message = self.script.receive()
        assert (message is None) == (self.deliverable() == 0)
        if message is not None:
            self.delivered([message])

    def drop(self, which: int) -> None:
        """An entry is taken back, as when the broker is asked for it again."""
        entries = sorted({entry for entry, _ in self.waiting})
        if entries:
            entry = entries[which % len(entries)]
            queue = self.script.machine.queue
            assert queue.undelivered == len(self.waiting)
            count = sum(each == entry for each, _ in self.waiting)
            assert queue.remove([(1, entry)]) == count
            self.waiting = [each for each in self.waiting if each[0] != entry]

    def redeliver(self, _: None) -> None:
        self.script.redeliver()
        self.script.frames()
        self.waiting.clear()
        self.epoch += 1


@given(STEPS)
def test_messages_are_delivered_in_order_as_soon_as_they_can_be_decoded(steps: list[Any]) -> None:
    model = Model()
    for name, argument in steps:
        getattr(model, name)(argument)
        assert model.script.machine.queue.undelivered == len(model.waiting)
        assert model.script.machine.available() == model.deliverable()
