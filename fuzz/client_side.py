"""Hostile brokers against a `Client`.

One round is one client with live producers and consumers. Some of them live on an honest broker and have to
go on undisturbed. The others are attached by honest answers, and then their broker sends any frames. In some
rounds there is no honest broker at all: lookups and handshakes are hostile too. After the round the client is
closed, and everything must have ended: each ticket and each request settled once, no link, no timer.

The checks are those of an adapter that must not go down. `receive_data` raises nothing. One input brings a
bounded number of outputs and of bytes to write. Timers do not spin.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

from fuzz.accounts import Accounts, read_everything
from fuzz.answers import MATCHING, answer, delivery
from fuzz.client_options import (
    EVIL,
    HOME,
    LIMIT,
    PARTITIONED,
    QUEUE,
    SEVERAL,
    config,
    consumer_spec,
    producer_spec,
    reader_spec,
    several_spec,
    table_spec,
)
from fuzz.draws import Draws
from fuzz.mischief import BROKER_SAYS, Mischief
from fuzz.reports import Report, Violation, cause_of
from fuzz.rounds import WALL, Round, name_of
from pulsar_sansio import (
    EARLIEST,
    LATEST,
    Client,
    LocalProtocolError,
    Message,
    OutgoingMessage,
    SubscriptionType,
    client_outputs,
)
from pulsar_sansio.client.letter_topics.copy_producer import MAX_IN_FLIGHT
from pulsar_sansio.wire import FrameDecoder, max_frame_size, proto

Command = proto.BaseCommand

MAX_ANSWER = 64 * 1024 + MAX_IN_FLIGHT * 2 * LIMIT
"""Bytes to write that one input may bring, besides `ANSWER_PER_FRAME` for each frame in it. A producer that
is attached again sends its whole window; the producer of dead letters sends messages of other producers."""

ANSWER_PER_FRAME = 400

MAX_HANDLES = 24
"""Producers and consumers that one round opens, one after the other."""


class Wire:
    """One link of the client, seen from the broker's end."""

    def __init__(self, link: int, host: str) -> None:
        self.link = link
        self.hostile = host != "home"
        self.reads = True
        self.questions: deque[tuple[int, Any]] = deque()
        """Commands of the client that its broker has not answered yet."""
        self.attached: set[int] = set()
        """Requests of PRODUCER and SUBSCRIBE that were answered honestly."""


class ClientRound(Round):
    """One client, its brokers and its application. `feed` and `run` raise `Violation`, or the unexpected
    exception of the client."""

    side: ClassVar[str] = "client"
    frames_when_due: ClassVar[int] = 0

    def __init__(self, draws: Draws, report: Report, first_case: int | None = None) -> None:
        super().__init__(draws, report)
        alone = draws.chance(25)
        self.client = Client(
            self.now, config(EVIL if alone else HOME), seed=draws.bits(16), wall_time=1_700_000_000_000
        )
        self.wires: dict[int, Wire] = {}
        self.known: dict[str, list[Any]] = {
            "request_id": [0, 1],
            "producer_id": [0, 0, 0, 1, 2],
            "consumer_id": [0, 0, 1, 1, 2, 3],
            "sequence_id": [0, 1],
            "ledgerId": [1, 1, 1, 2],
            "entryId": list(range(8)),
            "batch_index": [-1, -1, 0, 1],
            "partition": [-1, -1, -1, 0],
            "ack_set": [1, 3, 6, -1, 0],
            "consumer_epoch": [0, 0, 1],
            "redelivery_count": [0, 0, 1],
            "max_message_size": [LIMIT, LIMIT, 0],
            "protocol_version": [21, 21, 12, 0],
            "brokerServiceUrl": [EVIL, EVIL, "pulsar://other:1", HOME, "nonsense"],
            "assignedBrokerServiceUrl": [EVIL, EVIL, "pulsar://other:1", HOME, ""],
            "partitions": [0, 0, 0, 3],
            "producer_name": ["p"],
            "last_sequence_id": [-1, 0],
            "producer_ready": [1, 1, 1, 0],
            "watcher_id": [0, 1],
            "topics_hash": ["both", "", "another"],
        }
        for field in ("topic", "topics", "new_topics", "deleted_topics"):
            self.known[field] = [*MATCHING, *MATCHING, "persistent://public/default/theirs-3", "theirs", "x"]
        self.mischief = Mischief(draws, BROKER_SAYS, self.known, LIMIT, first_case)
        self.honest: tuple[int, int] | None = None
        self.delivered = 0
        self.producers: list[int] = []
        self.consumers: list[int] = []
        self.view: int | None = None
        """A table view."""
        self.received: list[Message] = []
        self.deliverable: set[int] = set()
        """Consumers that have said so."""
        self.accounts = Accounts()
        self.most_links = 1
        self._step("open", self._open_all, alone)

    @property
    def machine(self) -> Client:
        return self.client

    # --- opening -------------------------------------------------------------------------------------

    def _open_all(self, alone: bool) -> None:
        if not alone:
            producer = self._open_producer("mine", False)
            consumer = self._open_consumer("mine", SubscriptionType.EXCLUSIVE, True)
            self.honest = producer, consumer
            self.accounts.undisturbed = {producer, consumer}
            self.producers.append(self._open_producer("theirs", self.draws.chance(50)))
        for _ in range(2):
            self.consumers.append(self._open_consumer("theirs", self._kind(), self.draws.chance(50)))

    def _kind(self) -> SubscriptionType:
        return self.draws.choice(tuple(SubscriptionType))

    def _open_producer(self, topic: str, batched: bool) -> int:
        handle = self.client.open_producer(self.now, producer_spec(topic, batched))
        self.accounts.handles.add(handle)
        self.accounts.tickets[handle] = 0
        return handle

    def _open_consumer(self, topic: str, kind: SubscriptionType, indexed: bool) -> int:
        handle = self.client.subscribe(self.now, consumer_spec(topic, kind, indexed))
        self.accounts.handles.add(handle)
        return handle

    def _open_other(self) -> None:
        """Open a reader, a table view, or a consumer of several topics."""
        client, draws = self.client, self.draws
        topic = PARTITIONED if draws.chance(30) else "theirs"
        match draws.below(4):
            case 0:
                handle = client.open_reader(self.now, reader_spec(topic))
            case 1 if self.view is None:
                handle = self.view = client.open_table_view(self.now, table_spec(topic))
                self.accounts.handles.add(handle)
                return
            case _:
                handle = client.subscribe(self.now, several_spec(draws.choice(SEVERAL), self._kind()))
        self.accounts.handles.add(handle)
        self.consumers.append(handle)

    # --- the client's outputs ------------------------------------------------------------------------

    def _drain(self) -> list[client_outputs.Output]:
        outputs: list[client_outputs.Output] = []
        while (output := self.client.next_output()) is not None:
            outputs.append(output)
        return outputs

    def _follow(self, outputs: Sequence[client_outputs.Output], frames: int) -> None:
        self.most_links = max(self.most_links, len(self.client.links))
        answers: list[tuple[int, bytes]] = []
        for output in outputs:
            match output:
                case client_outputs.Transmit(link):
                    answers += self._written(link, frames)
                case client_outputs.Disconnect(link, reason):
                    answers += self._written(link, frames)
                    wire = self.wires.pop(link, None)
                    if wire is not None and wire.hostile:
                        self.report.killed[cause_of(reason)] += 1
                case client_outputs.Connect(link, address, _):
                    self.report.links += 1
                    if address.host not in ("home", "evil") and self.draws.chance(50):
                        self._step("no connection", self.client.disconnected, self.now, link, "refused")
                    else:
                        self.wires[link] = Wire(link, address.host)
                        self._step("connected", self.client.connected, self.now, link)
                case _:
                    self._news(output)
        for link, data in answers:
            if link in self.wires:
                self._step("honest answer", self.client.receive_data, self.now, link, data, frames=1)

    def _written(self, link: int, frames: int) -> list[tuple[int, bytes]]:
        """Takes what the client writes; an honest broker's answers to it."""
        wire = self.wires.get(link)
        if wire is not None and not wire.reads:
            return []
        data = b"".join(self.client.data_to_send(link))
        self.report.answer = max(self.report.answer, len(data))
        if len(data) > MAX_ANSWER + ANSWER_PER_FRAME * frames:
            raise Violation(f"{self.label}: one input of {frames} frames brought {len(data)} bytes to write")
        if wire is None:
            return []
        position = 0
        answers: list[tuple[int, bytes]] = []
        while position < len(data):
            found = FrameDecoder().decode(data, position, max_frame_size(64 * LIMIT))
            if found is None:
                raise Violation(f"{self.label}: the client wrote half a frame")
            kind, command, position = found
            if wire.hostile:
                self._remember(kind, command)
                wire.questions.append((kind, command))
                if len(wire.questions) > 200:
                    wire.questions.popleft()
                continue
            url = HOME
            redirect = False
            if kind == Command.LOOKUP and not command.topic.endswith("mine"):
                url, redirect = EVIL, self.draws.chance(50)
            data_back = answer(kind, command, url, LIMIT, redirect)
            if data_back:
                answers.append((link, data_back))
        return answers

    def _remember(self, kind: int, command: Any) -> None:
        """Ids that the hostile broker may use now."""
        request_id = getattr(command, "request_id", None)
        if request_id is not None:
            ids = self.known["request_id"]
            ids.append(request_id)
            del ids[:-6]
        if kind == Command.SEND:
            ids = self.known["sequence_id"]
            ids.append(command.sequence_id)
            del ids[:-4]
        elif kind == Command.PRODUCER:
            self.known["producer_id"] = [command.producer_id] * 4 + [0, 1]
        elif kind == Command.SUBSCRIBE:
            ids = self.known["consumer_id"]
            ids.append(command.consumer_id)
            del ids[:-6]

    def _news(self, output: client_outputs.Output) -> None:
        """Events for the application."""
        if isinstance(output, client_outputs.Deliverable):
            self.deliverable.add(output.consumer)
        self.accounts.news(output, self.label)

    # --- what happens --------------------------------------------------------------------------------

    def run(self, frames: int) -> None:
        """Play until `frames` hostile frames were sent, or the draws are used up. Then end the round."""
        draws, report = self.draws, self.report
        target = report.frames + frames
        idle = 0
        while report.frames < target and not draws.exhausted:
            wires = [wire for wire in self.wires.values() if wire.hostile]
            if not wires:
                self._reopen()
                self._wait()
                idle += 1
                if idle > 50:
                    break  # everything failed for good
                continue
            wire = draws.choice(wires)
            roll = draws.below(100)
            if len(wire.questions) and (roll < 40 or not self._opened(wire)):
                self._answer(wire)
            elif self.deliverable and draws.chance(40):
                self._step("application", self._take, self.deliverable.pop(), QUEUE)
            elif roll < 82:
                idle = 0
                self._attack(wire)
            elif roll < 95:
                self._step("application", self._application)
            elif roll < 98:
                self._advance(draws.choice((0.001, 0.02, 0.2)))
                self._reopen()
            else:
                self._check_honest()
                self._rarely(wire)
        self._check_honest()
        self._end()
        self._count_round()

    def _opened(self, wire: Wire) -> bool:
        """True if the broker may attack: mostly only after it has attached a producer or consumer."""
        return bool(wire.attached) or self.draws.chance(15)

    def _answer(self, wire: Wire) -> None:
        kind, command = wire.questions.popleft()
        data = answer(kind, command, EVIL, LIMIT)
        if data:
            if kind in (Command.PRODUCER, Command.SUBSCRIBE):
                wire.attached.add(command.request_id)
            name = f"honest {name_of(kind)}"
            self._step(name, self.client.receive_data, self.now, wire.link, data, frames=1)

    def _attack(self, wire: Wire) -> None:
        attack = self._draw_attack()
        if wire.attached:
            self.report.attached += attack.frames
        receive = self.client.receive_data
        for piece in attack.pieces:
            if wire.link in self.wires:
                frames = attack.frames_in(piece)
                self._step(attack.label, receive, self.now, wire.link, piece, frames=frames)

    def _rarely(self, wire: Wire) -> None:
        match self.draws.below(6):
            case 0:
                self._step("end of stream", self.client.receive_eof, self.now, wire.link)
            case 1:
                self.wires.pop(wire.link, None)
                self._step("reset", self.client.disconnected, self.now, wire.link, "reset")
            case 2:
                self._advance(6.0)
            case 3:
                wire.reads = not wire.reads
                if wire.reads:
                    self._follow([client_outputs.Transmit(wire.link)], 200)
            case _:
                self._advance(0.5)

    def _reopen(self) -> None:
        """Replace the producers and consumers that have ended for good."""
        self.producers = [handle for handle in self.producers if handle not in self.accounts.ended]
        self.consumers = [handle for handle in self.consumers if handle not in self.accounts.ended]
        if len(self.accounts.handles) < MAX_HANDLES:
            if not self.producers:
                self.producers.append(self._open_producer("theirs", self.draws.chance(50)))
            if self.view in self.accounts.ended:
                self.view = None
            if len(self.consumers) + (self.view is not None) < 4:
                self._open_other()
            if len(self.consumers) < 2:
                self.consumers.append(self._open_consumer("theirs", self._kind(), self.draws.chance(50)))
            self._follow(self._drain(), 0)

    def _wait(self) -> None:
        """Let time pass until the next deadline."""
        due = self.client.next_deadline()
        if due is not None:
            self.now = max(self.now, due)
            self._tick()

    # --- the application -----------------------------------------------------------------------------

    def _application(self) -> None:
        """Anything that an application may do, at any time. Its own mistakes are raised, and are no news."""
        draws, client, now = self.draws, self.client, self.now
        if not self.producers or not self.consumers:
            return
        producer, consumer = self.producers[0], draws.choice(self.consumers)
        messages = self.received[-draws.between(1, 4) :]
        try:
            match draws.below(22):
                case 0 | 1:
                    client.send(now, producer, draws.blob(draws.below(9)), WALL)
                    self.accounts.tickets[producer] += 1
                case 2:
                    sent = client.send_many(now, producer, [b"x"] * draws.below(6), WALL)
                    self.accounts.tickets[producer] += len(sent)
                case 3:
                    message = OutgoingMessage(b"y", key="k", deliver_at=WALL if draws.chance(50) else None)
                    client.send(now, producer, message, WALL)
                    self.accounts.tickets[producer] += 1
                case 4:
                    self.accounts.requests.add(client.flush(now, producer))
                case 5 | 6 | 7:
                    self._take(consumer, draws.below(6))
                case 8 | 9:
                    client.acknowledge(now, consumer, messages)
                case 10:
                    if messages:
                        client.acknowledge(now, consumer, messages[0].message_id)
                case 11:
                    if messages:
                        client.acknowledge_cumulative(now, consumer, messages[-1])
                case 12:
                    client.negative_acknowledge(now, consumer, messages)
                case 13:
                    client.redeliver_unacknowledged(now, consumer)
                case 14:
                    self.accounts.requests.add(client.flush_acknowledgements(now, consumer))
                case 15:
                    places: list[Any] = [EARLIEST, LATEST, WALL, lambda _: LATEST, *messages]
                    target = draws.choice(places)
                    self.accounts.requests.add(client.seek(now, consumer, target, draws.chance(50)))
                case 16:
                    self.accounts.requests.add(client.has_message_available(now, consumer))
                case 17:
                    self.accounts.requests.add(client.last_message_id(now, consumer))
                    client.checkpoint(consumer)
                case 18:
                    self._take(consumer, 1)
                    if messages := self.received[-1:]:
                        delay, all_before = draws.choice((0.0, 1.0)), draws.chance(30)
                        self.accounts.requests.add(
                            client.reconsume_later(
                                now, consumer, messages[0], delay, WALL, cumulative=all_before
                            )
                        )
                case 19:
                    if self.view is not None:
                        self.accounts.requests.add(client.refresh(now, self.view))
                        dict(client.table(self.view))
                case 20:
                    (client.pause if draws.chance(40) else client.resume)(now, consumer)
                case _:
                    if draws.chance(20):
                        closing = draws.choice((producer, consumer))
                        self.accounts.requests.add(client.close(now, closing))
                        self.deliverable.discard(closing)
                    elif draws.chance(20) and self.view is not None:
                        self.accounts.requests.add(client.close(now, self.view))
                    elif draws.chance(20):
                        self.accounts.requests.add(client.unsubscribe(now, consumer))
                    elif draws.chance(50):
                        self.accounts.requests.add(client.topics(now, "public/default"))
                    else:
                        self.accounts.requests.add(client.partitions(now, "theirs"))
        except LocalProtocolError:
            pass

    def _take(self, consumer: int, count: int) -> None:
        if consumer in self.accounts.ended or (self.honest is not None and consumer == self.honest[1]):
            return
        for message in self.client.take(self.now, consumer, count):
            read_everything(message)
            self.report.delivered += 1
            self.received.append(message)
        del self.received[:-20]

    # --- the innocent --------------------------------------------------------------------------------

    def _check_honest(self) -> None:
        """A message goes out and is confirmed, another comes in, on the honest broker's link."""
        if self.honest is None:
            return
        producer, consumer = self.honest
        if self.report.frames and (
            producer not in self.accounts.ready or consumer not in self.accounts.ready
        ):
            raise Violation(f"{self.label}: the honest broker could not attach anybody")
        self.accounts.tickets[producer] += 1
        self._step("innocent", self.client.send, self.now, producer, b"still here", WALL)
        if self.accounts.tickets[producer]:
            raise Violation(f"{self.label}: a message on another link was not confirmed")
        wire = next((wire for wire in self.wires.values() if not wire.hostile), None)
        if wire is None:
            raise Violation(f"{self.label}: the honest broker's link is gone")
        self.delivered += 1
        data = b"".join(delivery(0, self.delivered, b"and here"))
        self._step("innocent", self.client.receive_data, self.now, wire.link, data, frames=1)
        taken = self.client.take(self.now, consumer, 10)
        if [message.data for message in taken] != [b"and here"]:
            raise Violation(f"{self.label}: a message on another link did not arrive")
        self._step("innocent", self.client.acknowledge, self.now, consumer, taken)
        self.report.innocent += 1

    # --- the end -------------------------------------------------------------------------------------

    def _end(self) -> None:
        """The client closes. No broker can keep it open for longer than its timeouts."""
        self.accounts.undisturbed = set()
        self.accounts.requests.add(self.client.close(self.now))
        self._follow(self._drain(), 0)
        for _ in range(4):
            self._advance(5.0)
        if self.client.links or self.client.next_deadline() is not None:
            raise Violation(f"the client is closed and has links {self.client.links}, or a timer")
        self.accounts.check_closed()
