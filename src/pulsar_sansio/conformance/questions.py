"""The outstanding questions of a connection: asked, answered, cancelled."""

from typing import Any

from .commands import LOOKUP_KINDS
from .state.request import ObservedRequest
from .state.state import State


def ask(state: State, kind: int, command: Any) -> ObservedRequest:
    """The frame at hand is a question."""
    request = ObservedRequest(kind, command, state.frame)
    state.requests_of(kind)[command.request_id] = request
    state.answered.pop((kind in LOOKUP_KINDS, command.request_id), None)
    return request


def answered(state: State, answer: Any) -> ObservedRequest | None:
    """The frame at hand answers `state.request`, which is outstanding no longer."""
    request = state.request
    if request is None:
        return None
    state.requests_of(request.kind).pop(answer.request_id, None)
    state.answered[request.kind in LOOKUP_KINDS, answer.request_id] = request.kind
    state.read_by_broker = max(state.read_by_broker, request.frame)
    return request


def cancel(state: State, frame: int) -> None:
    """The question of that frame, where it is still open, may be answered or not."""
    for request_id, request in state.general.items():
        if request.frame == frame:
            del state.general[request_id]
            state.cancelled[False, request_id] = None
            return
