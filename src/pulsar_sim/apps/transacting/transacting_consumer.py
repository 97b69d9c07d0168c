"""`TransactingConsumer`: a consumer whose messages are acknowledged in transactions, or outside of them."""

from typing import TYPE_CHECKING, TypeAlias

from pulsar_sansio.client.outputs import (
    ActiveChanged,
    LetterFailed,
    LetterSent,
    Output,
    RequestDone,
    RequestFailed,
    TopicJoined,
)
from pulsar_sansio.model.config import ConsumerSpec, DeadLetterPolicy, InitialPosition, SubscriptionType
from pulsar_sansio.model.message import Message

from ...engine.failures import ViolationError
from ...model.records.message_position import BEFORE_ALL, MessagePosition
from ...model.transactions.transaction_account import TransactionAccount
from ..transient_app import ReceivingApp
from .transacting_process import TransactingProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

REFUSAL_DELAY = 0.2
"""Seconds until a message that was negatively acknowledged is delivered again."""

MOST_HELD = 30
"""Messages that the consumer takes before it has acknowledged any, at most."""


class ConsumerName:
    """The record of one opening."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False


Held: TypeAlias = tuple[str, MessagePosition]
"""A message that a consumer holds: the name of its subscription's account, and its position."""


class TransactingConsumer(ReceivingApp[ConsumerName]):
    """One consumer of one subscription, through as many openings as it needs."""

    def __init__(
        self,
        world: "Surroundings",
        host: TransactingProcess,
        index: int,
        account: TransactionAccount,
        topic: str,
        subscription: str,
    ) -> None:
        super().__init__(world, "transacting consumer", index, host.index, host.plan.pause)
        self.plan = host.plan
        self.account = account
        self._topic = topic
        self._subscription = subscription
        accounts = account.subscriptions.values()
        self._accounts = {each.topic: each for each in accounts if each.subscription == subscription}
        """The accounts of the topic, or of all its partitions."""
        self.loops = subscription == self.plan.looped_subscription
        """A loop takes the messages."""
        self._end: Held = ("", BEFORE_ALL)
        """The last message that a loop has taken."""
        self.kind: SubscriptionType = next(iter(self._accounts.values())).kind
        self.held: dict[Held, Message] = {}
        """Messages that are taken and not acknowledged."""
        self._letters: set[int] = set()
        """Requests for dead letters without an answer."""

    @property
    def _has_letters(self) -> bool:
        return bool(self.plan.dead_letters) and not self.kind.cumulative

    @property
    def done(self) -> bool:
        """True when no message waits for the application, or in it."""
        return (
            self.state == "open"
            and self.attached
            and not self.held
            and not self._letters
            and not self.host.node.client.available(self.handle)
        )

    def open(self) -> None:
        if not self._may_open():
            return
        self.incarnation += 1
        name = f"x{self.index}.{self.incarnation}"
        spec = ConsumerSpec(
            self._topic,
            self._subscription,
            subscription_type=self.kind,
            consumer_name=name,
            initial_position=InitialPosition.EARLIEST,
            receiver_queue_size=self.plan.queue,
            max_pending_chunked_messages=1000,
            incomplete_chunked_message_timeout=self.world.profile.chunk_patience,
            negative_acknowledgement_delay=REFUSAL_DELAY,
            dead_letter=DeadLetterPolicy(self.plan.dead_letters) if self._has_letters else None,
        )
        self.record = ConsumerName(name)
        self._opened(self.host.node.client.subscribe(self.world.clock.now, spec))

    def lose(self) -> None:
        super().lose()
        self.held.clear()
        self._letters.clear()

    # --- steps ----------------------------------------------------------------------------------------------

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        rash = self.world.rash
        if not self.loops:
            self._receive()
            if rash and self.stream.chance(self.plan.plain_permille):
                self.acknowledge_plainly(1 + self.stream.below(3))
            if rash and self._has_letters:
                self._turn_down()
        if rash and self.stream.chance(self.plan.close_permille):
            self.close_and_reopen()
        self.host.node.pump()
        if self.state == "open" and not self.world.healed:
            self._later()

    def _receive(self) -> None:
        client, now = self.host.node.client, self.world.clock.now
        while len(self.held) < MOST_HELD and (messages := client.take(now, self.handle, 5)):
            self.held.update((self._received(message), message) for message in messages)

    def _received(self, message: Message) -> Held:
        found = message.message_id
        position = (found.ledger_id, found.entry_id, max(found.batch_index, 0))
        subscription = self._accounts[message.topic]
        self.account.receives(subscription, position, message.data)
        return subscription.name, position

    @property
    def is_open(self) -> bool:
        """True when a loop may take messages."""
        return self.state == "open" and self.host.closing is None

    def take_whole(self, limit: int) -> dict[Held, Message]:
        """Take up to `limit` messages. TXN-02: the last batch may exceed the limit, and is not divided."""
        client, now = self.host.node.client, self.world.clock.now
        found = client.take(now, self.handle, limit, whole_batches=True)
        taken = {self._received(message): message for message in found}
        if taken:
            name, first = next(iter(taken))
            if self._end[0] == name and self._end[1][:2] == first[:2] and self._end[1] < first:
                raise ViolationError("TXN-02", f"{name}: the batch of {first} is divided")
            self._end = name, last = next(reversed(taken))
            if sum(message.message_id[:2] != last[:2] for message in found) >= limit:
                raise ViolationError("TXN-02", f"{name}: {len(found)} messages, not {limit}")
        return taken

    def acknowledge_plainly(self, most: int) -> None:
        """Acknowledge held messages outside of transactions."""
        held = sorted(self.held)[:most]
        if self.state == "open" and held:
            for name, position in held:
                self.account.subscriptions[name].plain.add(position)
            messages = [self.held.pop(each) for each in held]
            self.host.node.client.acknowledge(self.world.clock.now, self.handle, messages)

    # --- letters --------------------------------------------------------------------------------------------

    def _turn_down(self) -> None:
        """Make a dead letter of a held message, or acknowledge some negatively, perhaps."""
        if self.state == "open" and self.held and self.stream.chance(self.plan.letter_permille):
            self._make_letter()
        if self.state == "open" and self.held and self.stream.chance(self.plan.refuse_permille):
            refused = sorted(self.held)[: 1 + self.stream.below(3)]
            messages = [self.held.pop(each) for each in refused]
            self.host.node.client.negative_acknowledge(self.world.clock.now, self.handle, messages)

    def _make_letter(self) -> None:
        name, position = self.stream.choice(sorted(self.held))
        account = self.account.subscriptions[name]
        assert account.letters is not None
        account.letters.due.add(account.received[position])
        message = self.held.pop((name, position))
        world = self.world
        client = self.host.node.client
        request = client.dead_letter(world.clock.now, self.handle, message, world.wall_time())
        self.host.routes[request] = self
        self._letters.add(request)

    def _answered(self, output: RequestDone) -> None:
        """A dead letter is stored."""
        self._letters.discard(output.request)

    def _not_answered(self, output: RequestFailed) -> None:
        """A dead letter is not stored: the broker delivers its message again."""
        self._letters.discard(output.request)

    def _on_other_output(self, output: Output) -> bool:
        others = (ActiveChanged, TopicJoined, LetterSent, LetterFailed)
        return super()._on_other_output(output) or isinstance(output, others)
