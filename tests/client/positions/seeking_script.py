"""Helpers of the tests of seeks."""

from typing import Any

from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript


def started(**spec: Any) -> ConsumerScript:
    s = ConsumerScript(**spec)
    s.accept()
    s.frames()
    s.outputs()
    return s


def seek(s: ConsumerScript, target: Any, inclusive: bool = False) -> int:
    request = s.client.seek(s.now, s.consumer, target, inclusive)
    s.pump()
    return request


def success(s: ConsumerScript, request_id: int) -> None:
    s.say("SUCCESS", proto.CommandSuccess(request_id=request_id))


def sought(s: ConsumerScript) -> proto.CommandSeek:
    (command,) = s.expect("SEEK")
    assert isinstance(command, proto.CommandSeek)
    return command


def sought_and_back(s: ConsumerScript) -> Any:
    """The broker does as brokers do: CLOSE_CONSUMER, SUCCESS, and the consumer subscribes again."""
    command = sought(s)
    s.close_by_broker()
    success(s, command.request_id)
    s.pass_time(SECOND)
    return s.accept()


def data(messages: list[Any]) -> list[bytes]:
    return [message.data for message in messages]
