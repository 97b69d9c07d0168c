"""`CopyProducer`: each copy has one outcome, whatever becomes of the producer."""

from typing import Any

from pulsar_sansio.client.letter_topics.copy_producer import CopyProducer
from pulsar_sansio.client.outputs import Connect
from pulsar_sansio.model.config import OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import AuthorizationError, InvalidMessage, PulsarError
from pulsar_sansio.wire import proto
from tests.client.script import (
    URL,
    WALL,
    Command,
    Script,
    frame_error,
    frame_lookup,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
    frame_success,
)


class Copying(Script):
    """A client with one producer of copies, and the outcomes of the copies by their payloads."""

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        self.opened = 0
        self.written_copies: list[bytes] = []
        self.outcomes: list[tuple[bytes, PulsarError | None]] = []
        self.copies = CopyProducer(self.client._services, self._spec)
        self._options = {"topic": "letters", "batching": None, **spec}

    def _spec(self) -> ProducerSpec:
        self.opened += 1
        return ProducerSpec(**self._options)

    def post(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.copies.post(
                lambda payload=payload: self._write(payload),  # type: ignore[misc]
                WALL,
                lambda error, payload=payload: self.outcomes.append((payload, error)),  # type: ignore[misc]
            )
        self.settle()

    def _write(self, payload: bytes) -> OutgoingMessage:
        self.written_copies.append(payload)
        return OutgoingMessage(payload)

    def settle(self) -> None:
        """Let outputs of the inner producer arrive: they come by a timer that is due at once."""
        self.client.handle_deadline(self.now)
        self.drain()

    def ready(self) -> int:
        """Open the producer that the first copy asked for; return its link."""
        link = self.ready_link()
        self.check_partitions(link)
        return self.register(link)

    def register(self, link: int) -> int:
        self.find_topic(link)
        asked = self.sent(link, Command.PRODUCER)
        self.feed(link, frame_producer_success(asked.request_id))
        self.settle()
        return link

    def receipts(self, link: int, *sequence_ids: int, producer_id: int = 0) -> None:
        for sequence_id in sequence_ids:
            self.feed(link, frame_receipt(sequence_id, entry_id=sequence_id, producer_id=producer_id))
            self.settle()


def test_the_first_copy_opens_the_producer_and_receipts_settle() -> None:
    copying = Copying()
    assert copying.said() == []
    copying.post(b"a", b"b")
    link = copying.ready()
    copying.sent(link, Command.SEND, Command.SEND)
    copying.receipts(link, 0)
    assert copying.outcomes == [(b"a", None)]
    copying.receipts(link, 1, 1)
    assert copying.outcomes == [(b"a", None), (b"b", None)]
    assert copying.opened == 1
    assert [output for output in copying.outputs if not isinstance(output, Connect)] == []


def test_copies_without_room_are_written_when_there_is_some() -> None:
    copying = Copying(max_pending_messages=2)
    copying.post(b"a", b"b", b"c", b"d")
    link = copying.ready()
    copying.sent(link, Command.SEND, Command.SEND)
    assert copying.written_copies.count(b"d") == 0, "a copy is written when it is sent, in its order"
    copying.receipts(link, 0)
    copying.sent(link, Command.SEND)
    copying.receipts(link, 1)
    copying.sent(link, Command.SEND)
    copying.receipts(link, 2, 3)
    assert [payload for payload, _ in copying.outcomes] == [b"a", b"b", b"c", b"d"]


def test_a_copy_that_cannot_be_sent_fails_at_once_and_alone() -> None:
    copying = Copying()
    failed: list[PulsarError | None] = []

    def wrong() -> OutgoingMessage:
        raise InvalidMessage("no message")

    copying.copies.post(wrong, WALL, failed.append)
    assert [type(error) for error in failed] == [InvalidMessage]
    copying.post(b"a")
    link = copying.ready()
    copying.receipts(link, 0)
    assert copying.outcomes == [(b"a", None)]


def test_a_producer_that_fails_fails_its_copies_and_the_next_copy_opens_another() -> None:
    copying = Copying(max_pending_messages=1)
    copying.post(b"a", b"b")
    link = copying.ready_link()
    copying.check_partitions(link)
    copying.find_topic(link)
    asked = copying.sent(link, Command.PRODUCER)
    copying.feed(link, frame_error(asked.request_id, proto.AuthorizationError, "not yours"))
    copying.settle()
    assert [(payload, type(error)) for payload, error in copying.outcomes] == [
        (b"a", AuthorizationError),
        (b"b", AuthorizationError),
    ]
    copying.outcomes.clear()
    copying.post(b"c")
    copying.check_partitions(link)
    copying.register(link)
    copying.receipts(link, 0, producer_id=1)
    assert copying.outcomes == [(b"c", None)]
    assert copying.opened == 2


def test_a_topic_with_partitions_gets_a_producer_of_all_of_them() -> None:
    copying = Copying()
    copying.post(b"a")
    link = copying.ready_link()
    copying.check_partitions(link, 2)
    copying.find_topic(link)
    first = copying.sent(link, Command.PRODUCER)
    assert first.topic.endswith("letters-partition-0")
    copying.feed(link, frame_producer_success(first.request_id, "p-1"))
    lookup, sent = copying.sent(link, Command.LOOKUP, Command.SEND)
    copying.feed(link, frame_lookup(lookup.request_id, URL))
    second = copying.sent(link, Command.PRODUCER)
    copying.feed(link, frame_producer_success(second.request_id, "p-1"))
    copying.settle()
    copying.receipts(link, 0, producer_id=sent.producer_id)
    assert copying.outcomes == [(b"a", None)]


def test_closing_reports_nothing_and_closes_the_producer() -> None:
    copying = Copying(max_pending_messages=1)
    copying.post(b"a", b"b")
    link = copying.ready()
    copying.sent(link, Command.SEND)
    copying.copies.close()
    copying.copies.close()
    close = copying.sent(link, Command.CLOSE_PRODUCER)
    copying.receipts(link, 0)
    copying.feed(link, frame_success(close.request_id))
    copying.settle()
    assert copying.outcomes == []


def test_closing_while_partitions_are_asked_for_leaves_no_producer() -> None:
    copying = Copying()
    copying.post(b"a")
    link = copying.ready_link()
    copying.copies.close()
    copying.check_partitions(link, 2)
    copying.settle()
    copying.advance(5)
    assert Command.PRODUCER not in [kind for kind, _ in copying.commands(link)]
    assert copying.outcomes == []


def test_a_producer_that_the_application_cannot_see_is_closed_with_its_waiting_copies_failed() -> None:
    """The topic is terminated: the producer ends, and no copy waits for ever."""
    copying = Copying(max_pending_messages=1)
    copying.post(b"a", b"b")
    link = copying.ready()
    copying.sent(link, Command.SEND)
    copying.feed(link, frame_send_error(0, proto.TopicTerminatedError, "ended"))
    copying.settle()
    assert {payload for payload, _ in copying.outcomes} == {b"a", b"b"}
    assert all(isinstance(error, PulsarError) for _, error in copying.outcomes)
