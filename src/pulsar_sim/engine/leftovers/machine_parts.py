"""The parts of a machine: the objects reachable from it, each once.

Owns the walk, and the definition of a part: an object of a class of client, broker or core. The walk looks
into containers. Objects that machines share (services, the context, a connection) are no parts, unless the
walk begins there. Most time goes into attributes that lead nowhere.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from pulsar_sansio.core.deadlines import Slot

_ROOMS = ("pulsar_sansio.client.", "pulsar_sansio.broker.", "pulsar_sansio.core.")

SHARED = frozenset(
    {
        "BinaryLookup",
        "Broker",
        "BrokerAddresses",
        "BrokerServices",
        "Client",
        "Connection",
        "Context",
        "Deadlines",
        "HttpLookup",
        "Links",
        "Lookup",
        "MemoryLimit",
        "Pool",
        "ReceivedMemory",
        "Requests",
        "Services",
        "TopicVersions",
        "Transaction",
        "Transactions",
    }
)
"""Classes whose instances several machines share."""

_RECORDS = frozenset(
    {
        "ArrivalCounters",
        "Attached",
        "Backoff",
        "BatchAcknowledgement",
        "BrokerConfig",
        "Closed",
        "CompactedView",
        "ConsumerServices",
        "Cursor",
        "Deliveries",
        "Redirection",
        "Durations",
        "Entry",
        "EntryAcknowledgement",
        "EntryAdded",
        "ManagedLedger",
        "MessageFront",
        "Pending",
        "Policies",
        "ProducerServices",
        "Rates",
        "Ready",
        "ReceiptIds",
        "Rng",
        "SealedEntry",
        "Transmit",
    }
)
"""Classes with many instances, or with nothing that is ever reset. `Rates` keeps ended producers and
consumers until the next interval."""

_CONTAINERS = (list, dict, set, deque, tuple, OrderedDict)

_LEAF, _CONTAINER, _PART = range(3)

_DULL = (bool, int, float, str, bytes, FunctionType, MethodType, BuiltinFunctionType)
"""Types of attributes that never hold a part; the first instance of a class decides."""

_names: dict[type, tuple[str, ...]] = {}

_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


class Walk:
    """A walk that does not enter instances of the classes in `beyond`."""

    def __init__(self, beyond: frozenset[str] = frozenset()) -> None:
        self._beyond = beyond
        self._kinds: dict[type, int] = {}

    def parts(self, root: object) -> Iterator[Any]:
        """Yield the parts of a machine, itself first."""
        kinds = self._kinds
        seen = {id(root)}
        todo: list[Any] = [root]
        while todo:
            part = todo.pop()
            yield part
            kind = type(part)
            getter = _getters.get(kind)
            if getter is None:
                getter = _getters[kind] = attrgetter("__class__", "__class__", *names_of(part))
            try:
                values = getter(part)
            except AttributeError:  # one is not set, or not any more
                values = tuple(getattr(part, name, None) for name in names_of(part))
            for value in values:
                kind = type(value)
                found = kinds.get(kind)
                if found is None:
                    found = kinds[kind] = self._kind(kind)
                if found == _PART:
                    if id(value) not in seen:
                        seen.add(id(value))
                        todo.append(value)
                elif found == _CONTAINER and value:
                    for each in [*value, *value.values()] if isinstance(value, dict) else value:
                        kind = type(each)
                        found = kinds.get(kind)
                        if found is None:
                            found = kinds[kind] = self._kind(kind)
                        if found == _PART and id(each) not in seen:
                            seen.add(id(each))
                            todo.append(each)

    def _kind(self, kind: type) -> int:
        if kind in _CONTAINERS:
            return _CONTAINER
        names = {each.__name__ for each in kind.__mro__}
        if issubclass(kind, (tuple, int, BaseException, Slot, type)) or names & (self._beyond | _RECORDS):
            return _LEAF
        return _PART if any(each.__module__.startswith(_ROOMS) for each in kind.__mro__) else _LEAF


def names_of(part: object) -> tuple[str, ...]:
    """Return the attributes of an object that may hold parts, containers or timers."""
    kind = type(part)
    names = _names.get(kind)
    if names is None:
        every = [vars(each).get("__slots__", ()) for each in kind.__mro__]
        flat = [name for each in every for name in ((each,) if isinstance(each, str) else each)]
        flat += getattr(part, "__dict__", {})
        names = _names[kind] = tuple(
            name
            for name in flat
            if not name.startswith("__") and not isinstance(getattr(part, name, None), _DULL)
        )
    return names


def identity(part: object) -> int:
    """Return a number that identifies a part. It differs between runs, so nothing is ordered by it."""
    return id(part)
