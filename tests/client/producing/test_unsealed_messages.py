"""Messages that cannot be sealed yet: they wait in order, and keep their tickets."""

from pulsar_sansio.client.outputs import Receipts
from pulsar_sansio.client.producing.admission import Admission
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.schemas import INT32
from tests.client.producing.sender import UNBATCHED, Sender, tickets
from tests.client.producing.transactional_sender import Scene, inside
from tests.client.script import WALL, Command, Script, frame_producer_success, frame_receipt


def admission_of(script: Script, handle: int) -> Admission:
    machine = script.client._handles.producers[handle]
    assert isinstance(machine, Producer)
    return machine.admission


def attached() -> tuple[Sender, Admission]:
    sender = Sender()
    return sender, admission_of(sender.script, sender.handle)


def test_an_attached_producer_has_none() -> None:
    sender, admission = attached()
    sender.send(b"a")
    assert list(admission._unsealed.messages) == []
    assert admission._single_encoder is not None


def test_all_messages_wait_behind_one_whose_schema_is_not_registered() -> None:
    sender, admission = attached()
    sender.send(OutgoingMessage(INT32.encode(1), schema=INT32))
    sender.send(b"abc")
    waiting = admission._unsealed
    assert [ticket for ticket, *_ in waiting.messages] == [0, 1]
    assert waiting.size == 7
    assert admission.pending == 2
    assert admission.oldest_unsettled() == 0
    assert admission._single_encoder is None


def test_messages_inside_and_outside_of_a_transaction_wait_for_each_others_receipts() -> None:
    scene = Scene(batching=None)
    admission = admission_of(scene, scene.handle)
    scene.send(inside(b"a", scene.id))
    scene.joined()
    assert scene.entries() == [(0, b"a", 7)]
    assert admission._unsealed.in_transactions
    scene.send(b"b")
    assert scene.entries() == []
    scene.confirm(0)
    assert scene.entries() == [(1, b"b", None)]
    assert not admission._unsealed.in_transactions
    assert admission._single_encoder is not None


def test_neighbours_that_fail_are_reported_together() -> None:
    """Rule PROD-27."""
    sender, admission = attached()
    sender.send(OutgoingMessage(INT32.encode(1), schema=INT32))
    sender.send(b"b")
    sender.send(b"c")
    sender.script.said()
    admission.fail(ClosedError("over"))
    sender.script.drain()
    failed = sender.script.said()
    assert [tickets(output) for output in failed if tickets(output)] == [[0, 1, 2]]
    assert admission.pending == 0


def test_a_producer_without_a_name_hands_its_messages_over() -> None:
    script = Script()
    handle = script.client.open_producer(script.now, UNBATCHED)
    script.client.send(script.now, handle, b"a", WALL)
    script.client.send(script.now, handle, b"b", WALL)
    admission = admission_of(script, handle)
    assert [each[:3] for each in admission.hand_over()] == [(0, b"a", WALL), (1, b"b", WALL)]
    assert admission.pending == 0


def test_the_fast_path_stays_closed_behind_a_message_that_is_too_large() -> None:
    """PROD-42: the next ticket does not follow the tickets of the batch."""
    script = Script()
    spec = ProducerSpec("demo", batching=BatchingPolicy(max_delay=1.0))
    handle = script.client.open_producer(script.now, spec)
    for payload in (b"a", b"x" * 5000):
        script.client.send(script.now, handle, payload, WALL)
    link = script.ready_link(max_message_size=4000)
    script.check_partitions(link)
    script.find_topic(link)
    script.feed(link, frame_producer_success(script.sent(link, Command.PRODUCER).request_id))
    assert script.client.appender(handle)(b"c") == -1
    assert script.client.send(script.now, handle, b"c", WALL) == 2
    script.advance(1)
    first, second = script.sent(link, Command.SEND, Command.SEND)
    script.said()
    script.feed(link, frame_receipt(first.sequence_id), frame_receipt(second.sequence_id))
    assert [each.first for each in script.said() if isinstance(each, Receipts)] == [0, 2]
