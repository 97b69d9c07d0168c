"""Scenes for tests of transactions: a scripted client's commands in a transaction."""

from typing import Any

from pulsar_sansio.wire import (
    MessageCommand,
    MessageMetadata,
    Send,
    encode_ack,
    encode_message_metadata,
    pack_payload,
    proto,
)
from tests.broker.peer import TOPIC, WALL, Peer, Type


class InTransaction:
    """A transaction of a peer. Its commands expect that the broker accepts them."""

    def __init__(self, peer: Peer, timeout: int = 60_000, coordinator: int = 0) -> None:
        self.peer = peer
        answer = ask(
            peer,
            Type.NEW_TXN,
            proto.CommandNewTxn(txn_ttl_millis=timeout, tc_id=coordinator),
            Type.NEW_TXN_RESPONSE,
        )
        assert not answer.HasField("error"), answer
        self.bits = {"txnid_most_bits": answer.txnid_most_bits, "txnid_least_bits": answer.txnid_least_bits}

    def join_topic(self, topic: str = TOPIC) -> Any:
        """Return the answer to ADD_PARTITION_TO_TXN."""
        command = proto.CommandAddPartitionToTxn(partitions=[topic], **self.bits)
        return ask(self.peer, Type.ADD_PARTITION_TO_TXN, command, Type.ADD_PARTITION_TO_TXN_RESPONSE)

    def join_subscription(self, topic: str = TOPIC, subscription: str = "s") -> Any:
        """Return the answer to ADD_SUBSCRIPTION_TO_TXN."""
        command = proto.CommandAddSubscriptionToTxn(**self.bits)
        command.subscription.add(topic=topic, subscription=subscription)
        return ask(self.peer, Type.ADD_SUBSCRIPTION_TO_TXN, command, Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE)

    def send(self, payload: bytes, sequence_id: int = 0, producer_id: int = 0, **metadata: Any) -> None:
        """Send one message; its receipt is left in the inbox."""
        header = MessageMetadata("p", sequence_id, WALL, **self.bits, **metadata)
        packed = b"".join(pack_payload(encode_message_metadata(header), payload))
        self.peer.feed(Send(producer_id, sequence_id, **self.bits, payload=packed).encode())

    def publish(self, payload: bytes, sequence_id: int = 0, producer_id: int = 0) -> None:
        """Join the topic, send one message, and expect its receipt."""
        assert not self.join_topic().HasField("error")
        self.send(payload, sequence_id, producer_id)
        self.peer.expect(Type.SEND_RECEIPT)

    def ack(self, *messages: Any, kind: int = 0, consumer_id: int = 0) -> str:
        """Acknowledge messages, or (ledger, entry, ack set); return the error's name, or an empty text."""
        ids = [
            (each.ledger_id, each.entry_id, None) if isinstance(each, MessageCommand) else each
            for each in messages
        ]
        request_id = self.peer.request()
        self.peer.feed(encode_ack(consumer_id, kind, ids, request_id=request_id, **self.bits))
        return error_of(take_answer(self.peer, Type.ACK_RESPONSE, request_id))

    def end(self, action: "proto.TxnAction" = proto.COMMIT) -> str:
        """Commit or abort; return the error's name, or an empty text."""
        command = proto.CommandEndTxn(txn_action=action, **self.bits)
        return error_of(ask(self.peer, Type.END_TXN, command, Type.END_TXN_RESPONSE))

    def abort(self) -> str:
        return self.end(proto.ABORT)


def error_of(answer: Any) -> str:
    """Return the name of the error in an answer, or an empty text."""
    return proto.ServerError.Name(answer.error) if answer.HasField("error") else ""


def ask(peer: Peer, number: int, command: Any, answer: int) -> Any:
    """Send a request and return its answer; frames that came with it stay in the inbox."""
    command.request_id = peer.request()
    peer.send(number, command)
    return take_answer(peer, answer, command.request_id)


def take_answer(peer: Peer, number: int, request_id: int) -> Any:
    """Return the answer to a request, wherever it is in the inbox."""
    for frame in list(peer.inbox):
        if frame[0] == number and frame[1].request_id == request_id:
            peer.inbox.remove(frame)
            return frame[1]
    raise AssertionError(f"no {Type.Name(number)} for request {request_id}: {peer.inbox}, {peer.closed}")
