"""Bugs of consumers that are paused, that prefetch nothing, and whose queue grows."""

from typing import Any

from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.scaled_queue import ScaledPermits, ScaledQueue
from pulsar_sansio.client.delivery.zero_queue import ZeroQueue, ZeroQueuePermits

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs

# --- pausing -------------------------------------------------------------------------------------------


@bug("BUG-071", caught_by=("INV-C13",), needs=[needs.pauses, needs.detaches])
def a_reconnect_ends_the_pause(patches: Patches) -> None:
    """A consumer that is paused grants permits when it is attached again."""

    def attach(original: Any, self: Any, grant: Any) -> None:
        paused, self.paused = self.paused, False
        original(self, grant)
        self.paused = paused

    patches.around(Permits, "attach", attach)


@bug("own", caught_by=("INV-C13",), needs=[needs.pauses])
def pausing_stops_nothing(patches: Patches) -> None:
    """Permits are granted while the consumer is paused."""
    patches.replace(Permits, "pause", nothing)


@bug("own", caught_by=("INV-N5", "INV-C6"), needs=[needs.pauses])
def nothing_is_asked_for_after_a_pause(patches: Patches) -> None:
    """A consumer that resumes reports only messages that leave the queue from then on; with an empty queue
    there are none."""

    def resume(self: Any) -> None:
        self.paused = False

    patches.replace(Permits, "resume", resume)


@bug("own", caught_by=("INV-N5", "INV-C6"), needs=[needs.pauses])
def what_leaves_the_queue_during_a_pause_is_lost(patches: Patches) -> None:
    """Permits that come back while the consumer is paused are forgotten."""

    def give_back(original: Any, self: Any, messages: int) -> None:
        if not self.paused:
            original(self, messages)

    patches.around(Permits, "give_back", give_back)


# --- a queue of no messages ----------------------------------------------------------------------------


@bug("BUG-072", caught_by=("INV-N5",), needs=[needs.zero_queues, needs.detaches])
def waiting_receives_are_lost_with_the_connection(patches: Patches) -> None:
    """The application waits for a message when the connection is lost; on the next connection the client asks
    for nothing."""

    def attach(self: Any, grant: Any) -> None:
        self._grant = grant

    patches.replace(ZeroQueuePermits, "attach", attach)


@bug("BUG-072", caught_by=("INV-N5",), needs=[needs.zero_queues, needs.redeliver_all])
def permits_are_used_up_by_filtered_messages(patches: Patches) -> None:
    """A message dropped on arrival counts as the message that the application waits for."""

    def receive(original: Any, self: Any, messages: int) -> None:
        self.wanted = False
        original(self, messages)

    patches.around(ZeroQueuePermits, "give_back", receive)


@bug("own", caught_by=("INV-C13",), needs=[needs.zero_queues])
def prefetched_all_the_same(patches: Patches) -> None:
    """After the application gets a message, the client asks for the next one before the application wants
    it."""

    def add(original: Any, self: Any, message: Any) -> None:
        original(self, message)
        self._demand.want()

    patches.around(ZeroQueue, "add", add)


@bug("own", caught_by=("INV-N5",), needs=[needs.zero_queues, needs.batches])
def a_batch_without_prefetching_costs_one_permit(patches: Patches) -> None:
    """After a batch one permit is granted, and the broker counts the messages."""

    def ask(self: Any) -> None:
        if self.wanted and self._grant is not None and not self.paused and self.at_broker < 1:
            self.at_broker = 1
            self._grant(1)

    patches.replace(ZeroQueuePermits, "_ask", ask)


# --- a queue that grows --------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C6",), needs=[needs.scaled_queues])
def a_queue_grows_for_ever(patches: Patches) -> None:
    """The queue doubles whenever the application was faster, beyond what was asked for."""

    def grow(self: Any) -> None:
        self._resize(2 * self.queue_size)

    patches.replace(ScaledPermits, "grow", grow)


@bug("own", caught_by=("INV-N5",), needs=[needs.scaled_queues])
def a_queue_that_grows_forgets_what_came_back(patches: Patches) -> None:
    """When the queue grows, permits that were not reported yet are lost."""

    def resize(original: Any, self: Any, size: int) -> None:
        self.unreported = min(self.unreported, 0) - (size - self.queue_size)
        original(self, size)

    patches.around(ScaledPermits, "_resize", resize)
    patches.around(ScaledQueue, "_found_empty", lambda original, self: self.permits.grow())
