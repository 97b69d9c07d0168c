"""`Router`: chooses the partition of a message, and the key hashes of the official clients.

The partition follows from the message's key. For a message without a key, the partition follows from the time
and the router's state. Only `advance` changes that state.

The clients agree on a key's partition as follows, for an equal number of partitions:

* `JAVA_STRING` is the default of the Java client. The C++ and Go clients have a hash of that name that agrees
  with it for ASCII keys (Go's only while the sum stays below 2^31); for other text all three differ.
* `MURMUR3_32` is the same in the Java, C++, Go and most other clients.
* `BOOST` is the default of the C++ client, and of the Python client built on it. The hash is that of 64-bit
  builds with Boost 1.82 and later; other builds choose other partitions.
"""

from collections.abc import Callable
from typing import Final

from ...core.rng import Rng
from ...model.config import (
    CustomRouter,
    HashingScheme,
    OutgoingMessage,
    ProducerSpec,
    RoutingMode,
    nanoseconds_of,
)
from ...model.errors import InvalidMessage

SWITCH_FREQUENCY = 10
"""The number of batching delays for which a batching producer stays with a partition (Java's
roundRobinRouterBatchingPartitionSwitchFrequency)."""

SHORTEST_WINDOW = 1_000_000
"""The shortest stay with a partition, in nanoseconds (rule ROUTE-09)."""

REMEMBERED_KEYS = 10_000
"""The number of cached key hashes. Computing a hash takes a microsecond or more, a cache hit a tenth."""

REMEMBERED_LENGTH = 100
"""The longest key whose hash is cached, in characters; it limits the cache to about a megabyte."""

_MASK31: Final = 0x7FFFFFFF
_MASK32: Final = 0xFFFFFFFF
_MASK64: Final = 0xFFFFFFFFFFFFFFFF


def java_string_hash(key: str) -> int:
    """Return Java's `String.hashCode`, over UTF-16 code units, without its sign."""
    h = 0
    if key.isascii():
        for unit in key.encode("ascii"):
            h = h * 31 + unit & _MASK32
    else:
        units = key.encode("utf-16-le", "surrogatepass")
        for low, high in zip(units[::2], units[1::2], strict=True):
            h = h * 31 + (high << 8 | low) & _MASK32
    return h & _MASK31


def murmur3_32_hash(key: str) -> int:
    """Return MurmurHash3 x86_32 with seed 0 over UTF-8, without the highest bit."""
    data = key.encode("utf-8", "surrogateescape")
    size = len(data)
    h = 0
    whole = size & ~3
    for position in range(0, whole, 4):
        h = (h ^ _murmur_word(data[position : position + 4])) & _MASK32
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & _MASK32
    if whole < size:
        h ^= _murmur_word(data[whole:])
    h ^= size
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK32
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK32
    return (h ^ h >> 16) & _MASK31


def _murmur_word(word: bytes) -> int:
    k = int.from_bytes(word, "little") * 0xCC9E2D51 & _MASK32
    return (k << 15 | k >> 17) * 0x1B873593 & _MASK32


_BOOST_Q: Final = 0x9E3779B97F4A7C15
_BOOST_K: Final = 0xDF442D22CE4859B9


def boost_hash(key: str) -> int:
    """Return the lowest 31 bits of `boost::hash<std::string>` (64 bits, Boost 1.82 and later) over UTF-8."""
    data = key.encode("utf-8", "surrogateescape")
    size = len(data)
    w = _multiply_and_fold(_BOOST_Q, _BOOST_K)
    h = w ^ size
    position = 0
    while size - position >= 8:
        w = w + _BOOST_Q & _MASK64
        word = int.from_bytes(data[position : position + 8], "little")
        h ^= _multiply_and_fold(word + w & _MASK64, _BOOST_K)
        position += 8
    rest = data[position:]
    left = len(rest)
    if left >= 4:
        last = int.from_bytes(rest[:4], "little") | int.from_bytes(rest[-4:], "little") << 8 * (left - 4)
    elif left:
        middle, end = left >> 1, (left - 1) & 2
        last = rest[0] | rest[middle] << 8 * middle | rest[end] << 8 * end
    else:
        last = 0
    w = w + _BOOST_Q & _MASK64
    h ^= _multiply_and_fold(last + w & _MASK64, _BOOST_K)
    return _multiply_and_fold(h + w & _MASK64, _BOOST_K) & _MASK31


def _multiply_and_fold(x: int, y: int) -> int:
    product = x * y
    return product & _MASK64 ^ product >> 64


HASHES: dict[HashingScheme, Callable[[str], int]] = {
    HashingScheme.JAVA_STRING: java_string_hash,
    HashingScheme.MURMUR3_32: murmur3_32_hash,
    HashingScheme.BOOST: boost_hash,
}


def hash_key(scheme: HashingScheme, key: str) -> int:
    """Return the hash of a key, 0 to 2^31 - 1; the partition is the hash modulo the number of partitions.

    Raises `UnicodeEncodeError` for text without a UTF-8 form, if the scheme hashes UTF-8.
    """
    return HASHES[scheme](key)


class Router:
    """Routes the messages of one producer. The first (or single) partition is drawn at random."""

    __slots__ = ("_counter", "_custom", "_hash", "_hashes", "_moves", "_single", "_start", "_window", "stays")

    def __init__(self, spec: ProducerSpec, partitions: int, rng: Rng) -> None:
        routing = spec.routing
        self._custom = None if isinstance(routing, RoutingMode) else routing
        self._single = routing is RoutingMode.SINGLE_PARTITION
        self._start = rng.below(partitions)
        self._counter = self._start
        """The next partition, before the modulo, of a producer that does not batch (rule ROUTE-04)."""
        self._window = 0
        """Nanoseconds for which a batching producer stays with a partition (rules ROUTE-03, ROUTE-09)."""
        if spec.batching is not None:
            self._window = max(SHORTEST_WINDOW, nanoseconds_of(spec.batching.max_delay) * SWITCH_FREQUENCY)
        self.stays = self._custom is None and (self._single or self._window > 0)
        """True when consecutive messages without a key go to one partition for a while."""
        self._moves = not self.stays
        self._hash = HASHES[spec.hashing]
        self._hashes: dict[str, int] = {}

    def choose(self, now: int, message: bytes | OutgoingMessage, partitions: int) -> int:
        """Return the partition of a message, 0 to `partitions` - 1.

        Raises `InvalidMessage` if the application's routing function returns no partition (rule ROUTE-07).
        """
        if not isinstance(message, bytes):
            if not isinstance(message, OutgoingMessage):
                raise InvalidMessage(
                    f"a message is bytes or an OutgoingMessage, not {type(message).__name__}"
                )
            if self._custom is None and message.key is not None:
                return self._hash_of(message.key) % partitions
        if self._custom is not None:
            return self._ask(self._custom, message, partitions)
        return self.keyless(now, partitions)

    def of_known_key(self, message: bytes | OutgoingMessage, partitions: int) -> int:
        """Return the partition of a message whose key hash is cached; -1 for a message that needs
        `choose`."""
        if self._custom is None and type(message) is OutgoingMessage and message.key is not None:
            found = self._hashes.get(message.key)
            if found is not None:
                return found % partitions
        return -1

    def first(self, now: int, partitions: int) -> int:
        """Return the partition to open first."""
        return 0 if self._custom is not None else self.keyless(now, partitions)

    def keyless(self, now: int, partitions: int) -> int:
        """Return the partition of a message without a key; not for a custom routing function."""
        if self._single:
            return self._start
        if self._window:
            return (now // self._window + self._start) % partitions
        return self._counter % partitions

    def advance(self, message: bytes | OutgoingMessage) -> None:
        """Count an accepted message."""
        if self._moves and (isinstance(message, bytes) or message.key is None):
            self._counter += 1

    @property
    def state(self) -> int:
        """The state that `advance` changes; a caller may restore an earlier value."""
        return self._counter

    @state.setter
    def state(self, state: int) -> None:
        self._counter = state

    def _hash_of(self, key: str) -> int:
        hashes = self._hashes
        found = hashes.get(key)
        if found is None:
            try:
                found = self._hash(key)
            except UnicodeEncodeError as error:
                raise InvalidMessage(f"the key cannot be sent as UTF-8: {error}") from error
            if len(key) <= REMEMBERED_LENGTH:
                if len(hashes) >= REMEMBERED_KEYS:
                    hashes.clear()
                hashes[key] = found
        return found

    @staticmethod
    def _ask(custom: CustomRouter, message: bytes | OutgoingMessage, partitions: int) -> int:
        if isinstance(message, bytes):
            message = OutgoingMessage(message)
        try:
            index = custom(message, partitions)
        except Exception as error:
            raise InvalidMessage(f"the routing function failed: {error!r}") from error
        if type(index) is not int or not 0 <= index < partitions:
            raise InvalidMessage(
                f"the routing function gave {index!r}; partitions are numbered from 0 to {partitions - 1}"
            )
        return index
