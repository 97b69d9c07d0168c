"""Helpers of the tests of a consumer's position."""

from typing import Any

from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes

NOTHING = (-1, -1, -1)


def started(**spec: Any) -> ConsumerScript:
    s = ConsumerScript(**spec)
    s.answers_positions = False
    s.accept()
    s.outputs()
    return s


def answer(
    s: ConsumerScript, request_id: int, last: tuple[int, int, int], mark_delete: tuple[int, int] | None = None
) -> None:
    ledger_id, entry_id, batch_index = last
    response = proto.CommandGetLastMessageIdResponse(request_id=request_id)
    response.last_message_id.ledgerId = ledger_id % 2**64
    response.last_message_id.entryId = entry_id % 2**64
    response.last_message_id.batch_index = batch_index
    response.last_message_id.partition = -1
    if mark_delete is not None:
        response.consumer_mark_delete_position.ledgerId = mark_delete[0]
        response.consumer_mark_delete_position.entryId = mark_delete[1] % 2**64
    s.say("GET_LAST_MESSAGE_ID_RESPONSE", response)


def refuse(s: ConsumerScript, request_id: int, code: Any) -> None:
    s.say("ERROR", proto.CommandError(request_id=request_id, error=code, message="no"))


def back(s: ConsumerScript, seek: proto.CommandSeek) -> None:
    """The broker has done it, and the consumer subscribes again."""
    s.close_by_broker()
    s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
    s.pass_time(SECOND)
    s.accept()


def asked(s: ConsumerScript) -> int:
    """The request id of the question that the broker was asked last."""
    return [int(command.request_id) for name, command in s.frames() if name == "GET_LAST_MESSAGE_ID"][-1]


def has_more(
    s: ConsumerScript, last: tuple[int, int, int] | None = None, mark_delete: tuple[int, int] | None = None
) -> bool:
    """Return the answer to the application; `last`: the broker's answer."""
    request = s.client.has_message_available(s.now, s.consumer)
    if last is not None:
        answer(s, asked(s), last, mark_delete)
    (done,) = [each for each in s.outputs() if isinstance(each, RequestDone)]
    assert done.request == request
    assert isinstance(done.result, bool)
    return done.result


def deliver_chunk(s: ConsumerScript, entry: int, number: int, total: int) -> None:
    """A chunk of one byte."""
    fields = {"uuid": "p-0", "chunk_id": number, "num_chunks_from_msg": total, "total_chunk_msg_size": total}
    s.deliver(entry, entry_bytes(b"x", **fields))


def seek(s: ConsumerScript, target: MessageId) -> int:
    """The subscription is moved, and the consumer attached anew; the request of the application."""
    s.frames()
    request = s.client.seek(s.now, s.consumer, target)
    (command,) = s.expect("SEEK")
    back(s, command)
    s.outputs()
    return request
