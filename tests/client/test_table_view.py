"""Table views: their content, when they are ready, and their changes."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    Disconnect,
    RequestDone,
    RequestFailed,
    TableChanged,
    TableViewFailed,
    TableViewReady,
)
from pulsar_sansio.model.config import TableViewSpec
from pulsar_sansio.model.errors import (
    ClosedError,
    ConsumerBusy,
    InvalidConfiguration,
    LocalProtocolError,
    TableViewTooLarge,
)
from pulsar_sansio.wire import MessageCommand, SingleMessageMetadata, encode_single, proto
from tests.client.broker_script import SECOND, ConsumerScript, Script, entry_bytes
from tests.client.positions.positions_script import answer, asked
from tests.work import work_of

TOPIC = "persistent://public/default/t"
NOTHING = (-1, -1, -1)
PLAIN = SingleMessageMetadata(sequence_id=1)


class TableScript(ConsumerScript):
    """One client with one table view, and its broker."""

    def __init__(self, **spec: Any) -> None:
        Script.__init__(self)
        self.answers_positions = False
        spec.setdefault("topic", "t")
        self.view = self.consumer = self.client.open_table_view(self.now, TableViewSpec(**spec))
        self.pump()

    def pump(self) -> None:
        """Run the timers that are due at once: their outputs belong to the step."""
        super().pump()
        while (when := self.client.next_deadline()) is not None and when <= self.now:
            self.client.handle_deadline(self.now)
            super().pump()

    def put(self, entry: int, key: str | None, value: bytes, **fields: Any) -> None:
        self.deliver(entry, entry_bytes(value, sequence_id=entry, partition_key=key, **fields))

    @property
    def table(self) -> dict[str, bytes]:
        return dict(self.client.table(self.view))


def loaded(last: tuple[int, int, int] = NOTHING, **spec: Any) -> TableScript:
    s = TableScript(**spec)
    s.accept()
    answer(s, asked(s), last)
    s.outputs()
    return s


def test_it_reads_from_the_beginning_compacted() -> None:
    """The client writes the commands of the recording java-table-view."""
    s = TableScript()
    subscribe = s.accept()
    assert subscribe.subscription.startswith("reader-")
    assert not subscribe.durable
    assert subscribe.read_compacted
    assert subscribe.start_message_id.entryId == 2**64 - 1


def test_it_is_ready_when_it_has_read_what_was_there() -> None:
    s = TableScript()
    s.accept()
    question = asked(s)
    s.put(0, "a", b"1")
    answer(s, question, (1, 2, -1))
    more = asked(s)
    s.put(1, "b", b"2")
    assert s.outputs() == []
    answer(s, more, (1, 2, -1))
    assert s.outputs() == []
    s.put(2, "a", b"3")
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]
    assert s.table == {"a": b"3", "b": b"2"}


def test_an_empty_topic() -> None:
    s = TableScript()
    s.accept()
    answer(s, asked(s), NOTHING)
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]
    assert s.table == {}


def test_a_last_message_that_never_comes() -> None:
    """Compaction has removed the last message meanwhile."""
    s = TableScript()
    s.accept()
    answer(s, asked(s), (1, 2, -1))
    s.put(0, "a", b"1")
    assert s.outputs() == []
    answer(s, asked(s), (1, 0, -1))
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]


def test_the_broker_has_one_question_at_a_time_and_is_asked_again_when_there_is_more() -> None:
    """The answer tells whether the view is complete, whatever arrives meanwhile."""
    s = TableScript()
    s.accept()
    answer(s, asked(s), (1, 5, -1))
    s.put(0, "a", b"1")
    question = asked(s)
    s.put(1, "b", b"2")
    s.expect()
    answer(s, question, (1, 5, -1))
    s.expect()
    s.pass_time(SECOND)
    answer(s, asked(s), (1, 1, -1))
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]


def test_a_topic_without_memory() -> None:
    s = TableScript(topic="non-persistent://public/default/t")
    subscribe = s.accept()
    assert not subscribe.read_compacted
    assert [type(each) for each in s.outputs()] == [TableViewReady]
    s.put(0, "a", b"1")
    assert s.table == {"a": b"1"}


def test_changes() -> None:
    s = loaded()
    s.put(0, "a", b"1")
    s.put(1, "b", b"2")
    s.put(2, None, b"no key")
    s.put(3, "a", b"", null_value=True)
    s.put(4, "b", b"")
    s.put(5, "never there", b"")
    changes = [change for each in s.outputs() if isinstance(each, TableChanged) for change in each.changes]
    assert changes == [("a", b"1"), ("b", b"2"), ("a", None), ("b", None)]
    assert s.table == {}


def test_the_table_is_one_object_and_not_to_be_changed() -> None:
    s = loaded()
    same = s.client.table(s.view)
    table: Any = same
    s.put(0, "a", b"1")
    assert table == {"a": b"1"}
    assert s.client.table(s.view) is same
    with pytest.raises(TypeError):
        table["b"] = b"2"


def test_permits_come_back() -> None:
    s = loaded(receiver_queue_size=10)
    s.frames()
    for entry in range(25):
        s.put(entry, f"k{entry}", b"v")
    assert sum(flow.message_permits for name, flow in s.frames() if name == "FLOW") == 25


def test_after_a_reconnect_it_goes_on() -> None:
    s = loaded()
    s.put(0, "a", b"1")
    start = s.reconnect().start_message_id
    assert (start.ledgerId, start.entryId) == (1, 0)
    s.put(0, "a", b"old")
    s.put(1, "b", b"2")
    assert s.table == {"a": b"1", "b": b"2"}


def test_refresh() -> None:
    s = loaded()
    request = s.client.refresh(s.now, s.view)
    s.pump()
    answer(s, asked(s), (1, 1, -1))
    s.put(0, "a", b"1")
    assert RequestDone(request, None) not in s.outputs()
    s.put(1, "a", b"2")
    assert RequestDone(request, None) in s.outputs()
    request = s.client.refresh(s.now, s.view)
    s.pump()
    answer(s, asked(s), (1, 1, -1))
    assert s.outputs() == [RequestDone(request, None)]


def test_refresh_that_fails_or_is_not_wanted() -> None:
    s = loaded()
    refused = s.client.refresh(s.now, s.view)
    s.pump()
    code: Any = proto.UnknownError
    s.say("ERROR", proto.CommandError(request_id=asked(s), error=code, message="no"))
    (failed,) = s.outputs()
    assert isinstance(failed, RequestFailed)
    assert failed.request == refused
    given_up = s.client.refresh(s.now, s.view)
    s.pump()
    s.client.abandon(s.now, given_up)
    answer(s, asked(s), NOTHING)
    assert s.outputs() == []


def test_a_table_that_grows_too_large() -> None:
    s = loaded(max_size=10)
    s.put(0, "a", b"123456789")
    s.put(1, "a", b"12345678")
    assert s.table == {"a": b"12345678"}
    s.outputs()
    s.put(2, "b", b"1")
    (closed,) = s.outputs()
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, TableViewTooLarge)
    close = dict(s.frames())["CLOSE_CONSUMER"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    with pytest.raises(ClosedError, match="allowed are 10 bytes") as raised:
        s.client.table(s.view)
    assert raised.value.__cause__ is closed.error


def test_too_large_from_the_beginning() -> None:
    s = TableScript(max_size=10)
    s.accept()
    answer(s, asked(s), (1, 2, -1))
    s.put(0, "a", b"0123456789")
    (failed,) = s.outputs()
    assert isinstance(failed, TableViewFailed)
    assert isinstance(failed.error, TableViewTooLarge)


def test_refused() -> None:
    s = TableScript()
    (subscribe,) = s.expect("SUBSCRIBE")
    code: Any = proto.ConsumerBusy
    s.say("ERROR", proto.CommandError(request_id=subscribe.request_id, error=code, message="no"))
    (failed,) = s.outputs()
    assert isinstance(failed, TableViewFailed)
    assert isinstance(failed.error, ConsumerBusy)
    with pytest.raises(ClosedError):
        s.client.table(s.view)


def test_closed() -> None:
    s = loaded()
    s.put(0, "a", b"1")
    table = s.client.table(s.view)
    waiting = s.client.refresh(s.now, s.view)
    s.outputs()
    request = s.client.close(s.now, s.view)
    s.pump()
    (close,) = [command for name, command in s.frames() if name == "CLOSE_CONSUMER"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    outputs = s.outputs()
    assert RequestDone(request, None) in outputs
    assert Closed(s.view, None) in outputs
    assert [each.request for each in outputs if isinstance(each, RequestFailed)] == [waiting]
    assert table == {"a": b"1"}
    for command in (s.client.table, lambda view: s.client.refresh(s.now, view)):
        with pytest.raises(ClosedError):
            command(s.view)


def test_mistakes() -> None:
    s = loaded()
    with pytest.raises(InvalidConfiguration, match="TableViewSpec"):
        s.client.open_table_view(s.now, "t")  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError):
        s.client.table(12345)
    for options in ({"receiver_queue_size": 0}, {"max_size": 0}, {"topic": ""}, {"topic": ()}):
        with pytest.raises(InvalidConfiguration):
            TableViewSpec(**{"topic": "t", **options})  # type: ignore[arg-type]


def test_time_alone_changes_nothing() -> None:
    s = loaded()
    s.put(0, "a", b"1")
    s.outputs()
    s.pass_time(10 * SECOND)
    assert s.outputs() == []


def test_a_last_message_of_no_use_keeps_no_task_waiting() -> None:
    """The message arrives alone, after the broker has reported more, and is reported: no other output
    follows."""
    s = TableScript()
    s.accept()
    last = (1, 1, -1)
    answer(s, asked(s), last)
    answer(s, asked(s), last)
    s.put(0, "a", b"1")
    stored = bytearray(entry_bytes(b"2", sequence_id=1, partition_key="b"))
    stored[-1] ^= 1
    s.deliver(1, bytes(stored))
    assert s.outputs() == []
    s.pass_time(SECOND)
    answer(s, asked(s), last)
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]
    assert s.table == {"a": b"1"}
    before = s.client.next_deadline()
    s.pass_time(2 * SECOND)
    assert s.client.next_deadline() == before  # no timer runs when no request waits


def test_the_size_is_in_bytes() -> None:
    """The size of keys counts, too."""
    s = loaded(max_size=12)
    s.put(0, "größe", b"1234")
    assert s.table == {"größe": b"1234"}
    s.put(1, "größe", b"12345")
    s.outputs()
    s.put(2, "größe", b"123456")
    (closed,) = s.outputs()
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, TableViewTooLarge)
    assert "13 bytes" in str(closed.error)


def test_the_end_is_told_before_the_close_is_done() -> None:
    """No output and no timer is left when the client reports that it is closed."""
    s = loaded()
    waiting = s.client.refresh(s.now, s.view)
    request = s.client.close(s.now, None)
    s.pump()
    (close,) = [command for name, command in s.frames() if name == "CLOSE_CONSUMER"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    failed, closed, done = [each for each in s.outputs() if not isinstance(each, Disconnect)]
    assert isinstance(failed, RequestFailed)
    assert (failed.request, closed, done) == (waiting, Closed(s.view, None), RequestDone(request, None))
    assert s.client.next_deadline() is None


def test_closed_before_it_was_ready() -> None:
    s = TableScript()
    s.accept()
    asked(s)
    s.client.close(s.now, s.view)
    s.pump()
    (close,) = [command for name, command in s.frames() if name == "CLOSE_CONSUMER"]
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    failed, done = s.outputs()
    assert isinstance(failed, TableViewFailed)
    assert isinstance(failed.error, ClosedError)
    assert isinstance(done, RequestDone)


def test_an_answer_that_comes_while_it_is_closed() -> None:
    """The answer and the application's close cross each other."""
    s = TableScript()
    s.accept()
    question = asked(s)
    response = proto.CommandGetLastMessageIdResponse(request_id=question)
    response.last_message_id.ledgerId, response.last_message_id.entryId = 1, 7
    s.reply("GET_LAST_MESSAGE_ID_RESPONSE", response)
    s.client.close(s.now, s.view)
    with pytest.raises(ClosedError):
        s.client.refresh(s.now, s.view)
    s.pump()
    assert s.outputs() == []


def member(key: str | None, value: bytes, **fields: Any) -> bytes:
    return encode_single(SingleMessageMetadata(partition_key=key, sequence_id=1, **fields), value)


def put_batch(s: TableScript, entry: int, *members: bytes, **fields: Any) -> None:
    s.deliver(entry, entry_bytes(b"".join(members), num_messages_in_batch=len(members)), **fields)


def changes_of(s: TableScript) -> list[tuple[str, bytes | None]]:
    return [change for each in s.outputs() if isinstance(each, TableChanged) for change in each.changes]


def test_of_a_batch_the_last_of_each_key_counts() -> None:
    s = loaded(max_size=8)
    put_batch(s, 0, member("a", b"1"), member("b", b"22"), member("a", b"333"), encode_single(PLAIN, b"none"))
    assert s.table == {"a": b"333", "b": b"22"}
    assert changes_of(s) == [("a", b"333"), ("b", b"22")]
    put_batch(
        s, 1, member("b", b"", null_value=True), member("c", b"4"), member("c", b""), member("a", b"55")
    )
    assert s.table == {"a": b"55"}
    assert changes_of(s) == [("b", None), ("a", b"55")]
    put_batch(s, 2, member("a", b"", null_value=True), member("a", b"1234567"))
    assert s.table == {"a": b"1234567"}
    assert changes_of(s) == [("a", b"1234567")]
    put_batch(s, 3, member("a", b"12345678"), member("a", b"1"))  # more than 8 bytes until the second
    assert s.table == {"a": b"1"}


def test_of_a_batch_only_what_is_still_there_counts() -> None:
    s = loaded()
    members = (member("a", b"1"), member("b", b"2"), member("c", b"3"))
    put_batch(s, 0, *members, ack_set=0b101)
    assert s.table == {"a": b"1", "c": b"3"}


def test_the_last_message_may_be_inside_a_batch() -> None:
    s = TableScript()
    s.accept()
    answer(s, asked(s), (1, 1, 1))
    s.put(0, "a", b"1")
    assert s.outputs() == []
    put_batch(s, 1, member("a", b"2"), member("b", b"2"), member("c", b"3"))
    assert s.outputs() == [TableViewReady(s.view, TOPIC)]
    assert s.table == {"a": b"2", "b": b"2", "c": b"3"}


def test_messages_of_all_kinds_together() -> None:
    """One read has uniform plain entries, a batch, and other entries."""
    s = loaded()
    entries = [
        entry_bytes(b"%d" % entry, sequence_id=entry, partition_key=f"k{entry % 3}") for entry in range(5)
    ]
    entries.append(entry_bytes(member("k0", b"batch") + member("k9", b"9"), num_messages_in_batch=2))
    entries.append(entry_bytes(b"last", sequence_id=9, partition_key="k1", event_time=5))
    entries.append(entry_bytes(b"", sequence_id=10, partition_key="k2", null_value=True))
    frames = [MessageCommand(0, 1, entry, payload=stored).encode() for entry, stored in enumerate(entries)]
    s.bytes(b"".join(frames))
    s.pump()
    assert s.table == {"k0": b"batch", "k1": b"last", "k9": b"9"}


def test_a_value_costs_no_more_than_its_batch() -> None:
    """The view makes no object for each message, and a value that is replaced at once leaves no trace."""

    def prepare(count: int) -> Any:
        s = loaded()
        stored = entry_bytes(member("a", b"1") * count, num_messages_in_batch=count)
        frame = MessageCommand(0, 1, 0, payload=stored).encode()

        def read() -> None:
            s.bytes(frame)
            s.pump()

        return read

    prepare(1)()
    few, many = work_of(prepare(100)), work_of(prepare(200))
    assert (many.lines - few.lines) / 100 < 22
