"""Offsets: one text for one content, and what people may say instead."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio import MessageId, encode_message_id
from pulsar_spark.errors import OffsetParseError, OffsetVersionError, UnsupportedTopic
from pulsar_spark.reading.offsets import (
    NOTHING,
    AtTime,
    BehindEntry,
    OfSubscription,
    Place,
    from_json,
    parse_end,
    parse_start,
    to_json,
)

ORDERS = "persistent://public/default/orders"

positions = st.tuples(st.integers(0, 2**62), st.integers(-1, 2**62)) | st.just(NOTHING)
names = st.builds(
    lambda topic, index: (
        f"persistent://public/default/{topic}" + ("" if index < 0 else f"-partition-{index}")
    ),
    st.sampled_from(["a", "b", "orders", "a-partition-x"]),
    st.integers(-1, 12),
)
offsets = st.dictionaries(names, positions, max_size=8)


@given(offsets)
@settings(max_examples=40)
def test_what_is_written_is_read_again(content: dict[str, tuple[int, int]]) -> None:
    """Rule GAP-41."""
    assert from_json(json.loads(json.dumps(to_json(content)))) == content


@given(offsets, st.randoms())
@settings(max_examples=40)
def test_the_text_does_not_depend_on_the_order(content: dict[str, tuple[int, int]], random: object) -> None:
    items = list(content.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    text = json.dumps(to_json(dict(items)))
    assert text == json.dumps(to_json(content))
    assert text == json.dumps(to_json(from_json(json.loads(text))))
    assert text == json.dumps(json.loads(text), sort_keys=True)


def test_the_text_of_offsets() -> None:
    content = {f"{ORDERS}-partition-{index}": (812 + index, 4711) for index in (1, 0)}
    content["persistent://public/default/plain"] = NOTHING
    assert json.dumps(to_json(content)) == (
        '{"t": {"persistent://public/default/orders": {"0": [812, 4711], "1": [813, 4711]}, '
        '"persistent://public/default/plain": {"": [-1, -1]}}, "v": 1}'
    )


def test_a_checkpoint_of_another_version() -> None:
    with pytest.raises(OffsetVersionError, match="version 2 in the checkpoint; this package knows version 1"):
        from_json({"v": 2, "t": {}})
    with pytest.raises(OffsetVersionError, match="version None"):
        from_json({"orders": 5})


@pytest.mark.parametrize(
    "content", [{"v": 1}, {"v": 1, "t": {ORDERS: 5}}, {"v": 1, "t": {ORDERS: {"0": [1]}}}]
)
def test_a_checkpoint_of_another_form(content: dict[str, object]) -> None:
    with pytest.raises(OffsetParseError, match="in the checkpoint"):
        from_json(content)


def test_places_for_all_topics() -> None:
    assert parse_start("earliest").of(ORDERS) is Place.EARLIEST
    assert parse_start("latest").of(ORDERS) is Place.LATEST
    assert parse_start("subscription:s").of(ORDERS) == OfSubscription("s")
    assert parse_end("latest").of(ORDERS) is Place.LATEST


def test_places_by_topic_and_partition() -> None:
    wanted = parse_start(
        json.dumps(
            {
                "orders": {"0": [5, 6], "1": "latest", "2": {"time": "2026-01-01T00:00:00Z"}},
                "plain": {"": [7, -1]},
                "public/default/all": "latest",
            }
        )
    )
    assert wanted.of(f"{ORDERS}-partition-0") == BehindEntry((5, 6))
    assert wanted.of(f"{ORDERS}-partition-1") is Place.LATEST
    assert wanted.of(f"{ORDERS}-partition-2") == AtTime(1767225600000)
    assert wanted.of(f"{ORDERS}-partition-3") is Place.EARLIEST, "not named"
    assert wanted.of("persistent://public/default/plain") == BehindEntry((7, -1))
    assert wanted.of("persistent://public/default/all-partition-4") is Place.LATEST
    assert "persistent://public/default/all" in wanted.named()


def test_a_topic_may_be_called_as_the_offsets_are() -> None:
    wanted = parse_start(' {"t": {"0": [5, 6]}} ')
    assert wanted.of("persistent://public/default/t-partition-0") == BehindEntry((5, 6))


def test_what_was_written_down_can_be_said() -> None:
    content = {f"{ORDERS}-partition-0": (3, 4), "persistent://public/default/plain": NOTHING}
    wanted = parse_start(json.dumps(to_json(content)))
    assert {name: wanted.of(name) for name in content} == {
        name: BehindEntry(position) for name, position in content.items()
    }


@pytest.mark.parametrize("as_text", [bytes.hex, lambda data: __import__("base64").b64encode(data).decode()])
def test_message_ids_mean_whole_entries(as_text: object) -> None:
    def text(message_id: MessageId) -> str:
        assert callable(as_text)
        return json.dumps({"orders": as_text(encode_message_id(message_id))})

    assert parse_start(text(MessageId(300, 70))).of(ORDERS) == BehindEntry((300, 70))
    in_batch, last = MessageId(300, 70, -1, 3, 10), MessageId(300, 70, -1, 9, 10)
    assert parse_start(text(in_batch)).of(ORDERS) == BehindEntry((300, 69)), "its entry is read once more"
    assert parse_start(text(last)).of(ORDERS) == BehindEntry((300, 70))
    assert parse_end(text(in_batch)).of(ORDERS) == BehindEntry((300, 70))


def test_which_starts_move() -> None:
    assert not parse_start("earliest").moves
    assert not parse_start('{"orders": {"0": [1, 2]}}').moves
    assert parse_start("latest").moves
    assert parse_start('{"orders": {"time": "0"}}').moves
    assert parse_start("subscription:s").moves


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lately", "option startingOffsets: 'lately' is no place .* allowed: \"latest\""),
        ("{nothing", r"option startingOffsets: not JSON: .* column 2"),
        ('{"orders": {"0": [1, 2, 3]}}', r"startingOffsets, topic orders: \[1, 2, 3\] is no position"),
        ('{"orders": {"x": [1, 2]}}', "topic orders: 'x' is no partition"),
        ('{"a/b": [1, 2]}', "topic a/b: .* a short name is"),
        ('{"orders": 5}', "topic orders: 5 is no place"),
        ('{"orders": {"time": "soon"}}', "topic orders: .* is no place"),
        ('{"orders": [-1, 5]}', r"topic orders: \[-1, 5\] is no position"),
        ('{"orders": [9223372036854775807, 0]}', "is no position"),
        ('{"v": 2, "t": {}}', '"v":1'),
        ("subscription:", "is no place"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(OffsetParseError, match=says):
        parse_start(text)


def test_an_end_is_not_the_beginning() -> None:
    for text in ("earliest", "subscription:s"):
        with pytest.raises(OffsetParseError, match="endingOffsets"):
            parse_end(text)


def test_topics_without_positions() -> None:
    with pytest.raises(UnsupportedTopic):
        parse_start('{"non-persistent://public/default/a": [1, 2]}')
