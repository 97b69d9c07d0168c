"""Backlog quotas: how many bytes of a topic may be unacknowledged, and how old (rule STORE-34).

Each of the two quotas has its own policy. `producer_request_hold` and `producer_exception` refuse new
producers and disconnect the present ones; they differ in the error of the refusal.
`consumer_backlog_eviction` acknowledges the oldest part of the backlog. The backlog is that of the slowest
durable subscription other than compaction's. New producers are refused at once. As in the Java broker, the
rest is done when `enforce` is called.
"""

from typing import TYPE_CHECKING

from ...model.errors import ProducerBlockedQuotaExceeded, ServerError, ServiceNotReady
from ..policies import BacklogQuota
from .compaction.compaction import SUBSCRIPTION as COMPACTION

if TYPE_CHECKING:
    from .topic import Topic

EVICTION = "consumer_backlog_eviction"

EVICTED_TO = 0.9
"""The part of a quota that eviction leaves, so that the quota is not exceeded again at once."""

CODES = {
    "producer_request_hold": ServerError.ProducerBlockedQuotaExceededError,
    "producer_exception": ServerError.ProducerBlockedQuotaExceededException,
}


def check(topic: "Topic") -> None:
    """Raises `ProducerBlockedQuotaExceeded` where a new producer is refused (BROKER-44)."""
    for quota in exceeded(topic):
        if quota.policy != EVICTION:
            raise ProducerBlockedQuotaExceeded(
                "Cannot create producer on topic with backlog quota exceeded", CODES[quota.policy]
            )


def enforce(topic: "Topic") -> None:
    """Apply the policy of an exceeded quota; the quota on size comes first."""
    for quota in exceeded(topic)[:1]:
        if quota.policy != EVICTION:
            topic.producers.disconnect_all(ServiceNotReady("The backlog quota is exceeded"))
        elif quota is topic.policies.backlog_quota_size:
            _evict_to_size(topic, round(quota.limit_size * EVICTED_TO))
        else:
            topic.expire_before(topic.services.wall_time - round(quota.limit_time * EVICTED_TO * 1000))


def exceeded(topic: "Topic") -> list[BacklogQuota]:
    """Return the quotas that the backlog exceeds."""
    of_size, of_time = topic.policies.backlog_quota_size, topic.policies.backlog_quota_time
    found = []
    if of_size is not None and of_size.limit_size >= 0 and backlog_size(topic) >= of_size.limit_size:
        found.append(of_size)
    if of_time is not None and of_time.limit_time > 0 and backlog_age(topic) > of_time.limit_time * 1000:
        found.append(of_time)
    return found


def _slowest(topic: "Topic") -> int | None:
    """The offset of the first entry that some durable subscription has not acknowledged; None without such a
    subscription."""
    marks = [
        each.cursor.mark_delete
        for name, each in topic.subscriptions.items()
        if each.durable and name != COMPACTION
    ]
    return max(min(marks) + 1, topic.log.first) if marks else None


def backlog_size(topic: "Topic") -> int:
    """Bytes in the backlog of the slowest durable subscription."""
    first = _slowest(topic)
    return 0 if first is None else topic.log.size_from(first)


def backlog_age(topic: "Topic") -> int:
    """Milliseconds since the oldest entry in the backlog of the slowest durable subscription was published;
    -1 without a backlog."""
    first = _slowest(topic)
    if first is None or first >= topic.log.durable_end:
        return -1
    return topic.services.wall_time - topic.log.peek(first).publish_time


def _evict_to_size(topic: "Topic", target: int) -> None:
    log = topic.log
    offset = _slowest(topic)
    assert offset is not None
    topic.skip_everywhere(log.find_size(target, offset) - 1)
