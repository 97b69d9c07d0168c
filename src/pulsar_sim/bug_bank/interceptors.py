"""Bugs of interceptors: their calls, their changes to messages, and their errors."""

from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import SendFailed
from pulsar_sansio.client.producing.interceptors import ProducerInterception

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs


@bug("own", caught_by=("INTC-01",), needs=[needs.watched])
def interceptors_are_called_twice(patches: Patches) -> None:
    """The producer tells interceptors the outcome of a message twice."""

    def settled(original: Any, self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        original(self, *arguments)

    patches.around(ProducerInterception, "settled", settled)


@bug("own", caught_by=("INTC-01",), needs=[needs.watched])
def interceptors_miss_failures(patches: Patches) -> None:
    """The producer tells interceptors only of stored messages, not of failed ones."""

    def on_output(original: Any, self: Any, output: Any) -> None:
        if isinstance(output, SendFailed):
            self._emit(output)
        else:
            original(self, output)

    patches.around(ProducerInterception, "on_output", on_output)


@bug("own", caught_by=("INTC-01",), needs=[needs.watched, needs.batches])
def interceptors_get_one_id_for_a_batch(patches: Patches) -> None:
    """The producer gives interceptors the first id of a batch for all of its messages."""

    def confirmed(original: Any, self: Any, ticket: int, message_ids: Any) -> None:
        original(self, ticket, [message_ids[0]] * len(message_ids))

    patches.around(ProducerInterception, "_confirmed", confirmed)


@bug("own", caught_by=("INTC-01",), needs=[needs.watched])
def interceptors_see_a_message_twice(patches: Patches) -> None:
    """The producer calls interceptors twice before it sends a message."""

    def before_send(original: Any, self: Any, message: Any) -> Any:
        original(self, message)
        return original(self, message)

    patches.around(ProducerInterception, "before_send", before_send)


@bug("own", caught_by=("INV-C2", "INV-P2"), needs=[needs.changed])
def changes_of_interceptors_lost(patches: Patches) -> None:
    """The producer discards the properties that an interceptor gives a message."""

    def before_send(original: Any, self: Any, message: Any) -> Any:
        made = original(self, message)
        return type(made)(
            made.payload,
            key=made.key,
            properties=getattr(message, "properties", None),
            event_time=made.event_time,
            sequence_id=made.sequence_id,
            deliver_at=made.deliver_at,
        )

    patches.around(ProducerInterception, "before_send", before_send)


@bug("own", caught_by=("exception",), needs=[needs.interrupted])
def errors_of_interceptors_escape(patches: Patches) -> None:
    """An interceptor's error leaves the call that sends, or ends the client."""

    def failed(self: Any, interceptor: Any, error: Exception) -> None:
        raise error

    patches.replace(ProducerInterception, "_failed", failed)


@bug("own", caught_by=("INTC-01",), needs=[needs.watched])
def interceptors_never_closed(patches: Patches) -> None:
    """A producer closes, and does not close its interceptors."""
    patches.replace(Client, "_close_interceptor", nothing)
