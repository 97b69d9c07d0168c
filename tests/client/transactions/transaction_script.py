"""Scenes of a client with transactions: the coordinator's side of the conversation."""

from typing import Any

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import PulsarError
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import Command, Script, frame_partitions, frame_producer_success

ANSWERS = {
    Command.TC_CLIENT_CONNECT_REQUEST: (
        Command.TC_CLIENT_CONNECT_RESPONSE,
        proto.CommandTcClientConnectResponse,
    ),
    Command.NEW_TXN: (Command.NEW_TXN_RESPONSE, proto.CommandNewTxnResponse),
    Command.ADD_PARTITION_TO_TXN: (
        Command.ADD_PARTITION_TO_TXN_RESPONSE,
        proto.CommandAddPartitionToTxnResponse,
    ),
    Command.ADD_SUBSCRIPTION_TO_TXN: (
        Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        proto.CommandAddSubscriptionToTxnResponse,
    ),
    Command.END_TXN: (Command.END_TXN_RESPONSE, proto.CommandEndTxnResponse),
}
"""Command of a client -> the command that answers it, and its class."""


class TransactionScript(Script):
    """A client with `transactions`, on one link to the broker of everything."""

    def __init__(self, **config: Any) -> None:
        super().__init__(transactions=True, **config)
        self.link = -1

    def begin(
        self,
        number: int = 7,
        *,
        partitions: int = 1,
        version: int = 21,
        timeout: float = 60.0,
        exactly_once: bool = False,
    ) -> TransactionId:
        """Open the first transaction, and return its id."""
        request = self.client.begin_transaction(self.now, timeout, exactly_once=exactly_once)
        if self.link < 0:
            self.link = self.ready_link(version=version)
        asked = self.sent(self.link, Command.PARTITIONED_METADATA)
        self.feed(self.link, frame_partitions(asked.request_id, partitions))
        self.find_topic(self.link)
        if version >= 19:
            self.answer(Command.TC_CLIENT_CONNECT_REQUEST)
        return self.opened(request, number)

    def again(self, number: int) -> TransactionId:
        """Open one more transaction with a coordinator that is known."""
        return self.opened(self.client.begin_transaction(self.now), number)

    def opened(self, request: int, number: int) -> TransactionId:
        """Answer NEW_TXN."""
        asked = self.sent(self.link, Command.NEW_TXN)
        self.reply(Command.NEW_TXN, asked, txnid_least_bits=number, txnid_most_bits=asked.tc_id)
        done = self.expect_one(RequestDone)
        id_ = TransactionId(asked.tc_id, number)
        assert (done.request, done.result) == (request, id_)
        return id_

    def answer(self, kind: Command.Type, error: int | None = None, **fields: Any) -> Any:
        """Answer the one command that the client wrote, and return it."""
        asked = self.sent(self.link, kind)
        self.reply(kind, asked, error, **fields)
        return asked

    def reply(self, kind: Command.Type, asked: Any, error: int | None = None, **fields: Any) -> None:
        number, answer = ANSWERS[kind]
        if error is not None:
            fields |= {"error": error, "message": "no"}
        self.feed(self.link, encode_command(number, answer(request_id=asked.request_id, **fields)))

    def producer(self, **options: Any) -> int:
        """Open a producer on this link."""
        spec = ProducerSpec("demo", **{"batching": None, **options})
        handle = self.client.open_producer(self.now, spec)
        if self.link < 0:
            self.link = self.ready_link()
        self.check_partitions(self.link)
        self.find_topic(self.link)
        asked = self.sent(self.link, Command.PRODUCER)
        assert asked.txn_enabled
        self.feed(self.link, frame_producer_success(asked.request_id))
        self.said()
        return handle

    def commit(self, transaction: TransactionId) -> int:
        request = self.client.commit(self.now, transaction)
        self.drain()
        return request

    def done(self, request: int) -> None:
        assert self.said() == [RequestDone(request, None)]

    def failed(self, request: int) -> PulsarError:
        """Return the error of the request, which must be the only output of its kind."""
        found = [output for output in self.said() if isinstance(output, RequestFailed)]
        assert [output.request for output in found] == [request]
        return found[0].error
