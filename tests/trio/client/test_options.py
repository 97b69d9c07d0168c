"""The options are those of the core's specs: none forgotten, none invented."""

from dataclasses import fields

import pytest

from pulsar_sansio import (
    BrokerConfig,
    ClientConfig,
    CompressionType,
    ConsumerSpec,
    InitialPosition,
    InvalidConfiguration,
    ProducerSpec,
    SubscriptionType,
)
from pulsar_trio.broker.options import BrokerOptions, broker_config
from pulsar_trio.client.options import (
    ClientOptions,
    ConsumerOptions,
    ProducerOptions,
    client_config,
    consumer_spec,
    producer_spec,
    word,
)

ADAPTERS_OWN = {"when_full", "tls", "authentication"}
"""The machine never waits, reads no file and holds no secret."""

MACHINES_OWN = {"authentication_method"}
"""The adapter derives it from `authentication`."""


@pytest.mark.parametrize(
    ("options", "spec", "positional"),
    [
        (ClientOptions, ClientConfig, {"service_url"}),
        (ProducerOptions, ProducerSpec, {"topic", "schema"}),
        (ConsumerOptions, ConsumerSpec, {"topic", "subscription", "subscription_type", "schema"}),
        (BrokerOptions, BrokerConfig, {"authentication"}),
    ],
)
def test_options_and_specs_agree(options: type, spec: type, positional: set[str]) -> None:
    known = set(options.__annotations__) - ADAPTERS_OWN
    assert known | positional == {field.name for field in fields(spec)} - MACHINES_OWN


def test_nothing_given_means_the_specs_defaults() -> None:
    assert client_config("pulsar://a", {}) == ClientConfig("pulsar://a")
    assert producer_spec("t", {}) == ProducerSpec("t")
    assert consumer_spec("t", "s", {}) == ConsumerSpec("t", "s")
    unlimited = {"max_stored_bytes": 0}  # by default half of the machine's memory
    assert broker_config("pulsar://a:1", unlimited) == BrokerConfig(service_url="pulsar://a:1")
    assert broker_config("pulsar://a:1", {"service_url": "pulsar://b:2"}).service_url == "pulsar://b:2"


def test_words_stand_for_enums() -> None:
    spec = consumer_spec("t", "s", {"initial_position": "earliest"}, "key_shared")
    assert spec.subscription_type is SubscriptionType.KEY_SHARED
    assert spec.initial_position is InitialPosition.EARLIEST
    assert producer_spec("t", {"compression": "zstd"}).compression is CompressionType.ZSTD
    assert producer_spec("t", {"compression": CompressionType.LZ4}).compression is CompressionType.LZ4


@pytest.mark.parametrize("given", ["LZ4", "gzip", 1, None])
def test_another_word_is_refused_with_the_list_of_right_ones(given: object) -> None:
    with pytest.raises(
        InvalidConfiguration, match="compression: one of 'none', 'lz4', 'zlib', 'zstd', 'snappy', not"
    ):
        word("compression", given, CompressionType)
