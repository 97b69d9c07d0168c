"""Bugs of Key_Shared subscriptions: the order of the messages of a key, and whose key it is."""

from typing import Any
from zlib import crc32

from pulsar_sansio.broker.dispatching.key_hash import SLOTS, Sticky
from pulsar_sansio.client.consuming import subscribe_command as subscribe_module
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs


@bug("own", caught_by=("INV-C12",), needs=[needs.keys, needs.key_shared])
def newest_first(patches: Patches) -> None:
    """On a Key_Shared subscription, the message that arrived last is delivered first."""

    shared: list[ReceiverQueue] = []

    def init(original: Any, self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        if self.spec.subscription_type is SubscriptionType.KEY_SHARED:
            shared.append(self._queue)

    def begin(original: Any, self: Any) -> None:
        if any(queue is self for queue in shared):
            self._items.reverse()
        original(self)

    patches.around(Consumer, "__init__", init)
    patches.around(ReceiverQueue, "_begin", begin)


@bug("own", caught_by=("SUBT-08",), needs=[needs.sticky_keys])
def ranges_of_keys_are_not_said(patches: Patches) -> None:
    """A consumer with ranges of its own subscribes as if the broker divided the keys."""

    def meta(original: Any, policy: Any) -> Any:
        made = original(policy)
        made.keySharedMode = proto.AUTO_SPLIT
        del made.hashRanges[:]
        return made

    patches.around(subscribe_module, "_key_shared_meta", meta)


@bug("own", caught_by=("SUBT-08",), needs=[needs.greedy])
def ranges_that_overlap_are_let_in(patches: Patches) -> None:
    """Two consumers may ask for the same keys."""
    patches.replace(Sticky, "check", nothing)


@bug("own", caught_by=("SUBT-08",), needs=[needs.sticky_keys])
def keys_go_by_another_hash(patches: Patches) -> None:
    """The broker divides keys by a hash that is not the one that clients count on."""
    patches.replace(Sticky, "slot_of", lambda self, key: crc32(key) % SLOTS or 1)


@bug("own", caught_by=("INV-N5", "INV-C1", "exception"), needs=[needs.sticky_keys, needs.consumers_close])
def ranges_of_closed_consumers_stay_taken(patches: Patches) -> None:
    """A consumer leaves, and no other consumer can have its keys."""
    patches.replace(Sticky, "remove", nothing)
