"""Plays a conversation with a broker, and returns the answers to each step.

The player replaces symbols by what this broker has answered, and `NAMESPACE` by the namespace of the run.
After each step it waits for the answers of all requests, and until the broker is quiet.
"""

from collections.abc import Sequence
from typing import Any

from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import (
    Ack,
    Flow,
    Send,
    SendReceipt,
    encode_command,
    encode_message_metadata,
    pack_payload,
    proto,
    unpack_payload,
)
from tests.differential.answers import Answers
from tests.differential.brokers import Broker
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
)

Type = proto.BaseCommand.Type

UNKNOWN_LEDGER = 987_654_321
"""The ledger in place of a receipt that never came."""


class Player:
    """One conversation with one broker. `namespace`: where its topics are.

    `expected`: the answers to each step of another run. The player waits for as many frames for a while, so
    that a slow broker is not taken for a silent one.
    """

    def __init__(
        self,
        broker: Broker,
        conversation: Conversation,
        namespace: str,
        expected: Sequence[Sequence[str]] = (),
    ) -> None:
        self._broker = broker
        self._conversation = conversation
        self._namespace = namespace
        self._answers = Answers(namespace)
        self._expected = expected
        self._requests: dict[int, set[int]] = {}
        """Connection -> request ids that have no answer yet."""
        self._sent: list[tuple[int, Send]] = []
        """Connection and command of each SEND."""
        self._receipts: dict[int, tuple[int, int]] = {}
        """Index of a SEND -> its position."""
        self._settled: set[int] = set()
        """Indexes of SENDs with a receipt or an error."""
        self._transactions: list[tuple[int, int]] = []
        self._last_hash = ""
        self._noted: dict[int, int] = {}
        """Connection -> the number of frames in its inbox that are noted."""
        self._ended: set[int] = set()
        """Connections whose end stands in the answers."""

    def play(self) -> list[list[str]]:
        """Return the answers to each step."""
        return [self._step(step, number) for number, step in enumerate(self._conversation.steps)]

    def _step(self, step: Any, number_of_step: int) -> list[str]:
        found: list[str] = []
        match step:
            case Open(connection):
                self._broker.open(connection)
                return found
            case Drop(connection):
                if not self._may_write(connection):
                    return found
                self._forget(connection)
                self._broker.drop(connection)
                self._broker.inboxes.pop(connection)
            case Administer(verb, arguments):
                done = self._broker.administer(verb, *map(self._local, arguments))
                found.append(f"administration {'done' if done else 'refused'}")
            case Pause(seconds):
                self._broker.pause(seconds)
            case Frame(connection, number, command):
                if not self._may_write(connection):
                    return found
                self._expect(connection, number, command)
                self._broker.write(connection, self._encoded(number, command))
        expected = len(self._expected[number_of_step]) if self._expected else 0
        self._broker.settle(self._is_answered, expected)
        return found + self._collect()

    def _may_write(self, connection: int) -> bool:
        return connection in self._broker.inboxes and connection not in self._broker.closed

    # --- answers ----------------------------------------------------------------------------------------

    def _expect(self, connection: int, number: int, command: Any) -> None:
        if isinstance(command, Send):
            self._sent.append((connection, command))
        elif number == Type.CONNECT:
            self._requests.setdefault(connection, set()).add(-1)
        elif (request_id := getattr(command, "request_id", None)) is not None:
            self._requests.setdefault(connection, set()).add(request_id)

    def _forget(self, connection: int) -> None:
        self._requests.pop(connection, None)
        self._settled |= {index for index, sent in enumerate(self._sent) if sent[0] == connection}

    def _is_answered(self) -> bool:
        self._note()
        return not any(self._requests.values()) and len(self._settled) == len(self._sent)

    def _note(self) -> None:
        """Note the answers that have come since the last call."""
        for connection in self._broker.closed:
            self._forget(connection)
        for connection, inbox in self._broker.inboxes.items():
            open_requests = self._requests.setdefault(connection, set())
            for place in range(self._noted.get(connection, 0), len(inbox)):
                number, command = inbox[place]
                if number in (Type.CONNECTED, Type.AUTH_CHALLENGE):
                    open_requests.discard(-1)
                elif number in (Type.SEND_RECEIPT, Type.SEND_ERROR):
                    inbox[place] = (number, self._note_send(connection, command))
                elif (request_id := getattr(command, "request_id", None)) is not None:
                    open_requests.discard(request_id)
            self._noted[connection] = len(inbox)

    def _note_send(self, connection: int, command: Any) -> Any:
        """Return the answer; where SEND had no highest sequence id, without that of the receipt."""
        for index, (sender, send) in enumerate(self._sent):
            if (
                index not in self._settled
                and (sender, send.producer_id) == (connection, command.producer_id)
                and command.sequence_id in (send.sequence_id, send.highest_sequence_id)
            ):
                self._settled.add(index)
                if not isinstance(command, SendReceipt):
                    return command
                if command.ledger_id is not None and command.entry_id is not None:
                    self._receipts[index] = (command.ledger_id, command.entry_id)
                    self._answers.messages.setdefault(self._receipts[index], index)
                return (
                    command
                    if send.highest_sequence_id is not None
                    else command._replace(highest_sequence_id=None)
                )
        return command

    def _collect(self) -> list[str]:
        self._note()
        found: list[str] = []
        for connection, inbox in sorted(self._broker.inboxes.items()):
            frames = [*inbox]
            inbox.clear()
            self._noted[connection] = 0
            for number, command in frames:
                if number == Type.NEW_TXN_RESPONSE and not command.HasField("error"):
                    self._transactions.append((command.txnid_most_bits, command.txnid_least_bits))
                self._last_hash = getattr(command, "topics_hash", "") or self._last_hash
            found += self._answers.lines(connection, frames)
            if connection in self._broker.closed and connection not in self._ended:
                self._ended.add(connection)
                found.append(f"{connection} ends")
        return found

    # --- symbols ----------------------------------------------------------------------------------------

    def _encoded(self, number: int, command: Any) -> bytes:
        if isinstance(command, Send):
            return self._send(command).encode()
        if isinstance(command, Ack):
            ids = [(*self._position(ledger, entry), bits) for ledger, entry, bits in command.message_ids]
            most, least = self._transaction(command.txnid_most_bits, command.txnid_least_bits)
            return command._replace(message_ids=ids, txnid_most_bits=most, txnid_least_bits=least).encode()
        if isinstance(command, Flow):
            return command.encode()
        copy = type(command)()
        copy.CopyFrom(command)
        self._replace(copy)
        return encode_command(number, copy)

    def _send(self, command: Send) -> Send:
        """Replace the transaction in the command and in the metadata, and a delay by the time of delivery."""
        in_transaction = command.txnid_most_bits is not None
        if in_transaction:
            most, least = self._transaction(command.txnid_most_bits, command.txnid_least_bits)
            command = command._replace(txnid_most_bits=most, txnid_least_bits=least)
        try:
            unpacked = unpack_payload(command.payload)
        except (ChecksumMismatch, FrameError):
            return command
        metadata = unpacked.metadata
        delay = metadata.deliver_at_time
        if not (in_transaction or delay):
            return command
        if in_transaction:
            metadata.txnid_most_bits, metadata.txnid_least_bits = most, least
        if delay:
            metadata.deliver_at_time = self._broker.wall_time() + delay
        payload = b"".join(pack_payload(encode_message_metadata(metadata), unpacked.payload))
        return command._replace(payload=payload)

    def _replace(self, message: Any) -> None:
        """Replace symbols and the namespace in a protobuf message."""
        names = {field.name for field, _ in message.ListFields()}
        if "ledgerId" in names:
            message.ledgerId, message.entryId = self._position(message.ledgerId, message.entryId)
        if "txnid_most_bits" in names:
            message.txnid_most_bits, message.txnid_least_bits = self._transaction(
                message.txnid_most_bits, message.txnid_least_bits
            )
        if "topics_hash" in names and message.topics_hash == LAST_HASH:
            message.topics_hash = self._last_hash
        for field, value in message.ListFields():
            if field.message_type is not None:
                for each in value if field.is_repeated else [value]:
                    self._replace(each)
            elif isinstance(value, str):
                setattr(message, field.name, self._local(value))
            elif field.is_repeated and field.type == field.TYPE_STRING:
                local = [self._local(each) for each in value]
                del value[:]
                value.extend(local)

    def _local(self, value: Any) -> Any:
        return value.replace(NAMESPACE, self._namespace) if isinstance(value, str) else value

    def _position(self, ledger_id: int, entry_id: int) -> tuple[int, int]:
        if not SYMBOL <= ledger_id < SYMBOL << 1:
            return ledger_id, entry_id
        receipt = self._receipts.get(ledger_id - SYMBOL)
        if receipt is None or receipt[0] in (-1, (1 << 64) - 1):
            return UNKNOWN_LEDGER, entry_id
        return receipt[0], receipt[1] + entry_id

    def _transaction(self, most: int | None, least: int | None) -> tuple[int | None, int | None]:
        if most is None or not SYMBOL <= most < SYMBOL << 1:
            return most, least
        index = most - SYMBOL
        return self._transactions[index] if index < len(self._transactions) else (0, UNKNOWN_LEDGER)
