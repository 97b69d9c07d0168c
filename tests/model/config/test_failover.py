"""Options of changing to another cluster: service URLs, times, and the headers of a request."""

from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, PulsarError, Secret
from pulsar_sansio.model.config.failover import AutoFailover, ControlledFailover
from tests.canary import CANARY

URL = "http://control:8080/cluster"


@pytest.mark.parametrize(
    "options",
    [
        {"secondaries": ["pulsar://b"]},
        {"secondaries": ()},
        {"secondaries": "pulsar://b"},
        {"secondaries": ("pulsar://b", "no url")},
        {"secondaries": ("pulsar://b",), "failover_delay": 0},
        {"secondaries": ("pulsar://b",), "switch_back_delay": -1.0},
        {"secondaries": ("pulsar://b",), "check_interval": "soon"},
    ],
)
def test_secondaries_and_times_that_cannot_be(options: dict[str, Any]) -> None:
    AutoFailover(("pulsar://b", "pulsar+ssl://c"), failover_delay=0.001)
    with pytest.raises(PulsarError):
        AutoFailover(**options)


@pytest.mark.parametrize(
    "headers", [{}, {"X-Api-Key": "a b"}, {"x_key": ""}, {"accept2": "*/*; q=0.5"}, {"A": "~!@#"}]
)
def test_headers_of_the_request(headers: dict[str, str]) -> None:
    secrets = {name: Secret(value) for name, value in headers.items()}
    assert ControlledFailover(URL, headers=headers).headers == secrets


@pytest.mark.parametrize(
    "headers",
    [
        {"": "v"},
        {"X Key": "v"},
        {"X:Key": "v"},
        {"X-Key\n": "v"},
        {"X-Schlüssel": "v"},
        {"-": "v"},
        {"X-Key": "a\r\nX-Evil: 1"},
        {"X-Key": "ü"},
        {"X-Key": " v"},
        {"X-Key": "v "},
        {"X-Key": b"v\0"},
        {1: "v"},
    ],
)
def test_what_is_no_header_is_refused_without_its_value(headers: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"failover\.headers"):
        ControlledFailover(URL, headers=headers)


def test_a_value_of_a_header_is_never_shown() -> None:
    """A header may be an API key."""
    assert CANARY not in repr(ControlledFailover(URL, headers={"X-Api-Key": CANARY}))
    with pytest.raises(InvalidConfiguration) as caught:
        ControlledFailover(URL, headers={"X-Api-Key": f" {CANARY}"})
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"url": "pulsar://control"}, {"url": ""}, {"url": URL, "check_interval": 0}]
)
def test_a_web_service_that_cannot_be_asked(options: dict[str, Any]) -> None:
    with pytest.raises(PulsarError):
        ControlledFailover(**options)
