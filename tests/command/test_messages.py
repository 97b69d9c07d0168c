"""`produce` and `consume`: keys, properties, and where consuming begins."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from pulsar_sansio import MessageId, TopicMessageId
from pulsar_trio_command.options.positions import place_in, position
from tests.command.test_cli import BrokerThread, Command, Done, broker, command, one_line

__all__ = ["broker", "command"]


def produce(run: Command, at: BrokerThread, *arguments: str, given: bytes = b"") -> Done:
    return run("produce", "t", "--url", at.url, *arguments, given=given)


def consume(run: Command, at: BrokerThread, count: int, *arguments: str, name: str = "s") -> Done:
    options = ("--subscription", name, "--url", at.url, "--count", str(count))
    return run("consume", "t", *options, *arguments)


def values(done: Done) -> list[str]:
    return [line.partition(" ")[2] for line in done.out.splitlines()]


# --- produce ------------------------------------------------------------------------------------------------


def test_a_key_and_properties_for_every_message(broker: BrokerThread, command: Command) -> None:
    options = ("--key", "colour", "--property", "a=1", "--property", "b=x=y", "--property", "empty=")
    assert produce(command, broker, *options, given=b"red\nblue\n").code == 0
    done = produce(command, broker, *options, "--count", "1", "--size", "1")
    assert done.code == 0
    assert values(consume(command, broker, 3)) == [
        "colour: red {a=1, b=x=y, empty=}",
        "colour: blue {a=1, b=x=y, empty=}",
        "colour: 0 {a=1, b=x=y, empty=}",
    ]
    messages = consume(command, broker, 3, "--json", name="again").objects
    assert {message["key"] for message in messages} == {"colour"}
    assert messages[0]["properties"] == {"a": "1", "b": "x=y", "empty": ""}


def test_a_key_on_every_line(broker: BrokerThread, command: Command) -> None:
    lines = b"k1:red\nk2:blue:green\n:no key but an empty one\nk3:\n"
    done = produce(command, broker, "--key-separator", ":", "--property", "a=1", given=lines)
    assert "produced 4 messages" in done.out
    assert values(consume(command, broker, 4)) == [
        "k1: red {a=1}",
        "k2: blue:green {a=1}",
        ": no key but an empty one {a=1}",
        "k3:  {a=1}",
    ]


def test_keys_in_a_table_with_tabs(broker: BrokerThread, command: Command) -> None:
    assert produce(command, broker, "--key-separator", "\\t", given="grün\tja\n".encode()).code == 0
    (message,) = consume(command, broker, 1, "--json").objects
    assert (message["key"], message["value"]) == ("grün", "ja")


@pytest.mark.parametrize("rate", [(), ("--rate", "100000")])
@pytest.mark.parametrize(
    ("line", "why"), [(b"none", "there is no '=' in it"), (b"\xff=1", "its key is not UTF-8 text")]
)
def test_a_line_without_a_key_is_named(
    line: bytes, why: str, rate: tuple[str, ...], broker: BrokerThread, command: Command
) -> None:
    done = produce(command, broker, "--key-separator", "=", *rate, given=b"a=1\nb=2\n" + line + b"\nc=3\n")
    assert done.code == 1
    told = one_line(done.err)
    assert f"line 3 of standard input has no key: {why} (hint: the 2 lines before it were sent)" in told
    assert values(consume(command, broker, 2)) == ["a: 1", "b: 2"]
    broker.call(lambda running: _assert_backlog(running.stats("t"), 0))


def _assert_backlog(stats: dict[str, Any], count: int, name: str = "s") -> None:
    assert stats["subscriptions"][name]["msgBacklog"] == count


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--property", "a"], "NAME=VALUE with a name that is not empty, not 'a'"),
        (["--property", "=a"], "NAME=VALUE with a name that is not empty, not '=a'"),
        (["--key-separator", ""], "a text of at least one character, not ''"),
        (["--key-separator", ":", "--key", "k"], "argument --key: not allowed with argument --key-separator"),
        (["--key-separator", ":", "--count", "1"], "not allowed with argument"),
    ],
)
def test_wrong_options_of_produce(arguments: list[str], told: str, command: Command) -> None:
    done = command("produce", "t", *arguments)
    assert done.code == 2
    assert told in one_line(done.err)
    assert "(hint: " in done.err


# --- consume ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("0", 0),
        ("1767225600000", 1_767_225_600_000),
        ("7:42", MessageId(7, 42)),
        ("7:42:-1", MessageId(7, 42)),
        ("7:42:3", MessageId(7, 42, 3)),
        ("7:42:-1:5", MessageId(7, 42, -1, 5)),
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T01:00+01:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01 12:30", datetime(2026, 1, 1, 12, 30).astimezone()),
        ("2026-01-01", datetime(2026, 1, 1).astimezone()),
    ],
)
def test_places(text: str, place: object) -> None:
    assert position(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "-1",
        "1.5",
        "7:",
        "7:x",
        "7:1:-2",
        "7:42:3:5:6",
        "2026-13-01",
        "9" * 30,
        "9" * 30 + ":1",
        "٣",
    ],
)
def test_what_is_no_place_is_one_line(text: str, command: Command) -> None:
    done = command("consume", "t", "--subscription", "s", f"--from={text}")
    assert done.code == 2
    assert f"or 7:42), not {text!r}" in one_line(done.err)


def test_an_id_that_names_a_partition_is_one_of_the_topic() -> None:
    assert place_in("t", MessageId(7, 42, 3)) == TopicMessageId("t", MessageId(7, 42, 3))
    assert place_in("t", MessageId(7, 42)) == MessageId(7, 42)
    assert place_in("t", "latest") == "latest"


@pytest.fixture
def ids(broker: BrokerThread, command: Command) -> list[str]:
    """Ids of four messages: two by themselves, two in a batch."""
    for lines in (b"1\n", b"2\n", b"3\n4\n"):
        assert produce(command, broker, given=lines).code == 0
    return [line.split(" ")[0] for line in consume(command, broker, 4, name="look").out.splitlines()]


def test_from_a_message_that_was_printed(broker: BrokerThread, command: Command, ids: list[str]) -> None:
    """The printed message comes first, also out of a batch, and whatever was acknowledged before."""
    for number, printed in enumerate(ids):
        expected = [str(value) for value in range(number + 1, 5)]
        assert values(consume(command, broker, len(expected), "--from", printed)) == expected
    assert values(consume(command, broker, 2, "--from", re.sub(r":-1.*", "", ids[2]))) == ["3", "4"]


def test_from_the_ends_and_from_a_time(broker: BrokerThread, command: Command, ids: list[str]) -> None:
    assert values(consume(command, broker, 4, "--from", "earliest")) == ["1", "2", "3", "4"]
    assert values(consume(command, broker, 4, "--from", "earliest")) == ["1", "2", "3", "4"]
    messages = consume(command, broker, 4, "--from", "0", "--json").objects
    assert [message["value"] for message in messages] == ["1", "2", "3", "4"]
    when = datetime.fromtimestamp(messages[0]["publish_time"] / 1000, UTC).isoformat()
    assert values(consume(command, broker, 4, "--from", when)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["look", "new"])
def test_from_latest(name: str, broker: BrokerThread, command: Command, ids: list[str]) -> None:
    """Nothing of what is there comes, to an old subscription and to a new one, and the topic has ended."""
    assert produce(command, broker, given=b"5\n").code == 0
    broker.call(lambda running: running.terminate("t") and None)
    options = ("--subscription", name, "--url", broker.url, "--kind", "exclusive")
    done = command("consume", "t", *options, "--from", "latest")
    assert (done.code, done.out) == (0, "")
    assert "consumed 0 messages" in done.err
    broker.call(lambda running: _assert_backlog(running.stats("t"), 0, name))


def test_from_a_message_of_a_partition(broker: BrokerThread, command: Command) -> None:
    broker.call(lambda running: running.create_partitioned_topic("t", 1))
    for lines in (b"1\n", b"2\n"):
        assert produce(command, broker, given=lines).code == 0
    printed = [line.split(" ")[0] for line in consume(command, broker, 2).out.splitlines()]
    assert printed[1].split(":")[2] == "0"
    assert values(consume(command, broker, 1, "--from", printed[1])) == ["2"]


def test_a_message_of_no_partition_is_one_line(broker: BrokerThread, command: Command) -> None:
    assert produce(command, broker, given=b"1\n").code == 0
    done = consume(command, broker, 1, "--from", "0:0:7")
    assert done.code == 1
    assert "partition" in one_line(done.err)
