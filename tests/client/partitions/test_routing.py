"""Routing of messages to the partitions of a topic."""

from typing import Any

import pytest

from pulsar_sansio.client.partitions.routing import (
    REMEMBERED_KEYS,
    Router,
    boost_hash,
    hash_key,
    java_string_hash,
    murmur3_32_hash,
)
from pulsar_sansio.core.rng import Rng
from pulsar_sansio.model.config import (
    BatchingPolicy,
    HashingScheme,
    OutgoingMessage,
    ProducerSpec,
    RoutingMode,
)
from pulsar_sansio.model.errors import InvalidMessage

MILLISECOND = 1_000_000


def router(partitions: int = 4, seed: int = 1, **spec: Any) -> Router:
    return Router(ProducerSpec("t", **{"batching": None, **spec}), partitions, Rng(seed))


def keyed(key: str | bytes) -> OutgoingMessage:
    return OutgoingMessage(b"", key=key)


# --- hashes ------------------------------------------------------------------------------------------

MURMUR3_AND_JAVA = [
    ("", 0, 0),
    ("a", 1009084850, 97),
    ("key-1", 414258592, 101943363),
    ("hello", 613153351, 99162322),
    ("pulsar", 5536699, 1170364285),
    ("你好", 337357348, 652829),
    ("😀", 1051995898, 1772899),
]
"""Computed on a JVM with the libraries of the Java client. The last one is two UTF-16 units."""

BOOST = [
    ("", 2133126054),
    ("a", 2135870748),
    ("ab", 133003382),
    ("abc", 1074445565),
    ("key-0", 1719626226),
    ("key-1", 1703803929),
    ("key-2", 582698356),
    ("key-3", 1061213702),
    ("key-4", 1981915432),
    ("key-5", 1352065234),
    ("key-6", 112589589),
    ("key-7", 2024042234),
    ("key-8", 1924859393),
    ("hello", 1742291129),
    ("pulsar", 878747860),
    ("12345678", 1632524903),
    ("customer-1234", 1591490052),
    ("0123456789abcdef", 224394604),
    ("你好", 1527280124),
    ("😀", 683164379),
]
"""Compared with compiled Boost code; those of key-0 to key-8 also by where the C++ client 4.2 put them."""

SEEN: dict[HashingScheme, tuple[int, list[int]]] = {
    HashingScheme.JAVA_STRING: (3, [2, 0, 1, 2, 0, 1]),
    HashingScheme.MURMUR3_32: (4, [3, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 0]),
    HashingScheme.BOOST: (3, [0, 0, 1, 2, 1, 1, 0, 2, 2]),
}
"""Scheme -> number of partitions, and the partition of `key-0`, `key-1`, … as recorded: java-partitioned,
java-partitioned-murmur3, cpp-partitioned."""


@pytest.mark.parametrize(("key", "murmur3", "java"), MURMUR3_AND_JAVA)
def test_the_hashes_of_the_java_client(key: str, murmur3: int, java: int) -> None:
    """Rules ROUTE-08 and GAP-09."""
    assert murmur3_32_hash(key) == murmur3
    assert java_string_hash(key) == java == hash_key(HashingScheme.JAVA_STRING, key)


@pytest.mark.parametrize(("key", "expected"), BOOST)
def test_the_hash_of_the_cpp_client(key: str, expected: int) -> None:
    """Rules ROUTE-08 and GAP-09."""
    assert boost_hash(key) == expected


@pytest.mark.parametrize("scheme", list(HashingScheme))
def test_keys_go_where_the_recorded_clients_put_them(scheme: HashingScheme) -> None:
    """Rule ROUTE-02."""
    partitions, expected = SEEN[scheme]
    for routing in RoutingMode:
        chooser = router(partitions, hashing=scheme, routing=routing)
        found = [chooser.choose(0, keyed(f"key-{n}"), partitions) for n in range(len(expected))]
        assert found == expected


def test_a_key_of_bytes_goes_by_its_base64_text() -> None:
    assert keyed(b"\x00\xff").key == "AP8="
    for scheme in HashingScheme:
        chooser = router(7, hashing=scheme)
        assert chooser.choose(0, keyed(b"\x00\xff"), 7) == chooser.choose(0, keyed("AP8="), 7)


def test_an_ordering_key_does_not_route() -> None:
    """The ordering key orders within a subscription; as in the Java client, the partition is the key's."""
    message = OutgoingMessage(b"", key="key-0", ordering_key=b"other")
    assert router(3).choose(0, message, 3) == router(3).choose(0, keyed("key-0"), 3)


def test_many_keys_are_not_kept_and_go_where_they_went() -> None:
    chooser = router(5)
    keys = [f"key-{n}" for n in range(REMEMBERED_KEYS + 10)] + ["long" * 100]
    first = [chooser.choose(0, keyed(key), 5) for key in keys]
    assert [chooser.choose(0, keyed(key), 5) for key in keys] == first
    assert len(chooser._hashes) <= REMEMBERED_KEYS


def test_a_key_that_is_no_text_is_refused() -> None:
    for scheme in (HashingScheme.MURMUR3_32, HashingScheme.BOOST):
        with pytest.raises(InvalidMessage, match="key"):
            router(hashing=scheme).choose(0, keyed("\ud800"), 4)


# --- without a key -------------------------------------------------------------------------------------


def test_round_robin_without_batching_counts_what_was_taken() -> None:
    """Rule ROUTE-04: from the start index on; asking moves nothing, a keyed message neither."""
    chooser = router(3)
    first = chooser.choose(0, b"", 3)
    assert chooser.choose(99, b"", 3) == first
    chooser.advance(keyed("a"))
    assert chooser.choose(0, OutgoingMessage(b""), 3) == first
    taken = []
    for _ in range(6):
        taken.append(chooser.choose(0, b"", 3))
        chooser.advance(b"")
    assert taken == [(first + n) % 3 for n in range(6)]
    assert {router(3, seed=seed).choose(0, b"", 3) for seed in range(20)} == {0, 1, 2}


def test_round_robin_with_batching_stays_for_ten_delays() -> None:
    """Rule ROUTE-03: partition = (now div window + start) mod n."""
    chooser = router(3, batching=BatchingPolicy(max_delay=0.005))
    at = [chooser.choose(now * MILLISECOND, b"", 3) for now in (0, 25, 49, 50, 99, 100, 149, 150)]
    first = at[0]
    assert at == [(first + n) % 3 for n in (0, 0, 0, 1, 1, 2, 2, 0)]
    chooser.advance(b"")
    assert chooser.choose(0, b"", 3) == first


def test_a_window_is_at_least_a_millisecond() -> None:
    """Rule ROUTE-09: no division by zero for a batching delay of nothing."""
    chooser = router(2, batching=BatchingPolicy(max_delay=0.0))
    first = chooser.choose(0, b"", 2)
    assert chooser.choose(MILLISECOND - 1, b"", 2) == first
    assert chooser.choose(MILLISECOND, b"", 2) != first


def test_more_partitions_are_used_as_soon_as_they_are_known() -> None:
    chooser = router(1)
    found = set()
    for _ in range(4):
        found.add(chooser.choose(0, b"", 4))
        chooser.advance(b"")
    assert found == {0, 1, 2, 3}


def test_single_partition_is_drawn_once() -> None:
    """Rules ROUTE-05 and ROUTE-01."""
    chooser = router(5, routing=RoutingMode.SINGLE_PARTITION)
    found = set()
    for now in range(10):
        found.add(chooser.choose(now * MILLISECOND, b"", 5 + now))
        chooser.advance(b"")
    assert len(found) == 1
    drawn = {
        router(3, seed=seed, routing=RoutingMode.SINGLE_PARTITION).choose(0, b"", 3) for seed in range(20)
    }
    assert drawn == {0, 1, 2}


# --- the application's own -------------------------------------------------------------------------------


def test_a_function_is_given_the_message_and_the_number() -> None:
    """Rule ROUTE-06."""
    asked: list[tuple[bytes | None, str | None, int]] = []

    def choose(message: OutgoingMessage, partitions: int) -> int:
        asked.append((message.payload, message.key, partitions))
        return partitions - 1

    chooser = router(routing=choose)
    assert chooser.choose(0, b"bare", 4) == 3
    assert chooser.choose(0, OutgoingMessage(b"m", key="k"), 6) == 5
    assert asked == [(b"bare", None, 4), (b"m", "k", 6)]


@pytest.mark.parametrize("wrong", [-1, 4, 2**40, 1.0, "0", None, True])
def test_an_index_that_is_none_is_refused_and_quoted(wrong: Any) -> None:
    """Rule ROUTE-07."""
    with pytest.raises(InvalidMessage, match=rf"gave {wrong!r}; partitions are numbered from 0 to 3"):
        router(routing=lambda message, partitions: wrong).choose(0, b"", 4)


def test_what_the_function_raises_is_the_cause() -> None:
    def fails(message: OutgoingMessage, partitions: int) -> int:
        raise KeyError("unknown customer")

    with pytest.raises(InvalidMessage, match="unknown customer") as caught:
        router(routing=fails).choose(0, b"", 4)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("wrong", ["text", 7, None])
def test_what_is_no_message_is_refused(wrong: Any) -> None:
    for routing in (RoutingMode.ROUND_ROBIN, lambda message, partitions: 0):
        with pytest.raises(InvalidMessage, match="a message is bytes"):
            router(routing=routing).choose(0, wrong, 4)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"batching": BatchingPolicy(max_delay=0.001)},
        {"routing": RoutingMode.SINGLE_PARTITION},
    ],
    ids=["by turns", "in batches", "single"],
)
def test_the_partition_to_open_first_is_that_of_the_first_message(spec: dict[str, Any]) -> None:
    """Where the application's function decides, it is the first partition."""
    firsts = set()
    for seed in range(20):
        one = router(seed=seed, **spec)
        firsts.add(one.first(0, 4))
        assert one.first(0, 4) == one.choose(0, b"", 4)
    assert firsts == {0, 1, 2, 3}
    assert router(routing=lambda message, partitions: 3).first(0, 4) == 0
