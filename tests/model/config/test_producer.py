"""`ProducerSpec` and `BatchingPolicy` check their options."""

import dataclasses
import pickle
from typing import Any

import pytest

from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    ProducerSpec,
)
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName

BAD: list[tuple[Any, dict[str, Any], str]] = [
    (ProducerSpec, {"topic": "a/b"}, "topic name"),
    (ProducerSpec, {"topic": "x", "name": ""}, "name"),
    (ProducerSpec, {"topic": "x", "send_timeout": -1}, "send_timeout"),
    (ProducerSpec, {"topic": "x", "max_pending_messages": 0}, "max_pending_messages"),
    (ProducerSpec, {"topic": "x", "max_pending_messages": True}, "max_pending_messages"),
    (ProducerSpec, {"topic": "x", "batching": True}, "batching"),
    (ProducerSpec, {"topic": "x", "compression": 1}, "compression"),
    (ProducerSpec, {"topic": "x", "initial_sequence_id": 2**63}, "initial_sequence_id"),
    (ProducerSpec, {"topic": "x", "properties": {"a": 1}}, "properties"),
    (ProducerSpec, {"topic": "x", "initial_subscription": ""}, "initial_subscription"),
    (BatchingPolicy, {"max_messages": 0}, "max_messages"),
    (BatchingPolicy, {"max_bytes": 0}, "max_bytes"),
    (BatchingPolicy, {"max_delay": 61}, "max_delay"),
    (BatchingPolicy, {"by_key": "yes"}, "by_key"),
    (ProducerSpec, {"topic": "x", "initial_sequence_id": 2**63 - 1}, "initial_sequence_id"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)


def test_the_topic_is_checked_before_the_options() -> None:
    """Rule CLIENT-09."""
    with pytest.raises(InvalidTopicName):
        ProducerSpec("a/b", name="")


def test_it_is_frozen_and_can_be_pickled() -> None:
    """Rule CLIENT-26."""
    spec = ProducerSpec("x", compression=CompressionType.ZSTD)
    assert pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(spec, dataclasses.fields(spec)[0].name, "y")
