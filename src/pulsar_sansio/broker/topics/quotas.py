"""Backlog quotas: how much of a topic may be unacknowledged, and for how long (rules STORE-34 to STORE-38).

Two quotas, each with its own policy for what happens beyond it: no producer is let in and those there are
sent away (`producer_request_hold`, `producer_exception`, which differ in the error that a newcomer gets), or
the oldest part of the backlog counts as acknowledged (`consumer_backlog_eviction`). The backlog is that of
the slowest durable subscription that is not compaction's. Newcomers are refused at once, the rest is done
when `enforce` is called, as the Java broker does it. Who calls it and when is not known here.
"""

from typing import TYPE_CHECKING

from ...model.errors import ProducerBlockedQuotaExceeded, ServerError, ServiceNotReady
from ..policies import BacklogQuota
from .compaction import SUBSCRIPTION as COMPACTION

if TYPE_CHECKING:
    from .topic import Topic

EVICTION = "consumer_backlog_eviction"

EVICTED_TO = 0.9
"""Part of a quota that is left when the rest is evicted, so that it is not exceeded again at once."""

CODES = {
    "producer_request_hold": ServerError.ProducerBlockedQuotaExceededError,
    "producer_exception": ServerError.ProducerBlockedQuotaExceededException,
}


def check(topic: "Topic") -> None:
    """Raises what a new producer gets: `ProducerBlockedQuotaExceeded` (BROKER-44)."""
    for quota in exceeded(topic):
        if quota.policy != EVICTION:
            raise ProducerBlockedQuotaExceeded(
                "Cannot create producer on topic with backlog quota exceeded", CODES[quota.policy]
            )


def enforce(topic: "Topic") -> None:
    """Do what the policy of an exceeded quota says, the one on size first."""
    for quota in exceeded(topic)[:1]:
        if quota.policy != EVICTION:
            topic.producers.disconnect_all(ServiceNotReady("The backlog quota is exceeded"))
        elif quota is topic.policies.backlog_quota_size:
            _evict_to_size(topic, round(quota.limit_size * EVICTED_TO))
        else:
            topic.expire_before(topic.services.wall_time - round(quota.limit_time * EVICTED_TO * 1000))


def exceeded(topic: "Topic") -> list[BacklogQuota]:
    """The quotas that the backlog is beyond."""
    of_size, of_time = topic.policies.backlog_quota_size, topic.policies.backlog_quota_time
    found = []
    if of_size is not None and of_size.limit_size >= 0 and backlog_size(topic) >= of_size.limit_size:
        found.append(of_size)
    if of_time is not None and of_time.limit_time > 0 and backlog_age(topic) > of_time.limit_time * 1000:
        found.append(of_time)
    return found


def _slowest(topic: "Topic") -> int | None:
    """Offset of the first entry that some durable subscription has not acknowledged; None without one."""
    marks = [
        each.cursor.mark_delete
        for name, each in topic.subscriptions.items()
        if each.durable and name != COMPACTION
    ]
    return max(min(marks) + 1, topic.log.first) if marks else None


def backlog_size(topic: "Topic") -> int:
    """Bytes that the slowest durable subscription has before it."""
    first = _slowest(topic)
    return 0 if first is None else topic.log.size_from(first)


def backlog_age(topic: "Topic") -> int:
    """Milliseconds since the oldest entry was published that the slowest durable subscription has before it;
    -1 where there is none."""
    first = _slowest(topic)
    if first is None or first >= topic.log.durable_end:
        return -1
    return topic.services.wall_time - topic.log.entry(first).publish_time


def _evict_to_size(topic: "Topic", target: int) -> None:
    log = topic.log
    offset = _slowest(topic)
    assert offset is not None
    size = log.size_from(offset)
    while size > target and offset < log.durable_end:
        size -= len(log.entry(offset).data)
        offset += 1
    topic.skip_everywhere(offset - 1)
