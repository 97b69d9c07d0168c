"""Bugs of consumers that count the time: messages that were neither acknowledged nor negatively acknowledged,
and delays that grow."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.acknowledging.ack_timeout import AcknowledgementTimeout, TrackedQueue
from pulsar_sansio.client.acknowledging.redelivery import NegativeAcknowledgements, Redelivery
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.model.message import Message

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs


@bug("BUG-045", caught_by=("INV-C9",), needs=[needs.timeouts_when_shared, needs.nacks_when_shared])
def negatively_acknowledged_messages_time_out(patches: Patches) -> None:
    """A negatively acknowledged message stays in the tracker of the acknowledgement timeout: both ask for it
    again."""
    refusing = False

    def negative_acknowledge(original: Any, self: Any, positions: Any, batches: Any) -> None:
        nonlocal refusing
        refusing = True
        try:
            original(self, positions, batches)
        finally:
            refusing = False

    def discard(original: Any, self: Any, position: Any) -> None:
        if not refusing:
            original(self, position)

    patches.around(Redelivery, "negative_acknowledge", negative_acknowledge)
    patches.around(AcknowledgementTimeout, "discard", discard)


@bug("BUG-049", caught_by=("INV-C9",), needs=[needs.timeouts_in_order, needs.cumulative])
def cumulatively_acknowledged_messages_time_out(patches: Patches) -> None:
    """A cumulative acknowledgement leaves the messages that it covers in the tracker of the acknowledgement
    timeout."""
    patches.replace(AcknowledgementTimeout, "discard_through", nothing)


@bug("BUG-051", caught_by=("INV-C9",), needs=[needs.timeouts])
def tracked_after_it_was_acknowledged(patches: Patches) -> None:
    """A message is tracked a moment after it was delivered. An application that acknowledges it at once is
    too early."""

    def acknowledge(original: Any, self: Any, what: Any) -> Any:
        tracked = self._redelivery._timeout
        before = dict(tracked._due._when) if tracked is not None else {}
        result = original(self, what)
        if tracked is not None:
            for position, when in before.items():
                tracked._due.move(position, when)
        return result

    patches.around(AckCommands, "acknowledge", acknowledge)


@bug("own", caught_by=("INV-C9",), needs=[needs.timeouts])
def timeouts_a_tick_early(patches: Patches) -> None:
    """There is one slot of time too few: a message delivered late in a tick has less time than it was
    promised."""

    def expiry(original: Any, self: Any, redelivery_count: int) -> Any:
        return max(original(self, redelivery_count) - self._tick, self._context.now + 1)

    patches.around(AcknowledgementTimeout, "_expiry", expiry)


@bug("own", caught_by=("INV-C9", "INV-N5", "INV-A3"), needs=[needs.forgets])
def timed_out_messages_are_not_asked_for(patches: Patches) -> None:
    """The timer of the acknowledgement timeout runs, and nothing is asked for."""
    patches.replace(Redelivery, "_timed_out", nothing)


@bug("own", caught_by=("INV-C9", "INV-N5"), needs=[needs.forgets])
def timer_of_the_timeout_runs_once(patches: Patches) -> None:
    """The timer is set when messages arrive, and not again while others still have time."""

    def over(original: Any, self: Any) -> None:
        original(self)
        self._slot.clear()

    patches.around(AcknowledgementTimeout, "_tick_over", over)


@bug("own", caught_by=("INV-C9", "INV-N5"), needs=[needs.forgets, needs.batches])
def one_message_takes_its_batch_off_the_tracker(patches: Patches) -> None:
    """One message of a batch is acknowledged, and the others are not asked for any more."""

    def acknowledge(original: Any, self: Any, what: Any) -> Any:
        result = original(self, what)
        if isinstance(what, Message):
            self._redelivery.acknowledged(what.entry.position)
        return result

    patches.around(AckCommands, "acknowledge", acknowledge)


@bug("own", caught_by=("INV-C9",), needs=[needs.timeouts, needs.growing])
def timeouts_do_not_grow(patches: Patches) -> None:
    """The client asks for a message delivered many times as soon as for one delivered once."""

    def expiry(original: Any, self: Any, redelivery_count: int) -> Any:
        return original(self, 0)

    patches.around(AcknowledgementTimeout, "_expiry", expiry)


@bug("own", caught_by=("INV-C9",), needs=[needs.nacks, needs.growing])
def negative_acknowledgement_delays_do_not_grow(patches: Patches) -> None:
    """The client asks for a message negatively acknowledged many times as soon as for one negatively
    acknowledged once."""

    def add(original: Any, self: Any, position: Any, redelivery_count: int, now: int) -> None:
        original(self, position, 0, now)

    patches.around(NegativeAcknowledgements, "add_after_delay", add)


@bug("own", caught_by=("INV-C9", "INV-N5"), needs=[needs.forgets])
def messages_taken_together_are_not_tracked(patches: Patches) -> None:
    """Messages that are taken together are not tracked."""
    patches.replace(TrackedQueue, "_pass_over", vars(ReceiverQueue)["_pass_over"])


@bug("own", caught_by=("INV-C9", "INV-A3"), needs=[needs.nacks])
def redelivery_is_requested_much_too_late(patches: Patches) -> None:
    """A negatively acknowledged message is redelivered after thirty times its delay."""

    def add(original: Any, self: Any, position: Any, redelivery_count: int, now: int) -> None:
        delay, _ = self._delays[min(redelivery_count, len(self._delays) - 1)]
        original(self, position, redelivery_count, now, 30 * delay + 3_000_000_000)

    patches.around(NegativeAcknowledgements, "add_after_delay", add)


@bug("own", caught_by=("INV-C9",), needs=[needs.forgets])
def timeouts_four_times_as_long(patches: Patches) -> None:
    """A message that is neither acknowledged nor negatively acknowledged is redelivered much later than was
    promised."""

    def begin(original: Any, self: Any, context: Any, spec: Any) -> None:
        original(self, context, spec)
        self._ticks *= 4

    patches.around(AcknowledgementTimeout, "__init__", begin)
