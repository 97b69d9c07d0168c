"""The texts of options as values: what each function takes, what it makes of it, and what it refuses."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pulsar_spark.errors import InvalidOption, UnsupportedTopic
from pulsar_spark.options import option_values as values
from pulsar_spark.options.option_values import ValueRefused

DEFAULT = "persistent://public/default/"

TAKEN: list[tuple[Callable[[str], Any], str, Any]] = [
    (values.text, "  a b ", "a b"),
    (values.boolean, " TRUE ", True),
    (values.boolean, "false", False),
    (values.choice("latest", "earliest"), " Latest ", "latest"),
    (values.whole(1, 5), " 5 ", 5),
    (values.whole(1, 5), "1", 1),
    (values.whole(0, 2**63), "0009", 9),
    (values.milliseconds(0, 10_000), "1500", 1.5),
    (values.service_url, " pulsar://broker ", "pulsar://broker:6650"),
    (values.topic, " t ", f"{DEFAULT}t"),
    (values.topic_to_read, "t", (f"{DEFAULT}t",)),
    (values.topics, "a, b,, a ,", (f"{DEFAULT}a", f"{DEFAULT}b")),
    (values.pattern, " t-.* ", "t-.*"),
    (values.timestamp, " 1500 ", 1500),
    (values.timestamp, "9" * 18, int("9" * 18)),
    (values.timestamp, "1970-01-01", 0),
    (values.timestamp, "1970-01-01T00:00:01.5", 1500),
    (values.timestamp, "1970-01-01T01:00:00+01:00", 0),
    (values.timestamp, "1970-01-01T00:00:01Z", 1000),
    (values.names, " a , b,", ("a", "b")),
]


@pytest.mark.parametrize(("parse", "text", "value"), TAKEN)
def test_a_text_is_a_value(parse: Callable[[str], Any], text: str, value: Any) -> None:
    found = parse(text)
    assert (found, type(found)) == (value, type(value))


REFUSED: list[tuple[Callable[[str], Any], list[str]]] = [
    (values.text, ["", "  "]),
    (values.secret, [""]),
    (values.boolean, ["", "yes", "1"]),
    (values.choice("latest", "earliest"), ["", "last"]),
    (values.whole(1, 5), ["", "0", "6", "-1", "+1", "1.0", "1_0", "٣", "1".zfill(20)]),
    (values.milliseconds(1, 5), ["0", "6", "1.5"]),
    (values.topics, ["", " , "]),
    (values.timestamp, ["", "-1", "1" * 19, "soon", "1969-12-31T23:59:59", "1970-01-01T00:00:00+01:00", "٣"]),
    (values.names, ["", ",", "a,b, a"]),
]


@pytest.mark.parametrize(("parse", "text"), [(parse, text) for parse, texts in REFUSED for text in texts])
def test_other_texts_are_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueRefused):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text", "error", "words"),
    [
        (values.service_url, "broker:6650", InvalidOption, "option service.url: "),
        (values.topic, "a/b", InvalidOption, "option topic: "),
        (values.topics, "t,a/b", InvalidOption, "option topic: "),
        (values.pattern, "(", InvalidOption, "option topicsPattern: "),
        (values.topic, "non-persistent://public/default/t", UnsupportedTopic, "allowed: persistent topics"),
        (values.pattern, "non-persistent://public/default/.*", UnsupportedTopic, "option topicsPattern: "),
    ],
)
def test_a_text_that_says_better_what_is_wrong(
    parse: Callable[[str], Any], text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        parse(text)
    assert words in str(caught.value)


def test_a_secret_is_taken_as_it_is() -> None:
    """A password may begin or end with a space."""
    found = values.secret(" a b ")
    assert found.reveal().reveal() == b" a b "
    assert repr(found) == "***"


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of this machine is nine hours ahead."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_a_time_without_a_zone_is_in_utc_on_every_machine() -> None:
    assert values.timestamp("1970-01-02") == 86_400_000
    assert values.timestamp("1970-01-02T09:00+09:00") == 86_400_000


def test_milliseconds_are_exact_seconds() -> None:
    assert math.isclose(values.milliseconds(0, 100)("1"), 0.001)
