"""The stage: our client and our broker in one thread, without delay, and what they say to each other."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from pulsar_sansio.broker import Broker, BrokerConfig, MemoryStore
from pulsar_sansio.broker import outputs as broker_outputs
from pulsar_sansio.client import outputs
from pulsar_sansio.client.client import Client
from pulsar_sansio.client.positions.seeking import SeekTarget
from pulsar_sansio.model.config import (
    ClientConfig,
    ConsumerSpec,
    OutgoingMessage,
    ProducerSpec,
    ReaderSpec,
    SubscriptionType,
    TableViewSpec,
    TopicsPattern,
)
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.errors import PulsarError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.model.transaction_id import TransactionId
from tests.conversations.facts import PRIVATE_KEY, PUBLIC_KEY, Frame, frame_facts

SECOND = 1_000_000_000
WALL = 1_700_000_000_000
URL = "pulsar://127.0.0.1:6650"


class Stage:
    """One client, one broker, and what passed between them in `frames`.

    The application's calls are blocking as in the recorded programs: they go on until they are answered.
    """

    def __init__(self, **config: Any) -> None:
        self.now = SECOND
        self.frames: list[Frame] = []
        # As a real standalone broker on loopback is configured.
        self.broker = Broker(
            self.now,
            BrokerConfig(service_url=URL, proxy_through_service_url=True, key_shared_consistent_hashing=True),
            MemoryStore().load(),
            seed=1,
            wall_time=self.wall_time(),
        )
        client_config = ClientConfig(service_url=URL, **config)
        self.client = Client(
            self.now, client_config, seed=1, wall_time=self.wall_time(), entropy=Random(1).randbytes
        )
        self._persists: deque[broker_outputs.Persist] = deque()
        self._links: dict[int, int] = {}
        """Connection numbers in the order of opening, by link; the broker has the same link numbers."""
        self._streams: dict[tuple[int, bool], bytes] = {}
        self.said: list[Any] = []
        """Everything that the client told its application."""

    # --- time and bytes ---

    def pump(self) -> None:
        """Carry outputs until neither client nor broker has any."""
        while self._client_outputs() or self._broker_outputs():
            pass

    def _client_outputs(self) -> bool:
        busy = False
        while (output := self.client.next_output()) is not None:
            busy = True
            match output:
                case outputs.Connect(link):
                    self._links[link] = len(self._links)
                    self.broker.accepted(self.now, link, f"127.0.0.1:{link}")
                    self.client.connected(self.now, link)
                case outputs.Transmit(link):
                    self._to_broker(link)
                case outputs.Disconnect(link):
                    self._to_broker(link)
                    self.broker.disconnected(self.now, link, "closed by the client")
                case outputs.EncryptionKeyWanted(request, _, _, _, private):
                    file = PRIVATE_KEY if private else PUBLIC_KEY
                    info = EncryptionKeyInfo(Secret(file.read_bytes()))
                    self.client.provide_encryption_key(self.now, request, info)
                case _:
                    self.said.append(output)
        return busy

    def _broker_outputs(self) -> bool:
        busy = False
        while (output := self.broker.next_output()) is not None:
            busy = True
            match output:
                case broker_outputs.Transmit(link):
                    self._to_client(link)
                case broker_outputs.Disconnect(link):
                    self._to_client(link)
                    self.client.disconnected(self.now, link, "closed by the broker")
                case broker_outputs.Persist():
                    self.broker.persisted(self.now, output.write)
        return busy

    def _to_broker(self, link: int) -> None:
        data = b"".join(self.client.data_to_send(link))
        self._note(link, True, data)
        self.broker.receive_data(self.now, link, data)

    def _to_client(self, link: int) -> None:
        data = b"".join(self.broker.data_to_send(link))
        self._note(link, False, data)
        self.client.receive_data(self.now, link, data)

    def _note(self, link: int, by_client: bool, data: bytes) -> None:
        data = self._streams.get((link, by_client), b"") + data
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            self.frames.append(frame_facts(self._links[link], by_client, data[:end]))
            data = data[end:]
        self._streams[link, by_client] = data

    def _next_deadline(self) -> int | None:
        deadlines = (self.client.next_deadline(), self.broker.next_deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def sleep(self, seconds: float) -> None:
        """Time passes, every timer at its moment."""
        until = self.now + round(seconds * SECOND)
        self.pump()
        while (deadline := self._next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.client.handle_deadline(self.now)
            self.broker.handle_deadline(self.now)
            self.pump()
        self.now = until

    def until(self, condition: Callable[[], Any], seconds: float = 20.0) -> Any:
        """Let time pass until the condition gives something."""
        self.pump()
        limit = self.now + round(seconds * SECOND)
        while not (found := condition()):
            deadline = self._next_deadline()
            nothing = f"nothing comes any more; said last: {self.said[-3:]}"
            assert deadline is not None, nothing
            assert deadline <= limit, nothing
            self.sleep((max(self.now, deadline) - self.now) / SECOND)
        return found

    def wall_time(self) -> int:
        """Milliseconds since 1970."""
        return WALL + self.now // 1_000_000

    # --- the application's calls ---

    def _take_output(self, *kinds: type, **fields: Any) -> Any:
        for output in self.said:
            if isinstance(output, kinds) and all(
                getattr(output, name) == value for name, value in fields.items()
            ):
                self.said.remove(output)
                return output
        return None

    def producer(self, topic: str, **spec: Any) -> "PlayedProducer":
        """Opened; raises why it cannot be."""
        producer = self.begin_producer(topic, **spec)
        producer.opened()
        return producer

    def begin_producer(self, topic: str, **spec: Any) -> "PlayedProducer":
        handle = self.client.open_producer(self.now, ProducerSpec(topic=topic, **spec))
        return PlayedProducer(self, handle)

    def consumer(self, topic: str | tuple[str, ...] | TopicsPattern, **spec: Any) -> "PlayedConsumer":
        spec.setdefault("subscription", "sub")
        spec.setdefault("subscription_type", SubscriptionType.EXCLUSIVE)
        return self._subscribed(self.client.subscribe(self.now, ConsumerSpec(topic=topic, **spec)))

    def reader(self, topic: str, start: MessageId, **spec: Any) -> "PlayedConsumer":
        return self._subscribed(self.client.open_reader(self.now, ReaderSpec(topic, start, **spec)))

    def table_view(self, topic: str, **spec: Any) -> "PlayedTableView":
        handle = self.client.open_table_view(self.now, TableViewSpec(topic, **spec))
        told = self.until(
            lambda: (
                self._take_output(outputs.TableViewReady, view=handle)
                or self._take_output(outputs.TableViewFailed, view=handle)
            )
        )
        if isinstance(told, outputs.TableViewFailed):
            raise told.error
        return PlayedTableView(self, handle)

    def begin_transaction(self, timeout: float) -> TransactionId:
        transaction = self.request(self.client.begin_transaction(self.now, timeout))
        assert isinstance(transaction, TransactionId)
        return transaction

    def commit(self, transaction: TransactionId) -> None:
        self.request(self.client.commit(self.now, transaction))

    def abort(self, transaction: TransactionId) -> None:
        self.request(self.client.abort(self.now, transaction))

    def _subscribed(self, handle: int) -> "PlayedConsumer":
        told = self.until(
            lambda: (
                self._take_output(outputs.ConsumerReady, consumer=handle)
                or self._take_output(outputs.ConsumerFailed, consumer=handle)
            )
        )
        if isinstance(told, outputs.ConsumerFailed):
            raise told.error
        return PlayedConsumer(self, handle)

    def request(self, request: int) -> Any:
        told = self.until(
            lambda: (
                self._take_output(outputs.RequestDone, request=request)
                or self._take_output(outputs.RequestFailed, request=request)
            )
        )
        if isinstance(told, outputs.RequestFailed):
            raise told.error
        return told.result

    def close(self) -> None:
        self.request(self.client.close(self.now))
        self.pump()


class PlayedProducer:
    def __init__(self, stage: Stage, handle: int) -> None:
        self.stage = stage
        self.handle = handle
        self.last_sequence_id: int | None = None
        self._settled: dict[int, MessageId | PulsarError] = {}

    def opened(self) -> None:
        stage = self.stage
        told = stage.until(
            lambda: (
                stage._take_output(outputs.ProducerReady, producer=self.handle)
                or stage._take_output(outputs.ProducerFailed, producer=self.handle)
            )
        )
        if isinstance(told, outputs.ProducerFailed):
            raise told.error
        self.last_sequence_id = told.last_sequence_id

    def enqueue(self, message: bytes | OutgoingMessage) -> int:
        stage = self.stage
        ticket = stage.client.send(stage.now, self.handle, message, stage.wall_time())
        stage.pump()
        return ticket

    def result(self, ticket: int) -> MessageId:
        """Return a message's id; raise the error for which it was not taken."""
        settled = self.stage.until(lambda: self._look(ticket))
        if isinstance(settled, PulsarError):
            raise settled
        assert isinstance(settled, MessageId)
        return settled

    def _look(self, ticket: int) -> MessageId | PulsarError | None:
        stage = self.stage
        while (
            told := stage._take_output(outputs.Receipts, outputs.SendFailed, producer=self.handle)
        ) is not None:
            if isinstance(told, outputs.Receipts):
                self._settled.update(enumerate(told.message_ids, told.first))
            else:
                self._settled.update(dict.fromkeys(range(told.first, told.first + told.count), told.error))
        return self._settled.get(ticket)

    def send(self, message: bytes | OutgoingMessage) -> MessageId:
        return self.result(self.enqueue(message))

    def send_value(self, value: object) -> MessageId:
        """Send a value of the producer's schema."""
        payload, key = self.stage.client.encoder(self.handle)(value)
        return self.send(OutgoingMessage(payload, key=key))

    def send_all(self, first: int, count: int) -> None:
        """`m0`, `m1` … together, flushed."""
        tickets = [self.enqueue(b"m%d" % number) for number in range(first, first + count)]
        self.flush()
        for ticket in tickets:
            self.result(ticket)

    def flush(self) -> None:
        self.stage.request(self.stage.client.flush(self.stage.now, self.handle))

    def close(self) -> None:
        self.stage.request(self.stage.client.close(self.stage.now, self.handle))


class PlayedConsumer:
    def __init__(self, stage: Stage, handle: int) -> None:
        self.stage = stage
        self.handle = handle

    def receive(self) -> Message[Any]:
        stage = self.stage
        message = self.receive_now()  # which may ask for one
        if message is None:
            message = stage.until(lambda: stage.client.receive(stage.now, self.handle))
            stage.pump()
        assert message is not None
        return message

    def receive_now(self) -> Message[Any] | None:
        """Return the next message that has arrived, or None."""
        message = self.stage.client.receive(self.stage.now, self.handle)
        self.stage.pump()
        return message

    def acknowledge(self, message: Message, transaction: TransactionId | None = None) -> None:
        self.stage.client.acknowledge(self.stage.now, self.handle, message, transaction=transaction)
        self.stage.pump()

    def acknowledge_cumulative(self, message: Message) -> None:
        self.stage.client.acknowledge_cumulative(self.stage.now, self.handle, message)
        self.stage.pump()

    def negative_acknowledge(self, message: Message) -> None:
        self.stage.client.negative_acknowledge(self.stage.now, self.handle, message)
        self.stage.pump()

    def reconsume_later(self, message: Message, delay: float) -> None:
        stage = self.stage
        wall_time = stage.wall_time()
        stage.request(stage.client.reconsume_later(stage.now, self.handle, message, delay, wall_time))

    def redeliver_unacknowledged(self) -> None:
        self.stage.client.redeliver_unacknowledged(self.stage.now, self.handle)
        self.stage.pump()

    def seek(self, target: SeekTarget) -> None:
        self.stage.request(self.stage.client.seek(self.stage.now, self.handle, target))

    def has_message_available(self) -> bool:
        result = self.stage.request(self.stage.client.has_message_available(self.stage.now, self.handle))
        assert isinstance(result, bool)
        return result

    def last_message_id(self) -> MessageId:
        message_id = self.stage.request(self.stage.client.last_message_id(self.stage.now, self.handle))
        assert isinstance(message_id, MessageId)
        return message_id

    def unsubscribe(self) -> None:
        self.stage.request(self.stage.client.unsubscribe(self.stage.now, self.handle))

    def take_and_acknowledge(self, count: int) -> None:
        for _ in range(count):
            self.acknowledge(self.receive())

    def close(self) -> None:
        self.stage.request(self.stage.client.close(self.stage.now, self.handle))


class PlayedTableView:
    def __init__(self, stage: Stage, handle: int) -> None:
        self.stage = stage
        self.handle = handle

    def __getitem__(self, key: str) -> Any:
        return self.stage.client.table(self.handle)[key]

    def close(self) -> None:
        self.stage.request(self.stage.client.close(self.stage.now, self.handle))
