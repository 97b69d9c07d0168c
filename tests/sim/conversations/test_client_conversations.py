"""Clients that answer a raw broker otherwise than the rules say."""

from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.acknowledging.ack_timeout import AcknowledgementTimeout
from pulsar_sansio.client.acknowledging.redelivery import NegativeAcknowledgements
from pulsar_sansio.client.arrival.chunk_assembly import ChunkAssembly
from pulsar_sansio.client.delivery.metered_queue import MeteredQueue
from pulsar_sansio.client.partitions.partition_producer import Partition
from pulsar_sansio.client.partitions.partitioned_producer import PartitionedProducer
from pulsar_sansio.client.positions.last_message import LastMessage
from pulsar_sansio.client.producing.key_batches import KeyBatches
from pulsar_sansio.client.producing.open_batch import OpenBatch
from pulsar_sim.conversations import client_conversations
from pulsar_sim.conversations.client_conversations import CONVERSATIONS, hold_client_conversations
from pulsar_sim.conversations.raw_broker import RawBroker
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.randomness import Streams

SEEDS = range(40)


def hold(name: str, seed: int) -> None:
    conversation = CONVERSATIONS[name]
    conversation(RawBroker(10**15 + seed, seed), Streams(seed).stream(name)).hold()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_pass(name: str) -> None:
    """INV-A3: a right client gives the answers."""
    for seed in SEEDS:
        hold(name, seed)


def test_some_worlds_hold_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-A3"""
    held: list[str] = []

    class Held:
        def __init__(self, name: str) -> None:
            self.hold = lambda: held.append(name)

    names = ["one", "other"]
    kinds: dict[str, Any] = {name: lambda raw, stream, name=name: Held(name) for name in names}
    monkeypatch.setattr(client_conversations, "CONVERSATIONS", kinds)
    for seed in range(100):
        hold_client_conversations(Streams(seed), 0)
    assert held == names * (len(held) // 2)
    assert 20 < len(held) < 80


_EXPIRY = AcknowledgementTimeout._expiry
_MOMENT = NegativeAcknowledgements._moment
_BEGIN = ChunkAssembly._begin


def _forget_others(self: ChunkAssembly, uuid: Any, before: Any, *more: Any) -> Any:
    if before is not None:
        before.others.clear()
    return _BEGIN(self, uuid, before, *more)


def _is_full(self: KeyBatches) -> bool:
    return self.count >= self._max_messages


_LIMIT = OpenBatch.limit


def _limit_late(self: OpenBatch, max_message_size: int) -> None:
    _LIMIT(self, max_message_size)
    self._max_messages += 1


def _nothing(self: Any, *_: Any) -> None:
    """Do nothing, in place of a method."""


_CANCEL = LastMessage._cancel


def _forget_deadline(self: LastMessage, question: Any) -> None:
    """Let a question that is asked on another connection have all the time once more."""
    _CANCEL(self, question)
    question.deadline += 10**9


WRONG: dict[str, tuple[str, Any, str, Any]] = {
    "a timeout that is a moment early": (
        "redelivery",
        AcknowledgementTimeout,
        "_expiry",
        lambda self, count: _EXPIRY(self, count) - 1,
    ),
    "a refusal that is a moment late": (
        "redelivery",
        NegativeAcknowledgements,
        "_moment",
        lambda self, *more: _MOMENT(self, *more) + 1,
    ),
    "a timer that goes on": ("redelivery", AckGrouping, "_stop_timer", lambda self: None),
    "forgotten chunks": ("chunks", ChunkAssembly, "_begin", _forget_others),
    "batches of keys that ignore their bytes": ("sending", KeyBatches, "full", property(_is_full)),
    "a batch of one message more": ("sending", OpenBatch, "limit", _limit_late),
    "a batch receive that ignores bytes": ("batch receives", MeteredQueue, "weigh", lambda self, size: None),
    "a question that is asked anew": ("questions", LastMessage, "_cancel", _forget_deadline),
    "no room when a partition ends": ("partitions", PartitionedProducer, "on_partition_writable", _nothing),
    "tickets that stay apart": ("partitions", Partition, "continue_at", _nothing),
    "a refusal that is forgotten": (
        "receipts of acknowledgements",
        AckGrouping,
        "_fail",
        lambda self, flush, error: setattr(self, "_refusal", None),
    ),
    "a broken message is kept for long": ("chunks", ChunkAssembly, "_expire", lambda self: None),
}


@pytest.mark.parametrize("what", WRONG)
def test_another_answer_is_noticed(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """INV-A3"""
    name, machine, method, wrong = WRONG[what]
    monkeypatch.setattr(machine, method, wrong)
    with pytest.raises(ViolationError, match="a client with a raw broker"):
        for seed in SEEDS:
            hold(name, seed)
