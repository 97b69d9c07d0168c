"""`ClientConfig` checks its options: an error names the option and the allowed values."""

import dataclasses
import pickle
from typing import Any

import pytest

from pulsar_sansio.model.config import (
    ClientConfig,
)
from pulsar_sansio.model.errors import InvalidConfiguration

URL = "pulsar://localhost"
BAD: list[tuple[Any, dict[str, Any], str]] = [
    (ClientConfig, {"service_url": "x"}, "service URL"),
    (ClientConfig, {"service_url": URL, "operation_timeout": 0}, "operation_timeout"),
    (ClientConfig, {"service_url": URL, "keepalive_interval": float("nan")}, "keepalive_interval"),
    (ClientConfig, {"service_url": URL, "connect_timeout": "10"}, "connect_timeout"),
    (ClientConfig, {"service_url": URL, "connections_per_broker": 0}, "connections_per_broker"),  # POOL-03
    (ClientConfig, {"service_url": URL, "max_lookup_redirects": -1}, "max_lookup_redirects"),
    (ClientConfig, {"service_url": URL, "initial_backoff": 2.0, "max_backoff": 1.0}, "max_backoff"),
    (ClientConfig, {"service_url": URL, "listener_name": " "}, "listener_name"),
    (ClientConfig, {"service_url": URL, "max_partitions": 0}, "max_partitions"),
    (ClientConfig, {"service_url": URL, "memory_limit": 0}, "memory_limit"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)


def test_it_is_frozen_and_can_be_pickled() -> None:
    """Rule CLIENT-26."""
    spec = ClientConfig(URL)
    assert pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(spec, dataclasses.fields(spec)[0].name, "y")
