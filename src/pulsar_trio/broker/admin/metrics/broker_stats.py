"""The stats of all topics in one answer (`GET /admin/v2/broker-stats/topics`), by namespace and bundle.

A Java broker also has stats of its JVM there, which this broker cannot have: `missing` names them.
"""

from typing import Any

from pulsar_sansio import StatsOptions, TopicName

from ..messages import Answer, Refused, Request, json_answer
from ..routes import AdministeredBroker, Route
from ..topics import WHOLE_BUNDLE

MAX_TOPICS = 1000
"""With more topics the broker would serve no client for too long; `/metrics` has the sums of namespaces."""

ALLOCATORS = ("default", "ml-cache")

_OF_TOPIC = (
    ("averageMsgSize", "averageMsgSize"),
    ("msgRateIn", "msgRateIn"),
    ("msgRateOut", "msgRateOut"),
    ("msgInCount", "msgInCounter"),
    ("bytesInCount", "bytesInCounter"),
    ("msgOutCount", "msgOutCounter"),
    ("bytesOutCount", "bytesOutCounter"),
    ("msgThroughputIn", "msgThroughputIn"),
    ("msgThroughputOut", "msgThroughputOut"),
    ("storageSize", "storageSize"),
    ("backlogSize", "backlogSize"),
)
"""The name of a number here, and in the stats of one topic."""

_OF_PUBLISHER = frozenset(
    (
        *("msgRateIn", "msgThroughputIn", "averageMsgSize", "address", "producerId", "producerName"),
        *("connectedSince", "clientVersion", "metadata"),
    )
)
_OF_CONSUMER = frozenset(
    (
        *("address", "consumerName", "availablePermits", "connectedSince", "msgRateOut", "msgThroughputOut"),
        *("clientVersion", "metadata"),
    )
)
_OF_SUBSCRIPTION = frozenset(("msgBacklog", "msgRateOut", "msgThroughputOut", "type"))


def topics(broker: AdministeredBroker, request: Request) -> Answer:
    administration = broker.machine.topic_administration
    names = administration.served()
    if len(names) > MAX_TOPICS:
        raise Refused(503, f"{len(names)} topics, of {MAX_TOPICS} at most; /metrics sums them up")
    found: dict[str, Any] = {}
    for name in names:
        parsed = TopicName.parse(name)
        bundle = found.setdefault(parsed.namespace_name, {}).setdefault(WHOLE_BUNDLE, {})
        domain = "persistent" if parsed.persistent else "non-persistent"
        stats = administration.stats(name, StatsOptions())
        bundle.setdefault(domain, {})[name] = _topic(stats, administration.internal_stats(name))
    return json_answer(found)


def _topic(stats: dict[str, Any], internal: dict[str, Any]) -> dict[str, Any]:
    """Return a topic's stats in the shape of this answer. Values that are not measured are left out."""
    return {
        "publishers": [_part(each, _OF_PUBLISHER) for each in stats["publishers"]],
        "replication": {},
        "subscriptions": {
            name: _subscription(each, internal["cursors"].get(name, {}))
            for name, each in stats["subscriptions"].items()
        },
        "producerCount": len(stats["publishers"]),
        **{name: stats[own] for name, own in _OF_TOPIC if own in stats},
        "pendingAddEntriesCount": internal["pendingAddEntriesCount"],
        "filteredEntriesCount": 0,
    }


def _subscription(stats: dict[str, Any], cursor: dict[str, Any]) -> dict[str, Any]:
    counts = ("numberOfEntriesSinceFirstNotAckedMessage", "totalNonContiguousDeletedMessagesRange")
    return {
        "consumers": [_part(each, _OF_CONSUMER) for each in stats["consumers"]],
        **_part(stats, _OF_SUBSCRIPTION),
        **{name: cursor[name] for name in counts if name in cursor},
    }


def _part(stats: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in stats.items() if name in names}


def allocator(broker: AdministeredBroker, request: Request) -> Answer:
    name = request.text("allocator")
    if name not in ALLOCATORS:
        raise Refused(406, f"Invalid allocator name : {name:.100}")
    raise Refused(501, f"{request.method} allocator-stats/{name} is not implemented by this broker: no JVM")


ROUTES: list[Route] = [
    ("GET", "/admin/v2/broker-stats/topics", topics),
    ("GET", "/admin/v2/broker-stats/allocator-stats/{allocator}", allocator),
]
