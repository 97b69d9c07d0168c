"""The checks of options: the limits themselves pass, and what is beyond them is named."""

from typing import Any

import pytest

from pulsar_sansio.model.config import checks
from pulsar_sansio.model.config.checks import MAX_DURATION
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import MessageId


@pytest.mark.parametrize("value", [3, 4, 5])
def test_whole_numbers_within_the_limits_pass(value: int) -> None:
    checks.integer("count", value, 3, 5)


@pytest.mark.parametrize("value", [2, 6, 4.0, "4", None, True])
def test_other_values_than_whole_numbers_within_the_limits_are_refused(value: object) -> None:
    with pytest.raises(InvalidConfiguration, match="count: a whole number from 1 to 5") as raised:
        checks.integer("count", 0 if value == 2 else value, 1, 5)
    assert str(raised.value).endswith(repr(0 if value == 2 else value))


@pytest.mark.parametrize("value", [0, 0.0, 1.5, MAX_DURATION])
def test_durations_are_seconds_up_to_ten_years(value: float) -> None:
    checks.duration("wait", value)


@pytest.mark.parametrize("value", [-0.001, MAX_DURATION + 1, float("nan"), float("inf"), "1", True, None])
def test_other_durations_are_refused(value: object) -> None:
    with pytest.raises(InvalidConfiguration, match="wait: seconds from 0 to"):
        checks.duration("wait", value)


def test_seconds_become_whole_nanoseconds() -> None:
    assert checks.nanoseconds_of(0.1 + 0.2) == 300_000_000
    assert checks.nanoseconds_of(1e-9) == 1
    assert isinstance(checks.nanoseconds_of(2.0), int)


@pytest.mark.parametrize("value", ["", " ", "\t", 7, b"x", "half \ud800"])
def test_a_text_must_have_a_character_and_be_whole(value: object) -> None:
    checks.optional_text("name", None)
    checks.optional_text("name", " x ")
    with pytest.raises(InvalidConfiguration, match="name: text that is not blank"):
        checks.optional_text("name", value)


def test_properties_map_text_to_text() -> None:
    checks.text_mapping("properties", {"a": "b"})
    for wrong in ({"a": 1}, {1: "a"}, [("a", "b")]):
        with pytest.raises(InvalidConfiguration, match="properties: a mapping of text to text"):
            checks.text_mapping("properties", wrong)


def test_only_a_messages_properties_may_have_half_a_character() -> None:
    """A message keeps text that is not UTF-8 as the other client wrote it."""
    strange = {"a": "\udcff"}
    checks.properties_of_message("properties", strange)
    with pytest.raises(InvalidConfiguration, match="half a surrogate pair"):
        checks.text_mapping("properties", strange)


def test_a_message_id_is_one() -> None:
    checks.message_id("start", MessageId(1, 2))
    with pytest.raises(InvalidConfiguration, match="start: a message id"):
        checks.message_id("start", (1, 2, -1, -1, 0))


@pytest.mark.parametrize("hosts", [(), ("a",), (".example.com",), ("10.0.0.1", "::1", "fe80::1")])
def test_hosts_are_names_suffixes_and_addresses(hosts: tuple[str, ...]) -> None:
    checks.host_names("broker_hosts", hosts)


@pytest.mark.parametrize(
    "hosts", [["a"], "a", ("",), (".",), ("a:6650",), ("pulsar://a",), ("a b",), ("a,b",), ("[::1]",), (7,)]
)
def test_a_host_has_no_scheme_no_port_and_no_blank(hosts: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="broker_hosts: a tuple of host names"):
        checks.host_names("broker_hosts", hosts)
