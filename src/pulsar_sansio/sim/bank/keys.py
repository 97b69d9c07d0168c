"""Bugs of Key_Shared subscriptions: the order of the messages of a key."""

from typing import Any

from ...client.consumer import Consumer
from ...client.delivery import DeliveryQueue
from ...model.config import SubscriptionType
from . import needs
from .mutation import Patches, bug


@bug("own", caught_by=("INV-C12",), needs=[needs.keys, needs.key_shared])
def newest_first(patches: Patches) -> None:
    """On a Key_Shared subscription, what has arrived last is handed out first."""

    shared: list[DeliveryQueue] = []

    def init(original: Any, self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        if self.spec.subscription_type is SubscriptionType.KEY_SHARED:
            shared.append(self._queue)

    def begin(original: Any, self: Any) -> None:
        if any(queue is self for queue in shared):
            self._items.reverse()
        original(self)

    patches.around(Consumer, "__init__", init)
    patches.around(DeliveryQueue, "_begin", begin)
