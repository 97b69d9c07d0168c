"""Hostile clients against a `Broker`.

One round is one broker with an innocent client and hostile clients. The innocent client publishes and
consumes on a topic of its own, and has to go on undisturbed. The broker accepts the hostile clients like any
other. They get a producer and consumers of every kind, and then send any frames. Sometimes they do not read
the answers. After the round the administrator looks at everything, and the broker is started again from its
store.

The checks are those of a server that must not go down. `receive_data` raises nothing. One input brings a
bounded number of outputs. The bytes that wait to be written to one peer are bounded. Timers do not spin.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fuzz.draws import Draws
from fuzz.mischief import CLIENT_SAYS, Mischief
from fuzz.reports import Report, Violation, cause_of
from fuzz.rounds import SECOND, WALL, Round, name_of
from pulsar_sansio import Broker, BrokerConfig, MemoryStore, broker_outputs
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.wire import (
    FrameDecoder,
    MessageMetadata,
    encode_ack,
    encode_command,
    encode_flow,
    encode_message_metadata,
    encode_send,
    max_frame_size,
    pack_payload,
    proto,
)

Command = proto.BaseCommand
SubType = proto.CommandSubscribe.SubType

LIMIT = 8 * 1024
"""Bytes of one message in these rounds."""

CONFIG = BrokerConfig(
    keepalive_interval=5.0,
    liveness_timeout=0.5,
    max_connections=8,
    max_message_size=LIMIT,
    max_unsent_bytes=16 * 1024,
    max_pending_publishes=50,
    max_producers_per_connection=12,
    max_consumers_per_connection=12,
    ledger_max_entries=20,
    ledger_max_bytes=32 * 1024,
    keep_without_subscription=64 * 1024,
    max_topics=30,
    max_subscriptions_per_topic=12,
    housekeeping_interval=1.0,
    max_unacked_messages_per_consumer=40,
    max_unacked_messages_per_subscription=60,
    failover_delay=0.01,
    key_shared_look_ahead=30,
)

MINE = "persistent://public/default/mine"
TOPICS = (
    "persistent://public/default/theirs",
    "persistent://public/default/theirs-partition-1",
    "non-persistent://public/default/theirs",
)

MAX_STORED = 2 * 1024 * 1024
"""Bytes stored after which a round ends: storage is what clients are given it for."""


class Peer:
    """One client's end of a link."""

    def __init__(self, link: int) -> None:
        self.link = link
        self.reads = True
        self.closed: str | None = None
        self.data = b""
        self.inbox: list[tuple[int, Any]] = []


class BrokerRound(Round):
    """One broker and its clients. `run` raises `Violation`, or whatever comes out of the broker that should
    not."""

    side: ClassVar[str] = "broker"
    frames_when_due: ClassVar[int] = 50

    def __init__(self, draws: Draws, report: Report, first_case: int | None = None) -> None:
        super().__init__(draws, report)
        self.config = replace(
            CONFIG, deduplication=draws.chance(30), auto_topic_partitions=draws.below(2) * 2
        )
        self.store = MemoryStore()
        self.peers: dict[int, Peer] = {}
        self.links = 0
        self.most_stored = 0
        self.most_entries = 0
        self.hostile: list[Peer] = []
        self.request_id = 100
        self.sequence_id = 0
        self.known: dict[str, list[Any]] = {
            "request_id": [1, 2, 3],
            "producer_id": [0, 0, 0, 1, 2],
            "consumer_id": [0, 1, 2, 3, 4, 5],
            "topic": [*TOPICS, "theirs"],
            "namespace": ["public/default"],
            "subscription": ["s0", "s1", "s2", "s3", "fresh", "mine"],
            "consumer_name": ["a", "b", ""],
            "producer_name": ["", "p", "q"],
            "sequence_id": [0, 1, 2, 3],
            "highest_sequence_id": [0, 3],
            "messagePermits": [1, 10, 100],
            "ledgerId": [0, 0, 1, 1, 2, 3, 4, 5],
            "entryId": list(range(6)),
            "ack_set": [0, 1, 6, -2],
            "batch_index": [-1, 0, 1],
            "priority_level": [0, 0, 1, -1],
            "start": [0, 100],
            "end": [99, 65535],
            "num_messages": [1, 1, 2],
            "topics_pattern": ["persistent://public/default/.*", "(", "a{9}", "[[a]", ".*.*.*"],
            "schema_data": [b"", b"null", b"{}"],
            "proxy_to_broker_url": ["other:1"],
            "message_publish_time": [0, WALL],
            "consumer_epoch": [0, 1, 2],
            "epoch": [0, 1],
            "topic_epoch": [0, 1],
        }
        self.mischief = Mischief(draws, CLIENT_SAYS, self.known, LIMIT, first_case)
        self.broker = self._start()
        self.innocent = self._connect()
        self._open_innocent()

    @property
    def machine(self) -> Broker:
        return self.broker

    def _start(self) -> Broker:
        state = self.store.load()
        broker = Broker(
            self.now, self.config, state, seed=1, wall_time=WALL + (self.now - 1_000 * SECOND) // 1_000_000
        )
        self.broker = broker
        self._drain()
        return broker

    # --- the broker's outputs ------------------------------------------------------------------------

    def _follow(self, outputs: Sequence[Any], frames: int) -> None:
        """Do nothing: writing, storing and confirming are part of the input, and `_drain` does them."""

    def _drain(self) -> list[broker_outputs.Output]:
        outputs: list[broker_outputs.Output] = []
        broker = self.broker
        while (output := broker.next_output()) is not None:
            outputs.append(output)
            match output:
                case broker_outputs.Transmit(link):
                    peer = self.peers[link]
                    if peer.reads:
                        self._read(peer)
                case broker_outputs.Disconnect(link, reason):
                    peer = self.peers.pop(link)
                    self._read(peer)
                    peer.closed = reason
                    self.report.killed[cause_of(reason)] += 1
                case broker_outputs.Persist(write, records):
                    self.store.write(records)
                    broker.persisted(self.now, write)
                case _:
                    pass
        return outputs

    def _read(self, peer: Peer) -> None:
        data = b"".join(self.broker.data_to_send(peer.link))
        self.report.answer = max(self.report.answer, len(data))
        most = self.config.max_unsent_bytes * 16 + 3 * max_frame_size(LIMIT)
        if len(data) > most:
            raise Violation(f"{self.label}: {len(data)} bytes wait for one peer, allowed are {most}")
        data = peer.data + data
        position = 0
        while (found := FrameDecoder().decode(data, position, max_frame_size(4 * LIMIT))) is not None:
            kind, command, position = found
            peer.inbox.append((kind, command))
        peer.data = data[position:]
        del peer.inbox[:-50]

    # --- clients -------------------------------------------------------------------------------------

    def _connect(self) -> Peer:
        self.links += 1
        self.report.links += 1
        peer = Peer(self.links)
        self.peers[peer.link] = peer
        self._step("accepted", self.broker.accepted, self.now, peer.link, "127.0.0.1:1")
        self._say(peer, Command.CONNECT, proto.CommandConnect(client_version="fuzz", protocol_version=21))
        return peer

    def _feed(self, peer: Peer, label: str, data: bytes, frames: int = 1) -> None:
        if peer.closed is None:
            self._step(label, self.broker.receive_data, self.now, peer.link, data, frames=frames)

    def _say(self, peer: Peer, kind: int, command: Any) -> None:
        self._feed(peer, name_of(kind), encode_command(kind, command))

    def _request(self) -> int:
        self.request_id += 1
        return self.request_id

    def _open_innocent(self) -> None:
        peer = self.innocent
        self._say(peer, Command.PRODUCER, proto.CommandProducer(topic=MINE, producer_id=0, request_id=1))
        self._say(
            peer,
            Command.SUBSCRIBE,
            proto.CommandSubscribe(
                topic=MINE, subscription="mine", subType=SubType.Shared, consumer_id=0, request_id=2
            ),
        )
        self._feed(peer, "FLOW", encode_flow(0, 1000))

    def _open_hostile(self) -> Peer:
        """Open a client like any other: a producer on each topic, a consumer of each kind."""
        peer = self._connect()
        draws = self.draws
        for place, topic in enumerate(TOPICS):
            self._say(
                peer,
                Command.PRODUCER,
                proto.CommandProducer(topic=topic, producer_id=place, request_id=self._request()),
            )
        topic = draws.choice(TOPICS)
        for place, kind in enumerate(
            (SubType.Exclusive, SubType.Shared, SubType.Failover, SubType.Key_Shared)
        ):
            self._say(
                peer,
                Command.SUBSCRIBE,
                proto.CommandSubscribe(
                    topic=topic,
                    subscription=f"s{place}",
                    subType=kind,
                    consumer_id=place,
                    request_id=self._request(),
                    initialPosition=proto.CommandSubscribe.Earliest,
                ),
            )
            self._feed(peer, "FLOW", encode_flow(place, 100))
        if any(kind == Command.PRODUCER_SUCCESS for kind, _ in peer.inbox[:2]):
            self._publish(peer, b"hostile")
        self.hostile.append(peer)
        return peer

    def _publish(self, peer: Peer, payload: bytes) -> None:
        metadata = encode_message_metadata(MessageMetadata("p", self.sequence_id, WALL))
        packed = pack_payload(metadata, payload)
        frame = encode_send(0, self.sequence_id, 1, None, packed, sum(map(len, packed)))
        self._feed(peer, "SEND", frame if isinstance(frame, bytes) else b"".join(frame))
        self.sequence_id += 1

    # --- what happens --------------------------------------------------------------------------------

    def run(self, frames: int) -> None:
        """Play until `frames` hostile frames were sent, or the draws are used up. Then end the round."""
        draws, report = self.draws, self.report
        target = report.frames + frames
        refused = 0
        while report.frames < target and not draws.exhausted:
            self.hostile = [peer for peer in self.hostile if peer.closed is None]
            if len(self.hostile) < 2:
                refused = refused + 1 if self._open_hostile().closed is not None else 0
                if refused > 20:
                    break  # others have taken all there is to be had
                continue
            peer = draws.choice(self.hostile)
            roll = draws.below(100)
            if roll < 88:
                self._attack(peer)
            elif roll < 92:
                self._advance(draws.choice((0.001, 0.02, 0.2)))
            elif roll < 96:
                self._check_innocent()
            else:
                self._rarely(peer)
            if self._measure_storage() > MAX_STORED:
                break
        self._check_innocent()
        self._end()
        self._count_round()

    def _attack(self, peer: Peer) -> None:
        attack = self._draw_attack()
        self.report.attached += attack.frames
        for piece in attack.pieces:
            if peer.closed is None and (self.broker.wants_read(peer.link) or self.draws.chance(10)):
                self._feed(peer, attack.label, piece, attack.frames_in(piece))

    def _rarely(self, peer: Peer) -> None:
        match self.draws.below(8):
            case 0:
                self._step("end of stream", self.broker.receive_eof, self.now, peer.link)
            case 1:
                peer.closed = "reset"
                self.peers.pop(peer.link, None)
                self._step("reset", self.broker.disconnected, self.now, peer.link, "reset")
            case 2:
                self._advance(1.1)
            case 3 | 4:
                peer.reads = not peer.reads
                if peer.reads:
                    self._step("reads again", self._read, peer, frames=200)
            case 5:
                raw = self._raw()
                self._feed(raw, "before CONNECT", self.mischief.next().data)
                if raw.closed is None:
                    self.hostile.append(raw)
            case 6:
                self._step("unload", self._administer, "unload", frames=20)
            case _:
                self._step("stats", self._administer, "stats")

    def _raw(self) -> Peer:
        """A link on which nothing was said."""
        self.links += 1
        peer = Peer(self.links)
        self.peers[peer.link] = peer
        self._step("accepted", self.broker.accepted, self.now, peer.link, "127.0.0.1:1")
        return peer

    def _administer(self, what: str) -> None:
        for name, topic in list(self.broker.topics.by_name.items()):
            if what == "unload" and name != MINE:
                self.broker.topic_administration.unload(self.now, name)
                return
            self.broker.topic_administration.stats(name)
            if topic.persistent:
                self.broker.topic_administration.internal_stats(name)

    def _measure_storage(self) -> int:
        """Bytes stored now; the most of it is remembered."""
        logs = [topic.log for topic in self.broker.topics.by_name.values() if isinstance(topic, Topic)]
        stored = sum(log.size for log in logs)
        self.most_stored = max(self.most_stored, stored)
        self.most_entries = max(self.most_entries, sum(log.end - log.first for log in logs))
        return stored

    def _advance(self, seconds: float) -> None:
        super()._advance(seconds)
        # The innocent is alive, and says so.
        self._say(self.innocent, Command.PONG, proto.CommandPong())

    # --- the innocent --------------------------------------------------------------------------------

    def _check_innocent(self) -> None:
        """A message goes in and is confirmed, and comes out again."""
        peer = self.innocent
        if peer.closed is not None:
            raise Violation(f"{self.label}: the innocent client was disconnected: {peer.closed}")
        peer.inbox.clear()
        self._publish(peer, b"still here")
        kinds = [kind for kind, _ in peer.inbox]
        if kinds != [Command.SEND_RECEIPT, Command.MESSAGE]:
            names = [name_of(kind) for kind in kinds]
            raise Violation(f"{self.label}: the innocent client published and got {names}")
        message = peer.inbox[1][1]
        self._feed(peer, "ACK", encode_ack(0, 0, [(message.ledger_id, message.entry_id, None)]))
        self._feed(peer, "FLOW", encode_flow(0, 1))
        self.report.innocent += 1

    # --- the end -------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Everybody leaves, the administrator looks at all there is, and the broker starts again."""
        self._step("stats", self._administer, "stats")
        for peer in list(self.peers.values()):
            self.peers.pop(peer.link)
            self._step("leaving", self.broker.disconnected, self.now, peer.link, "over")
        if self.broker.links:
            raise Violation(f"everybody left, and {len(self.broker.links)} links are there")
        super()._advance(70.0)
        self._step("stats", self._administer, "stats")
        again = self._start()
        for name in again.topics.by_name:
            again.topic_administration.stats(name)
