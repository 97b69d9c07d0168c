"""Helpers of the tests of a consumer's life."""

from typing import Any

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto
from tests.client.broker_script import ConsumerScript

SHARED = SubscriptionType.SHARED


def started(**spec: Any) -> ConsumerScript:
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def refuse(s: ConsumerScript, request_id: int, code: int) -> None:
    error: Any = code
    s.say("ERROR", proto.CommandError(request_id=request_id, error=error, message="no"))
