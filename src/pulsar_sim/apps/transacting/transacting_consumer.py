"""`TransactingConsumer`: a consumer whose messages are acknowledged in transactions, or outside of them."""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import ActiveChanged, Output
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition
from pulsar_sansio.model.message import Message

from ...model.records.message_position import MessagePosition
from ...model.transactions.subscription_account import SubscriptionAccount
from ...model.transactions.transaction_account import TransactionAccount
from ..transient_app import ReceivingApp
from .transacting_process import TransactingProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

MOST_HELD = 30
"""Messages that the consumer takes before it has acknowledged any, at most."""


class ConsumerName:
    """The record of one opening."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False


class TransactingConsumer(ReceivingApp[ConsumerName]):
    """One consumer of one subscription, through as many openings as it needs."""

    def __init__(
        self,
        world: "Surroundings",
        host: TransactingProcess,
        index: int,
        account: TransactionAccount,
        subscription: SubscriptionAccount,
    ) -> None:
        super().__init__(world, "transacting consumer", index, host.index, host.plan.pause)
        self.plan = host.plan
        self.account = account
        self.subscription = subscription
        self.held: dict[MessagePosition, Message] = {}
        """Messages that are taken and not acknowledged."""

    @property
    def done(self) -> bool:
        """True when no message waits for the application, or in it."""
        return (
            self.state == "open"
            and self.attached
            and not self.held
            and not self.host.node.client.available(self.handle)
        )

    def open(self) -> None:
        if not self._may_open():
            return
        self.incarnation += 1
        name = f"x{self.index}.{self.incarnation}"
        spec = ConsumerSpec(
            self.subscription.topic,
            self.subscription.name,
            subscription_type=self.subscription.kind,
            consumer_name=name,
            initial_position=InitialPosition.EARLIEST,
            receiver_queue_size=self.plan.queue,
        )
        self.record = ConsumerName(name)
        self._opened(self.host.node.client.subscribe(self.world.clock.now, spec))

    def lose(self) -> None:
        super().lose()
        self.held.clear()

    # --- steps ----------------------------------------------------------------------------------------------

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        self._receive()
        rash = self.world.rash
        if rash and self.stream.chance(self.plan.plain_permille):
            self.acknowledge_plainly(1 + self.stream.below(3))
        if rash and self.stream.chance(self.plan.close_permille):
            self.close_and_reopen()
        self.host.node.pump()
        if self.state == "open" and not self.world.healed:
            self._later()

    def _receive(self) -> None:
        client, now = self.host.node.client, self.world.clock.now
        while len(self.held) < MOST_HELD and (messages := client.take(now, self.handle, 5)):
            for message in messages:
                found = message.message_id
                position = (found.ledger_id, found.entry_id, max(found.batch_index, 0))
                self.account.receives(self.subscription, position, message.data)
                self.held[position] = message

    def acknowledge_plainly(self, most: int) -> None:
        """Acknowledge held messages outside of transactions."""
        positions = sorted(self.held)[:most]
        if self.state == "open" and positions:
            self.subscription.plain.update(positions)
            messages = [self.held.pop(each) for each in positions]
            self.host.node.client.acknowledge(self.world.clock.now, self.handle, messages)

    def _on_other_output(self, output: Output) -> bool:
        return super()._on_other_output(output) or isinstance(output, ActiveChanged)
