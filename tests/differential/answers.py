"""Comparable text of a broker's frames: one line for a frame, field by field.

What a broker chooses freely is replaced. A position is named by the message that is stored there. Generated
names and transactions get numbers in the order in which they appear. Times, addresses and texts of errors are
left out. Frames of one step that need no order (answers to different requests, messages of different
consumers) are sorted.
"""

import re
from collections.abc import Iterable
from typing import Any
from zlib import crc32

from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import MessageCommand, SendReceipt, proto, topics_hash, unpack_payload
from tests.differential.steps import NAMESPACE

Type = proto.BaseCommand.Type

MINUS_ONE = (1 << 64) - 1

LEFT_OUT = {
    "server_version",
    "message",
    "error_message",
    "address",
    "connectedSince",
    "msgRateOut",
    "msgThroughputOut",
    "msgRateRedeliver",
    "msgRateExpired",
    "messageAckRate",
}
"""Fields that are the broker's own affair: texts, addresses, and rates that depend on time."""

CHOSEN = {"brokerServiceUrl", "brokerServiceUrlTls"}
"""Fields of which only the presence is compared."""

GENERATED_NAME = re.compile(r"standalone-\d+-\d+")

_CONSUMER_NAME = re.compile(r"[0-9a-f]{5,}")


def _word(value: object) -> str:
    """Return text without a space."""
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.replace(" ", "_").replace("\n", "_") or "empty"


def _of_users(topics: Iterable[str]) -> list[str]:
    """Leave out the topics in which a Java broker keeps policies and transactions."""
    return [topic for topic in topics if "/__" not in topic]


class Answers:
    """The answers of one broker in one conversation. `namespace`: stands in for `NAMESPACE`."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._numbers: dict[tuple[str, Any], int] = {}
        self.messages: dict[tuple[int, int], int] = {}
        """The position of a message -> its number."""

    def lines(self, connection: int, frames: Iterable[tuple[int, Any]]) -> list[str]:
        """Return the text of frames that arrived in one step at one connection."""
        ordered = sorted(frames, key=lambda frame: self._stream(*frame))
        lines = [self._line(*frame) for frame in ordered if not self._is_of_system(*frame)]
        return [f"{connection} {line}" for line in lines]

    @staticmethod
    def _is_of_system(number: int, command: Any) -> bool:
        """True for news of topics in which a Java broker keeps policies and transactions."""
        return number == Type.WATCH_TOPIC_UPDATE and not [
            *_of_users(command.new_topics),
            *_of_users(command.deleted_topics),
        ]

    @staticmethod
    def _stream(number: int, command: Any) -> tuple[Any, ...]:
        """Frames of one stream keep their order."""
        if hasattr(command, "request_id") and command.request_id != MINUS_ONE:
            return (0, command.request_id)
        if number == Type.CLOSE_PRODUCER:
            return (1, "producer", command.producer_id)
        if number == Type.CLOSE_CONSUMER:
            return (1, "consumer", command.consumer_id)
        for name in ("producer_id", "consumer_id", "watcher_id"):
            if hasattr(command, name):
                return (1, name.removesuffix("_id"), getattr(command, name))
        return (2, Type.Name(number))

    def _line(self, number: int, command: Any) -> str:
        if isinstance(command, MessageCommand):
            facts = self._message(command)
        elif isinstance(command, SendReceipt):
            facts = {
                "producer_id": command.producer_id,
                "sequence_id": command.sequence_id,
                "at": self._position(command.ledger_id or 0, command.entry_id or 0),
                "highest_sequence_id": command.highest_sequence_id,
            }
        else:
            facts = self._fields(command)
        words = " ".join(f"{name}={_word(value)}" for name, value in facts.items() if value is not None)
        return f"{Type.Name(number)} {words}".rstrip()

    def _message(self, command: MessageCommand) -> dict[str, Any]:
        facts = {
            "consumer_id": command.consumer_id,
            "at": self._position(command.ledger_id, command.entry_id),
            "partition": None if command.partition == -1 else command.partition,
            "batch_index": None if command.batch_index == -1 else command.batch_index,
            "redelivery_count": command.redelivery_count or None,
            "ack_set": None if command.ack_set is None else f"{command.ack_set:b}",
            "consumer_epoch": command.consumer_epoch,
        }
        try:
            unpacked = unpack_payload(command.payload)
        except (ChecksumMismatch, FrameError):
            return facts | {"entry": f"malformed-{crc32(command.payload):x}"}
        payload = bytes(unpacked.payload)
        short = (
            payload.decode("ascii", "replace") if len(payload) <= 8 else f"{len(payload)}-{crc32(payload):x}"
        )
        return facts | {
            "sequence_id": unpacked.metadata.sequence_id,
            "broker_entry_metadata": "present" if unpacked.broker_entry_metadata is not None else None,
            "payload": short,
        }

    # --- protobuf ---------------------------------------------------------------------------------------

    def _fields(self, command: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        names = {field.name for field, _ in command.ListFields()}
        for field, value in command.ListFields():
            name = field.name
            if name in LEFT_OUT or name in ("entryId", "txnid_most_bits"):
                continue
            if name == "ledgerId":
                found["at"] = self._position(value, command.entryId)
            elif name == "txnid_least_bits" and "txnid_most_bits" in names:
                found["transaction"] = self._number("T", (command.txnid_most_bits, value))
            elif name in CHOSEN:
                found[name] = "present"
            elif name == "topics_hash":
                found[name] = self._hash(command, value)
            elif name == "producer_name" and GENERATED_NAME.fullmatch(value):
                found[name] = self._number("generated-", value)
            elif name == "consumerName" and _CONSUMER_NAME.fullmatch(value):
                found[name] = "generated"
            elif name in ("topics", "topic", "new_topics", "deleted_topics") and field.is_repeated:
                if topics := sorted(map(self._text, _of_users(value))):
                    found[name] = topics
            elif field.is_repeated:
                found[name] = [self._value(field, each) for each in value]
            elif field.message_type is not None:
                found |= {f"{name}.{inner}": each for inner, each in self._fields(value).items()}
            else:
                found[name] = self._value(field, value)
        return found

    def _value(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return "+".join(f"{name}:{each}" for name, each in self._fields(value).items())
        if field.enum_type is not None:
            return field.enum_type.values_by_number[value].name
        if isinstance(value, bytes):
            return (value.hex() if len(value) <= 8 else f"{len(value)}-{crc32(value):x}") or "empty"
        if isinstance(value, str):
            return self._text(value)
        return -1 if value == MINUS_ONE else value

    def _text(self, value: str) -> str:
        return value.replace(self._namespace, NAMESPACE)

    def _hash(self, command: Any, value: str) -> str:
        """Compare the hash with the topics in the frame, whose names have the namespace of the run."""
        topics = [*(getattr(command, "topics", None) or getattr(command, "topic", None) or ())]
        if topics != _of_users(topics) or value == topics_hash(topics):
            return "of-the-list"
        return "present" if value else "empty"

    # --- what the broker chooses ------------------------------------------------------------------------

    def _number(self, prefix: str, value: object) -> str:
        key = (prefix, value)
        if key not in self._numbers:
            self._numbers[key] = sum(each[0] == prefix for each in self._numbers)
        return f"{prefix}{self._numbers[key]}"

    def _position(self, ledger_id: int, entry_id: int) -> str:
        """Name a position by the message that the broker has stored there."""
        ledger, entry = (-1 if each == MINUS_ONE else each for each in (ledger_id, entry_id))
        if ledger == -1:
            return f"-1:{entry}"
        if (ledger, entry) in self.messages:
            return f"m{self.messages[ledger, entry]}"
        if (ledger, entry + 1) in self.messages:
            return f"before-m{self.messages[ledger, entry + 1]}"
        return f"{self._number('L', ledger)}:{entry}"
