"""`TableView`: the last value of every key of a topic, kept up to date by a reader of its own.

The reader begins at the start of the topic, and reads compacted if the topic is compacted. The view is ready
when it has read what the topic had when it began, and reports changes from then on. A message without payload
removes its key (COMPACT-01); a message without key is ignored. The reader deals with several topics, with
partitions and with the broker.

    loading ──► ready ──► over
        └──────────────────▲
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from ..core.context import InnerContext
from ..model.config import TableViewSpec
from ..model.errors import ClosedError, PulsarError, TableViewTooLarge
from ..model.message import Message
from ..model.message_id import EARLIEST, MessageId, TopicMessageId
from .connecting.services import Services
from .delivery.received_entries import Item, Messages, keys_of, message_at, payloads_of, size_of
from .multi_topics.open_consumer import AnyConsumer, open_consumer
from .outputs import (
    Closed,
    ConsumerReady,
    Deliverable,
    Output,
    RequestDone,
    RequestFailed,
    TableChanged,
    TableViewFailed,
    TableViewReady,
)
from .schemas.keyed_table import KeyedTable
from .schemas.value_table import ValueTable

EVERYTHING = 1 << 62
"""Messages: more than a receiver queue holds."""

ASKING_INTERVAL = 1_000_000_000
"""Nanoseconds between two requests whether the topic has more messages, while none arrives."""


@dataclass(slots=True, eq=False)
class CatchingUp:
    """A wait until the reader has read all that the topic had when the wait began.

    `request`: None for the loading of the view.
    """

    request: int | None
    waits_for: dict[str, MessageId] | None = None
    """The last message of each topic, by topic, until the reader has read it; None until they are known."""
    asked: bool = False
    """The reader has been asked whether there are more messages, and has not answered."""


class TableView:
    """One table view. `table` is the whole table: one object, which the application must not change."""

    def __init__(
        self,
        services: Services,
        handle: int,
        spec: TableViewSpec,
        register: Callable[[AnyConsumer], None],
    ) -> None:
        context = services.context
        self.handle = handle
        self.spec = spec
        self._context = context
        self._table: dict[str, bytes] = {}
        self._messages: dict[str, Message[Any]] = {}
        """The last message of each key, where the table has a schema."""
        self._typed = spec.schema is not None
        self.table: Mapping[Any, Any] = (
            ValueTable(self._messages) if self._typed else MappingProxyType(self._table)
        )
        self._keyed: KeyedTable | None = None
        """The table by the keys of the schema of keys, where there is one."""
        if spec.key_schema is not None:
            self.table = self._keyed = KeyedTable(spec.key_schema, self.table)
        self.size = 0
        """The bytes of all keys and values."""
        self._topic = ""
        self._loading = True
        self._over = False
        self._failure: PulsarError | None = None
        """The error with which the view ended by itself."""
        self._catching_up: list[CatchingUp] = []
        self._look_again = context.deadlines.slot(self._look_at_all)
        self._answers: dict[int, Callable[[Any], None]] = {}
        """Handlers of the answers to requests of the view itself, by request."""
        self._inner: InnerContext[Output] = InnerContext(context, self._on_output)
        self._reader: AnyConsumer

        def set_reader(machine: AnyConsumer) -> None:
            self._reader = machine
            register(machine)

        reader = spec.reader()
        self._catches_up = reader.read_compacted
        """The topic is persistent, so it has messages to catch up with."""
        reading = reader.reading(f"{context.rng.getrandbits(40):010x}")
        self._root_ended = services.ended
        open_consumer(services.within(self._inner, self._reader_ended), handle, reading, set_reader)

    def refresh(self, request: int) -> None:
        """Emit `RequestDone(request)` when everything that is in the topic now is in the table. Raises
        `ClosedError` only."""
        self._reader.check_open()
        self._catch_up(CatchingUp(request))

    def explain(self) -> list[str]:
        """Describe the messages that are not in the table because of their keys."""
        keyed = self._keyed
        if keyed is None or not keyed.left_out:
            return []
        return [f"{keyed.left_out} messages are left out for their keys; the last one: {keyed.why}"]

    def forget_request(self, request: int) -> None:
        """Discard a `refresh` whose outcome the application does not want."""
        self._catching_up = [each for each in self._catching_up if each.request != request]

    # --- outputs of the reader -------------------------------------------------------------------

    def _on_output(self, output: Output) -> None:
        if self._reader.is_closing:  # its only output now is its end, which `_reader_ended` reports
            return
        match output:
            case Deliverable():
                self._read()
            case RequestDone(request) | RequestFailed(request) if request in self._answers:
                self._answers.pop(request)(output)
            case ConsumerReady(_, topic):
                self._topic = topic
                self._catch_up(CatchingUp(None))
            case _:
                self._context.emit(output)

    def _reader_ended(self, handle: int, error: PulsarError | None) -> None:
        """Report the end of the view before the root answers the requests that wait for the end."""
        self._inner.close()
        self._end(error)
        self._root_ended(handle, error or self._failure)

    def _end(self, error: PulsarError | None) -> None:
        if self._over:
            return
        self._over = True
        self._look_again.clear()
        reason = error or ClosedError(f"the table view of {self._topic} is closed")
        for each in self._catching_up:
            if each.request is not None:
                self._context.emit(RequestFailed(each.request, reason))
        self._catching_up.clear()
        if self._loading:
            self._context.emit(TableViewFailed(self.handle, reason))
        else:
            self._context.emit(Closed(self.handle, error))

    def _fail(self, error: PulsarError) -> None:
        """End the view with an error."""
        self._failure = error
        self._end(error)
        self._reader.close()

    # --- reading ---------------------------------------------------------------------------------

    def _read(self) -> None:
        changes: list[tuple[Any, bytes | None]] = []
        while not self._over and (messages := self._reader.take(EVERYTHING)):
            for item in messages.items:
                self._mark_read(item)
            self._put(messages.items, changes)
            if self.size > self.spec.max_size:
                self._fail(
                    TableViewTooLarge(
                        f"the table of {self._topic} has {len(self._table)} keys and {self.size} bytes, "
                        f"allowed are {self.spec.max_size} bytes (max_size)"
                    )
                )
        if self._over:
            return
        if changes:
            self._context.emit(TableChanged(self.handle, changes))
        self._look_at_all()

    def _look_at_all(self) -> None:
        if self._reader.is_closing:
            return
        for each in list(self._catching_up):
            self._look(each)

    def _mark_read(self, item: Item) -> None:
        """All messages of an item are read: no wait is for them any more."""
        for each in self._catching_up:
            if each.waits_for:
                entry, index = message_at(item, size_of(item) - 1)
                last = each.waits_for.get(entry.source.topic)
                if (
                    last is not None
                    and entry.position >= last[:2]
                    and Message.of(b"", entry, index).message_id >= last
                ):
                    del each.waits_for[entry.source.topic]

    def _put(self, items: Sequence[Item], changes: list[tuple[Any, bytes | None]]) -> None:
        """Put messages into the table. Only the last message of each key counts."""
        news: dict[str | None, bytes] = {}
        for item in items:
            news.update(zip(keys_of(item), payloads_of(item), strict=True))
        news.pop(None, None)
        keyed, keys = self._keyed, {}
        if keyed is not None:
            keys = keyed.keys_of(Messages[Any](items))
            news = {text: value for text, value in news.items() if text in keys}
        if self._typed:
            self._put_messages(items, news)
        table = self._table
        for key, value in news.items():
            assert key is not None
            before = table.get(key)
            if value:
                table[key] = value
                self.size += len(value) + (_bytes_of(key) if before is None else -len(before))
                if keyed is not None:
                    keyed.put(keys[key], key)
            elif before is not None:
                del table[key]
                self.size -= _bytes_of(key) + len(before)
                if keyed is not None:
                    keyed.remove(keys[key], key)
            else:
                continue
            if not self._loading:
                changes.append((keys.get(key, key), value or None))

    def _put_messages(self, items: Sequence[Item], news: Mapping[str | None, bytes]) -> None:
        """Keep or drop the messages whose keys are in `news`."""
        for message in Messages[Any](items):
            if message.key is None or message.key not in news:
                continue
            if message.data:
                self._messages[message.key] = message
            else:
                self._messages.pop(message.key, None)

    # --- catching up -----------------------------------------------------------------------------

    def _catch_up(self, what: CatchingUp) -> None:
        self._catching_up.append(what)
        self._ask(what, self._reader.last_message_id, partial(self._last_known, what))

    def _ask(self, what: CatchingUp, ask: Callable[[int], None], answered: Callable[[Any], None]) -> None:
        """Send a request to the reader. The wait fails when the request fails."""
        request = self._inner.new_id()

        def on_answer(output: RequestDone | RequestFailed) -> None:
            if what not in self._catching_up or self._over:
                return
            if isinstance(output, RequestDone):
                answered(output.result)
            elif what.request is None:
                self._fail(output.error)
            else:
                self._catching_up.remove(what)
                self._context.emit(RequestFailed(what.request, output.error))

        self._answers[request] = on_answer
        if self._catches_up:
            ask(request)
        else:
            self._answers.pop(request)(RequestDone(request, []))

    def _last_known(self, what: CatchingUp, result: MessageId | list[TopicMessageId]) -> None:
        ids = [TopicMessageId(self._topic, result)] if isinstance(result, MessageId) else result
        positions = self._reader.checkpoint()
        what.waits_for = {
            topic: last for topic, last in ids if last.entry_id >= 0 and last > positions.get(topic, EARLIEST)
        }
        self._read()

    def _look(self, what: CatchingUp) -> None:
        """End a wait that is over. The last message may never arrive, because compaction removed it or the
        reader cannot read it; so the reader is asked whether there are more messages."""
        if what.waits_for is None:
            return
        if not what.waits_for:
            self._done(what)
            return
        if what.asked:
            return

        def answered(more: bool) -> None:
            what.asked = False
            if not more:
                self._done(what)
            elif self._look_again.when is None:  # the rest may be unreadable, or vanish, without an output
                self._look_again.set(self._context.now + ASKING_INTERVAL)

        what.asked = True
        self._ask(what, self._reader.has_message_available, answered)

    def _done(self, what: CatchingUp) -> None:
        self._catching_up.remove(what)
        if what.request is not None:
            self._context.emit(RequestDone(what.request, None))
        else:
            self._loading = False
            self._context.emit(TableViewReady(self.handle, self._topic))


def _bytes_of(key: str) -> int:
    return len(key) if key.isascii() else len(key.encode(errors="surrogatepass"))
