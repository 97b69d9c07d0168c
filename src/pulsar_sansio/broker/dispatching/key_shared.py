"""The dispatcher of Key_Shared: `Shared`, with each key at one consumer at a time (rules SUBT-08, GAP-18).

It owns the entries that are held back, by the slot of their key. A selector (`key_hash`, `key_ring`) knows
the consumer of each slot.
"""

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ...model.errors import ConsumerBusy
from ...wire import MetadataDecoder
from ..storage.entry import entry_metadata
from .consumer import Consumer
from .key_hash import Sticky, sticky_key
from .key_ring import Selector, automatic
from .shared import Shared

if TYPE_CHECKING:
    from ..storage.ledger import Ledger
    from ..topics.subscription import Subscription


class KeyShared(Shared):
    """Delivers each key to one consumer at a time, in order, also while ranges move.

    An entry is held back when the consumer of its key is not available, or another consumer has
    unacknowledged entries of that key. Every later entry of that key is then held back, too.
    """

    def __init__(self, subscription: "Subscription", sticky: bool, allow_out_of_order: bool) -> None:
        super().__init__(subscription)
        self.sticky = sticky
        self.allow_out_of_order = allow_out_of_order
        self.selector: Selector = Sticky() if sticky else automatic(subscription.topic.services.config)
        self._decoder = MetadataDecoder()
        """For the keys of stored entries, which no connection brings."""
        self._slots: dict[int, int] = {}
        """Offset -> slot, for entries held back or pending at a consumer."""
        self._holders: dict[int, tuple[Consumer, int]] = {}
        """Slot -> the consumer that has unacknowledged entries of that slot, and their number."""
        self._held: dict[int, list[int]] = {}
        """Slot -> heap of offsets held back."""
        self._held_count = 0
        self._undecided: dict[int, None] = {}
        """Slots with entries held back that may be deliverable now."""
        self._short_of_room: dict[Consumer, dict[int, None]] = {}
        """Consumer that is not available -> its slots with entries held back.

        A slot with entries held back that is neither here nor undecided has no consumer, or another consumer
        has unacknowledged entries of that slot.
        """

    def check(self, newcomer: Consumer) -> None:
        if self.consumers and newcomer.sticky != self.sticky:
            raise ConsumerBusy("Subscription is of different type of key shared mode")
        if self.consumers and newcomer.allow_out_of_order != self.allow_out_of_order:
            raise ConsumerBusy("Subscription is of different allowOutOfOrderDelivery")
        if isinstance(self.selector, Sticky):
            self.selector.check(newcomer.sticky_ranges)

    def add(self, consumer: Consumer) -> None:
        super().add(consumer)
        self.selector.add(consumer)
        self._short_of_room.clear()
        self._undecided.update(dict.fromkeys(self._held))

    def remove(self, consumer: Consumer) -> None:
        self.selector.remove(consumer)
        self._undecided.update(self._short_of_room.pop(consumer, ()))
        super().remove(consumer)

    def wake(self, consumer: Consumer) -> None:
        super().wake(consumer)
        self._undecided.update(self._short_of_room.pop(consumer, ()))

    def _slot(self, ledger: "Ledger", offset: int) -> int:
        slot = self._slots.get(offset)
        if slot is None:
            slot = self.selector.slot_of(sticky_key(entry_metadata(ledger.entry(offset).data, self._decoder)))
            self._slots[offset] = slot
        return slot

    def _target(self, slot: int) -> Consumer | None:
        """Return the consumer that may get an entry of this slot now, else None."""
        owner = self.selector.owner(slot)
        if owner is None or not owner.available:
            return None
        holder = self._holders.get(slot)
        if holder is not None and holder[0] is not owner and not self.allow_out_of_order:
            return None
        return owner

    def dispatch(self) -> None:
        subscription = self.subscription
        if subscription.fenced or self._is_throttled():
            return
        log = subscription.topic.log
        transactions, taken = subscription.topic.transactions, subscription.pending_acks.taken
        end, hidden = transactions.read_end, transactions.hidden
        if not self._held and self.read >= end:
            subscription.check_end_of_topic()
            return
        if self._undecided:
            self._dispatch_held()
        cursor, delayed_or_chunked = subscription.cursor, log.delayed_or_chunked
        look_ahead = subscription.topic.services.config.key_shared_look_ahead
        checked = False
        ledger = log.ledger_at(self.read)
        while not self.stopped and self._held_count < look_ahead:
            offset = max(cursor.next_unacknowledged(self.read), log.first)
            if offset >= end:
                self.read = offset
                return
            if not checked:
                if not self._turns.any_available():
                    return
                checked = True
            if offset >= ledger.end or offset < ledger.first:
                ledger = log.ledger_at(offset)
            self.read = offset + 1
            if hidden and offset in hidden:
                subscription.skip_hidden(offset)
                continue
            if taken and self._is_taken(offset):
                continue
            if delayed_or_chunked and offset in delayed_or_chunked and self._is_delayed(offset):
                continue
            slot = self._slot(ledger, offset)
            if slot in self._held or (target := self._target(slot)) is None:
                self._hold(slot, offset)
                checked = False
            else:
                self._deliver_slot(target, ledger, offset, slot)
                checked = target.available

    def _is_delayed(self, offset: int) -> bool:
        """True when the entry is delayed and not due. Chunks of a message have one key, so they need no
        care."""
        deliver_at = self.subscription.topic.log.delayed_or_chunked[offset].deliver_at
        return deliver_at >= 0 and self.delays.postpone(offset, deliver_at)

    def _dispatch_held(self) -> None:
        """Deliver entries held back, in order of offsets, as far as consumers are available."""
        subscription = self.subscription
        log, cursor, taken = subscription.topic.log, subscription.cursor, subscription.pending_acks.taken
        ready = []
        undecided, self._undecided = self._undecided, {}
        for slot in undecided:
            if (heap := self._held.get(slot)) is None:
                continue
            if self._target(slot) is None:
                self._wait_for_room(slot)
            else:
                ready.append((heap[0], slot))
        heapify(ready)
        while ready and not self.stopped:
            _, slot = heappop(ready)
            target = self._target(slot)
            if target is None:
                self._wait_for_room(slot)
                continue
            heap = self._held[slot]
            offset = heappop(heap)
            self._held_count -= 1
            self._replaying.discard(offset)
            # An entry of a removed ledger counts as acknowledged, too.
            if cursor.acknowledged(offset) or (taken and self._is_taken(offset)):
                self._slots.pop(offset, None)
            else:
                self._deliver_slot(target, log.ledger_at(offset), offset, slot)
            if heap:
                heappush(ready, (heap[0], slot))
            else:
                del self._held[slot]
        self._undecided.update((slot, None) for _, slot in ready)

    def _wait_for_room(self, slot: int) -> None:
        """Leave a slot until its consumer is available again."""
        owner = self.selector.owner(slot)
        if owner is not None and not owner.available:
            self._short_of_room.setdefault(owner, {})[slot] = None

    def _deliver_slot(self, target: Consumer, ledger: "Ledger", offset: int, slot: int) -> None:
        holder = self._holders.get(slot)
        self._holders[slot] = (target, holder[1] + 1 if holder is not None else 1)
        self._deliver(target, ledger, offset)

    def _hold(self, slot: int, offset: int) -> None:
        heap = self._held.get(slot)
        if heap is None:
            heap = self._held[slot] = []
            self._undecided[slot] = None
        heappush(heap, offset)
        self._held_count += 1

    def _replay_later(self, offset: int) -> None:
        if offset not in self._replaying:
            delayed_or_chunked = self.subscription.topic.log.delayed_or_chunked
            if offset in delayed_or_chunked and self._is_delayed(offset):
                return  # A transaction acknowledged it before it was due, and was aborted.
            self._replaying.add(offset)
            self._hold(self._slot(self.subscription.topic.log.ledger_at(offset), offset), offset)

    def _released(self, holder: Consumer, offset: int) -> None:
        slot = self._slots[offset]
        consumer, count = self._holders[slot]
        if count > 1:
            self._holders[slot] = (consumer, count - 1)
        else:
            del self._holders[slot]
            if slot in self._held:
                self._undecided[slot] = None
        if offset not in self._replaying:
            del self._slots[offset]
        if slot in self._held:
            self._unblocked = True

    def acknowledged_in_transaction(
        self, consumer: Consumer | None, offset: int, messages: int, whole: bool
    ) -> None:
        super().acknowledged_in_transaction(consumer, offset, messages, whole)
        slot = self._slots.get(offset) if whole else None
        held = self._held.get(slot) if slot is not None else None
        if held is None or slot is None or offset not in held:
            return
        # An acknowledged entry must not fill the look-ahead any longer.
        held.remove(offset)
        if held:
            heapify(held)
        else:
            del self._held[slot]
        self._held_count -= 1
        self._replaying.discard(offset)
        del self._slots[offset]
        self._unblocked = True

    def acknowledged_up_to(self, offset: int) -> None:
        """Discard acknowledged entries that are held back: they must not fill the look-ahead, whose keys may
        have no consumer."""
        super().acknowledged_up_to(offset)
        for slot, heap in list(self._held.items()):
            left = [each for each in heap if each > offset]
            for each in heap:
                if each <= offset:
                    self._replaying.discard(each)
                    self._slots.pop(each, None)
            self._held_count -= len(heap) - len(left)
            if left:
                heapify(left)
                self._held[slot] = left
            else:
                del self._held[slot]

    def reset(self) -> None:
        super().reset()
        self._slots.clear()
        self._holders.clear()
        self._held.clear()
        self._undecided.clear()
        self._short_of_room.clear()
        self._held_count = 0
