"""`Transactor`: the application that opens transactions, sends and acknowledges in them, and ends them.

Owns its producers and open transactions. Its consumers are applications of their own; the transactor
acknowledges what they hold. `TransactionAccount` judges what happens.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsar_sansio import StatsOptions
from pulsar_sansio.client.outputs import Output, RequestDone, RequestFailed
from pulsar_sansio.model.errors import ClosedError, TransactionNotOpen

from ...engine.clock import MILLISECOND, SECOND
from ...engine.failures import ViolationError
from ...model.records.message_position import MessagePosition
from ...model.transactions.transaction_account import TransactionAccount
from ...model.transactions.transaction_record import TransactionOutcome, TransactionRecord
from ..client_process import HURRY
from .transacting_consumer import Held, TransactingConsumer
from .transacting_process import TransactingProcess
from .transacting_producer import TransactingProducer
from .transaction_loop import TransactionLoop

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

BACKLOGS = StatsOptions(publishers=False, consumers=False)
"""The statistics of backlogs alone, without those of each producer and consumer."""

LAST_TRANSACTIONS = 3
"""Transactions after healing, at most."""

MOST_CLOSES = 3
"""Producers that the application closes by its own decision, at most."""

LATE = 2 * SECOND
"""Nanoseconds after its timeout at which a lingering transaction is committed in vain."""


class _Request:
    """A request of the application, and what takes its outcome."""

    def __init__(self, app: "Transactor", take: Callable[[RequestDone | RequestFailed], None]) -> None:
        self._app = app
        self._take = take

    def on_output(self, output: Output) -> None:
        assert isinstance(output, (RequestDone, RequestFailed))
        self._app.requests.discard(output.request)
        self._app._of_loops.discard(output.request)
        self._take(output)


class Transactor:
    """The application. It has no handle of its own."""

    handle = 0

    def __init__(
        self,
        world: "Surroundings",
        host: TransactingProcess,
        account: TransactionAccount,
        consumers: list[TransactingConsumer],
    ) -> None:
        self.world = world
        self.host = host
        self.plan = host.plan
        self.account = account
        self.stream = world.streams.stream("transactor")
        self.options = world.streams.stream("options of the transactor")
        self._consumers = [each for each in consumers if not each.loops]
        self._loops = [TransactionLoop(self, each) for each in consumers if each.loops]
        self._looping: dict[TransactionRecord, TransactionLoop] = {}
        """The open transactions of loops."""
        self._of_loops: set[int] = set()
        """The requests of loops."""
        self._producers: dict[str, TransactingProducer] = {}
        self._closing: list[TransactingProducer] = []
        self._opened_producers = 0
        self.open: dict[TransactionRecord, bool] = {}
        """Transactions whose end is not known, each with whether it lingers."""
        self.requests: set[int] = set()
        """Requests without an answer."""
        self._began = 0
        """Transactions that were asked for while there were faults."""
        self._last = 0
        """Transactions that were asked for after healing."""
        self._sent = 0
        """Messages outside of transactions."""
        self._closes_left = MOST_CLOSES
        self._turn = 0

    @property
    def state(self) -> str:
        return "open" if self._producers or self._closing or self.requests else "idle"

    @property
    def has_finished(self) -> bool:
        """True when the application has done what it does while there are faults."""
        return self._began >= self.plan.transactions and not self._under_way

    @property
    def _under_way(self) -> int:
        """The number of transactions and requests that are not of loops."""
        return len(self.open) + len(self.requests) - len(self._looping) - len(self._of_loops)

    @property
    def loop_timeout(self) -> int:
        """Nanoseconds until the coordinator aborts a transaction of a loop."""
        return round(self.plan.longest_timeout * SECOND) if self.world.healed else self.timeout

    @property
    def timeout(self) -> int:
        """Nanoseconds until the coordinator aborts a transaction."""
        return round(self.plan.timeout * SECOND)

    @property
    def done(self) -> bool:
        """True when, after healing, every transaction has an end and all is received and acknowledged."""
        if (
            self.open
            or self.requests
            or self._closing
            or not all(each.done for each in self.world.apps.transacting)
        ):
            return False
        producers = self._producers.values()
        if len(producers) < self.plan.topics or not all(each.done for each in producers):
            return False
        return self.world.durable_transactions().is_settled and not self.backlogs()

    def backlogs(self) -> dict[str, int]:
        """Return the subscriptions with messages that are not acknowledged, as the broker counts them."""
        found = {}
        for subscription in self.account.subscriptions.values():
            broker = self.world.cluster.serving(subscription.topic)
            if broker is None:
                found[subscription.name] = -1
                continue
            stats = broker.topic_administration.stats(subscription.topic, BACKLOGS)["subscriptions"]
            name = subscription.subscription
            if name not in stats or stats[name]["backlog"]:
                found[subscription.name] = stats.get(name, {}).get("backlog", -1)
        return found

    def describe(self) -> str:
        """Say what is left to do, for people."""
        durable = self.world.durable_transactions()
        stored = f"{sorted(durable.open)}{' and acknowledgements' * durable.holds_acks}"
        return (
            f"transactions: {[f'{each} {each.outcome.name}' for each in self.open]}, {len(self.requests)} "
            f"requests, {stored} stored, backlogs {self.backlogs()}"
        )

    # --- life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, in a process without transactions: those of the process before are lost."""
        self.lose()
        self._later()

    def wake(self) -> None:
        """The faults are over: finish soon."""
        self._later()

    def lose(self) -> None:
        """The process is lost."""
        for producer in [*self._producers.values(), *self._closing]:
            producer.lose()
        self._producers.clear()
        self._closing.clear()
        self.requests.clear()
        self._of_loops.clear()
        self._looping.clear()
        for loop in self._loops:
            loop.lose()
        for transaction in self.open:
            self.account.lose(transaction)
        self.open.clear()

    def on_output(self, output: Output) -> None:
        raise ViolationError("INV-N2", f"the transactor is told {type(output).__name__}")

    def has_lost(self, producer: TransactingProducer) -> None:
        if producer in self._closing:
            self._closing.remove(producer)
        elif self._producers.get(producer.topic) is producer:
            del self._producers[producer.topic]

    def close_producer(self) -> bool:
        """Close one producer, with whatever is pending."""
        ready = [each for each in self._producers.values() if each.ready]
        if not ready or self.host.closing is not None:
            return False
        producer = self.stream.choice(ready)
        del self._producers[producer.topic]
        self._closing.append(producer)
        try:
            producer.close()
        except ClosedError:  # an output reports the end
            return False
        self.host.node.pump()
        return True

    # --- steps ----------------------------------------------------------------------------------------------

    def _later(self) -> None:
        pause = 1 + self.stream.below(self.plan.pause)
        if self.world.healed:
            pause = min(pause, HURRY)
        self._turn += 1
        self.world.clock.after(pause, self._step, self._turn)

    def _step(self, turn: int) -> None:
        if turn != self._turn or self.host.closing is not None or self.world.closing:
            return
        self.account.clocks_jump = "wall_clock_set" in self.world.faults
        for topic in self.plan.wholes:
            if topic not in self._producers:
                self._opened_producers += 1
                self._producers[topic] = TransactingProducer(self, topic, self._opened_producers)
        for loop in self._loops:
            loop.step()
        if self.world.healed:
            self._finish()
        else:
            self._act()
        self.host.node.pump()
        self._later()

    def _act(self) -> None:
        plan, stream = self.plan, self.stream
        if self._sent < plan.messages and stream.chance(500):
            self._sent += self._send(None)
        if self._closes_left and stream.chance(plan.close_permille):
            self._closes_left -= 1
            self.close_producer()
        if self._began < plan.transactions and self._under_way < plan.at_once:
            self._began += 1
            short = stream.chance(plan.short_permille)
            least = 50 * MILLISECOND
            timeout = stream.spread(least, self.timeout) if short else self.timeout
            self.begin(timeout, self.options.chance(plan.exactly_once_permille))
        for transaction, lingers in list(self.open.items()):
            if transaction.outcome is TransactionOutcome.OPEN and transaction not in self._looping:
                self._work_on(transaction, lingers)

    def _work_on(self, transaction: TransactionRecord, lingers: bool) -> None:
        stream = self.stream
        choice = stream.below(100)
        try:
            if choice < 35:
                for _ in range(stream.between(1, 3)):
                    self._send(transaction)
            elif choice < 70:
                if self._consumers:
                    self._acknowledge(transaction, stream.choice(self._consumers), stream.between(1, 4))
            elif choice < 90:
                late = self.world.clock.now >= transaction.opened_at + transaction.timeout + LATE
                if late or not lingers:
                    self.end(transaction)
            elif self.options.chance(self.plan.flush_permille):
                self.flush(transaction)
        except TransactionNotOpen:
            self.not_open(transaction)

    def _finish(self) -> None:
        for transaction in list(self.open):
            if transaction.outcome is TransactionOutcome.OPEN and transaction not in self._looping:
                try:
                    self.end(transaction)
                except TransactionNotOpen:
                    self.not_open(transaction)
        if self.open or self.requests:
            return
        holding = [each for each in self._consumers if each.held and each.state == "open"]
        if holding and self._last < LAST_TRANSACTIONS:
            self._last += 1
            self.begin(self.timeout, self.options.chance(self.plan.exactly_once_permille))
            return
        for consumer in holding:
            consumer.acknowledge_plainly(len(consumer.held))
            consumer.wake()

    def begin(self, timeout: int, once: bool, loop: TransactionLoop | None = None) -> None:
        """Open a transaction of `timeout` nanoseconds, for a loop perhaps."""
        now = self.world.clock.now
        request = self.host.node.client.begin_transaction(now, timeout / SECOND, exactly_once=once)

        def take(output: RequestDone | RequestFailed) -> None:
            if isinstance(output, RequestFailed):
                if self._calm:
                    raise ViolationError("INV-T7", f"no transaction is opened: {output.error}")
                if loop is not None:
                    loop.opened(None)
                return
            in_milliseconds = timeout // MILLISECOND * MILLISECOND
            transaction = self.account.opened(output.result, now, in_milliseconds, once)
            if loop is not None:
                self._looping[transaction] = loop
                self.open[transaction] = False
                loop.opened(transaction)
                return
            lingers = not self.world.healed and self.stream.chance(self.plan.linger_permille)
            self.open[transaction] = lingers
            if self.world.healed:
                self._use_last(transaction)

        self._expect(request, take, loop)

    def _use_last(self, transaction: TransactionRecord) -> None:
        """Acknowledge what is held after healing; the next step ends the transaction."""
        for consumer in self._consumers:
            self._acknowledge(transaction, consumer, len(consumer.held))
            consumer.wake()
        self._send(transaction)

    def _expect(
        self,
        request: int,
        take: Callable[[RequestDone | RequestFailed], None],
        loop: TransactionLoop | None = None,
    ) -> None:
        self.requests.add(request)
        if loop is not None:
            self._of_loops.add(request)
        self.host.routes[request] = _Request(self, take)

    @property
    def _calm(self) -> bool:
        return self.host.is_calm and not self.world.closing

    # --- inside a transaction -------------------------------------------------------------------------------

    def _send(self, transaction: TransactionRecord | None, is_output: bool = False) -> int:
        """Send one message to any topic. Return how many were sent. Raises `TransactionNotOpen`."""
        ready = [each for each in self._producers.values() if each.ready]
        return int(bool(ready) and self.stream.choice(ready).send(transaction, is_output))

    def send_output(self, transaction: TransactionRecord) -> bool:
        """Send one message of a loop; False when no producer takes it. Raises `TransactionNotOpen`."""
        return bool(self._send(transaction, is_output=True))

    def _acknowledge(self, transaction: TransactionRecord, consumer: TransactingConsumer, most: int) -> None:
        """Acknowledge what a consumer holds. Raises `TransactionNotOpen`."""
        if consumer.state != "open" or not consumer.held:
            return
        client, now = self.host.node.client, self.world.clock.now
        held = sorted(consumer.held)[:most]
        if consumer.kind.cumulative and self.stream.chance(self.plan.cumulative_permille):
            message = consumer.held[held[-1]]
            client.acknowledge_cumulative(now, consumer.handle, message, transaction=transaction.id)
            held = self.through(transaction, consumer, *held[-1])
        else:
            messages = [consumer.held[each] for each in held]
            client.acknowledge(now, consumer.handle, messages, transaction=transaction.id)
        for name, position in held:
            consumer.held.pop((name, position), None)
            self.account.subscriptions[name].acknowledges(position, transaction)

    def through(
        self, transaction: TransactionRecord, consumer: TransactingConsumer, name: str, last: MessagePosition
    ) -> list[Held]:
        """Return what a cumulative acknowledgement of `last` covers on that subscription."""
        subscription = self.account.subscriptions[name]
        assert consumer.record is not None
        transaction.acknowledges_through(name, consumer.record.name, last)
        done = subscription.plain | subscription.committed
        covered = [(name, each) for each in subscription.received if each <= last and each not in done]
        held = [each for each in consumer.held if each[0] == name and each[1] <= last]
        return covered + [each for each in held if each[1] in done]

    def flush(self, transaction: TransactionRecord, flushed: Callable[[bool], None] | None = None) -> None:
        """Ask whether all of it is confirmed so far. Raises `TransactionNotOpen`."""
        messages = list(transaction.messages)
        now = self.world.clock.now
        request = self.host.node.client.flush_transaction(now, transaction.id)

        def take(output: RequestDone | RequestFailed) -> None:
            if isinstance(output, RequestDone):
                self.account.flushed(transaction, messages)
            elif self._calm:
                self.account.check_cause(transaction, output.error, self.world.clock.now)
            if flushed is not None:
                flushed(isinstance(output, RequestDone))

        self._expect(request, take, self._looping.get(transaction))

    def end(self, transaction: TransactionRecord, aborts: bool = False) -> None:
        """Abort, or do either. Raises `TransactionNotOpen`."""
        client, now = self.host.node.client, self.world.clock.now
        aborts = aborts or self.stream.chance(self.plan.abort_permille)
        if aborts:
            request = client.abort(now, transaction.id)
        else:
            request = client.commit(now, transaction.id)
        transaction.outcome = TransactionOutcome.ABORTING if aborts else TransactionOutcome.COMMITTING

        def take(output: RequestDone | RequestFailed) -> None:
            del self.open[transaction]
            if transaction.exactly_once and self.host.closing is None:
                self.account.check_over(transaction, self.world.durable_transactions())
            if isinstance(output, RequestDone):
                self.account.done(transaction)
            else:
                self.account.failed(transaction, output.error, self.world.clock.now, self._calm)
            self._is_over(transaction)

        self._expect(request, take, self._looping.get(transaction))

    def not_open(self, transaction: TransactionRecord) -> None:
        """The time of the transaction is over."""
        del self.open[transaction]
        self.account.not_open(transaction, self.world.clock.now)
        self._is_over(transaction)

    def _is_over(self, transaction: TransactionRecord) -> None:
        """INV-T1: nothing joins a transaction after its end."""
        if (loop := self._looping.pop(transaction, None)) is not None:
            loop.over(transaction.outcome is TransactionOutcome.COMMITTED)
        if self.host.closing is not None or not self.stream.chance(200):
            return
        try:
            sent = self._send(transaction)
        except TransactionNotOpen:
            return
        if sent:
            raise ViolationError("INV-T1", f"a message joins {transaction}, which has ended")
