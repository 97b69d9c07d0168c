"""The client's side of the recordings in `tests/captures`, as conversations.

Positions of the recording become symbols: by the receipt of the message, or by a receipt of the same ledger.
The client's pauses are kept where the broker acts by time.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import (
    Ack,
    FrameDecoder,
    Send,
    encode_message_metadata,
    max_frame_size,
    pack_payload,
    proto,
    unpack_payload,
)
from tests.differential.steps import (
    LAST_HASH,
    NAMESPACE,
    SYMBOL,
    Administer,
    Conversation,
    Drop,
    Frame,
    Open,
    Pause,
    Step,
)
from tests.wire.recorded.recordings import FOLDER, NAMES

Type = proto.BaseCommand.Type

PUBLIC = "persistent://public/default/"

DEDUPLICATION = "public/dedup"
"""The namespace of a recording."""

_GENERATED = re.compile(r"\bstandalone-(\d+-\d+)\b")
"""Names that the recorded broker gave; this run's broker may give them to other producers."""

LONG = 0.4
"""Seconds: a longer pause of the client is part of the conversation."""

PREPARED: dict[str, list[Step]] = {
    "java-deduplication": [Administer("deduplicate", (NAMESPACE,))],
    "java-partitioned": [Administer("create_partitioned_topic", (PUBLIC + "partitioned", 3))],
    "java-partitioned-murmur3": [Administer("create_partitioned_topic", (PUBLIC + "partitioned-murmur3", 4))],
    "cpp-partitioned": [Administer("create_partitioned_topic", (PUBLIC + "cpp-partitioned", 3))],
}
"""Recording -> what an administrator did before it."""

ADMINISTERED: dict[str, Administer] = {
    "java-terminate": Administer("terminate", (PUBLIC + "terminate",)),
    "java-unload": Administer("unload", (PUBLIC + "unload",)),
    "java-delete-topic-forced": Administer("delete_topic", (PUBLIC + "delete-topic-forced", True)),
    "java-compaction": Administer("compact", (PUBLIC + "compaction",)),
}
"""Recording -> what an administrator did in the middle."""


class Piece:
    """One frame of a recording, or the end of a connection where `number` is None."""

    def __init__(self, at: float, connection: int, by_client: bool, number: int | None, command: Any) -> None:
        self.at = at
        self.connection = connection
        self.by_client = by_client
        self.number = number
        self.command = command


def pieces(name: str) -> Iterator[Piece]:
    held: dict[tuple[int, bool], bytes] = {}
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        at, connection, by_client = piece["t"] / 1e6, piece["c"], piece["d"] == ">"
        if piece.get("eof"):
            yield Piece(at, connection, by_client, None, None)
            continue
        data = held.get((connection, by_client), b"") + bytes.fromhex(piece["x"])
        position = 0
        while (frame := FrameDecoder().decode(data, position, max_frame_size())) is not None:
            number, command, position = frame
            yield Piece(at, connection, by_client, number, command)
        held[connection, by_client] = data[position:]


class Translation:
    """Positions and transactions of a recording, as symbols."""

    def __init__(self) -> None:
        self._sent: list[tuple[int, Send]] = []
        self._answered: set[int] = set()
        self._positions: dict[tuple[int, int], tuple[int, int]] = {}
        self._transactions: list[tuple[int, int]] = []
        self._hashes: set[str] = set()

    def note(self, piece: Piece) -> None:
        """Take an answer of the recorded broker."""
        if piece.number == Type.NEW_TXN_RESPONSE:
            self._transactions.append((piece.command.txnid_most_bits, piece.command.txnid_least_bits))
        if topics_hash := getattr(piece.command, "topics_hash", None):
            self._hashes.add(topics_hash)
        if piece.number != Type.SEND_RECEIPT:
            return
        receipt = piece.command
        index = next(
            index
            for index, (connection, send) in enumerate(self._sent)
            if index not in self._answered
            and (connection, send.producer_id, send.sequence_id)
            == (piece.connection, receipt.producer_id, receipt.sequence_id)
        )
        self._answered.add(index)
        self._positions.setdefault((receipt.ledger_id, receipt.entry_id), (SYMBOL + index, 0))

    def symbolic(self, piece: Piece) -> Any:
        """Return a command of the client with symbols."""
        command = piece.command
        if isinstance(command, Send):
            self._sent.append((piece.connection, command))
            return self._send(command)
        if isinstance(command, Ack):
            ids = [(*self._position(ledger, entry), bits) for ledger, entry, bits in command.message_ids]
            most, least = self._transaction(command.txnid_most_bits, command.txnid_least_bits)
            return command._replace(message_ids=ids, txnid_most_bits=most, txnid_least_bits=least)
        self._replace(command)
        return command

    def _send(self, command: Send) -> Send:
        """Replace the transaction, and make the time of a delayed message relative to now."""
        most, least = self._transaction(command.txnid_most_bits, command.txnid_least_bits)
        command = command._replace(txnid_most_bits=most, txnid_least_bits=least)
        try:
            unpacked = unpack_payload(command.payload)
        except (ChecksumMismatch, FrameError):
            return command
        metadata = unpacked.metadata
        if metadata.deliver_at_time is None:
            return command
        metadata.deliver_at_time -= metadata.publish_time
        payload = b"".join(pack_payload(encode_message_metadata(metadata), unpacked.payload))
        return command._replace(payload=payload)

    def _replace(self, message: Any) -> None:
        names = {field.name for field, _ in message.ListFields()} if hasattr(message, "ListFields") else set()
        if "ledgerId" in names:
            message.ledgerId, message.entryId = self._position(message.ledgerId, message.entryId)
        if "txnid_most_bits" in names:
            message.txnid_most_bits, message.txnid_least_bits = self._transaction(
                message.txnid_most_bits, message.txnid_least_bits
            )
        if "topics_hash" in names and message.topics_hash in self._hashes:
            message.topics_hash = LAST_HASH
        for name in names:
            value = getattr(message, name)
            if isinstance(value, str):
                own = _GENERATED.sub(r"recorded-\1", value)
                setattr(message, name, own.replace(DEDUPLICATION, NAMESPACE))
            for each in value if message.DESCRIPTOR.fields_by_name[name].is_repeated else [value]:
                if hasattr(each, "ListFields"):
                    self._replace(each)

    def _position(self, ledger_id: int, entry_id: int) -> tuple[int, int]:
        if (ledger_id, entry_id) in self._positions:
            return self._positions[ledger_id, entry_id]
        for (ledger, entry), (symbol, _) in self._positions.items():
            if ledger == ledger_id and entry_id + 1 in (entry, 0):
                return symbol, entry_id - entry
        return ledger_id, entry_id

    def _transaction(self, most: int | None, least: int | None) -> tuple[int | None, int | None]:
        pair = (most, least)
        return (SYMBOL + self._transactions.index(pair), 0) if pair in self._transactions else pair


def conversation(name: str) -> Conversation:
    """Return the client's side of a recording."""
    steps: list[Step] = [*PREPARED.get(name, [])]
    administered = ADMINISTERED.get(name)
    translation = Translation()
    opened: set[int] = set()
    last = 0.0
    for piece in pieces(name):
        if not piece.by_client:
            if piece.number in (Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER) and administered is not None:
                steps.append(administered)
                administered = None
            translation.note(piece)
            continue
        if piece.at - last > LONG and opened:
            if name == "java-compaction" and administered is not None:
                steps.append(administered)
                administered = None
            steps.append(Pause(round(piece.at - last, 1)))
        last = piece.at
        if piece.number is None:
            steps.append(Drop(piece.connection))
        elif piece.number not in (Type.PING, Type.PONG):
            if piece.connection not in opened:
                opened.add(piece.connection)
                steps.append(Open(piece.connection))
            steps.append(Frame(piece.connection, piece.number, translation.symbolic(piece)))
    return Conversation(name, tuple(steps))


def conversations() -> list[Conversation]:
    """Return all recordings."""
    return [conversation(name) for name in NAMES]
