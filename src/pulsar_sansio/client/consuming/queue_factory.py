"""Choose the permits and the queue of a consumer from its spec.

A feature that the spec does not ask for costs nothing: the plain queue does not know it. Each kind of queue
adds one feature to `ReceiverQueue` and calls the next class, so that kinds can be combined.
"""

from functools import cache
from typing import Any

from ...model.config import ConsumerSpec
from ..acknowledging.ack_timeout import AcknowledgementTimeout, TrackedQueue
from ..delivery.batch_receive import BatchReceive, BatchReceiveQueue
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..delivery.receiver_queue import ReceiverQueue
from ..delivery.scaled_queue import ScaledPermits, ScaledQueue
from ..delivery.schema_queue import SchemaQueue
from ..delivery.zero_queue import ZeroQueue, ZeroQueuePermits
from ..schemas.decoding_sources import DecodingSources
from .interceptors import ConsumerInterception, InterceptedQueue


def receiving(
    services: ConsumerServices,
    timeout: AcknowledgementTimeout | None,
    batch_receive: BatchReceive | None,
    interception: ConsumerInterception | None,
    sources: DecodingSources | None,
) -> tuple[Permits, ReceiverQueue]:
    """Return the permits and the queue of a new consumer."""
    spec = services.spec
    kinds: list[type[ReceiverQueue]] = []
    options: dict[str, Any] = {}
    permits = _permits(spec)
    if isinstance(permits, ZeroQueuePermits):
        kinds.append(ZeroQueue)
    if sources is not None:  # before all kinds that do not know of held messages
        kinds.append(SchemaQueue)
        options["sources"] = sources
    if timeout is not None:
        kinds.append(TrackedQueue)
        options["timeout"] = timeout
    if isinstance(permits, ScaledPermits):
        kinds.append(ScaledQueue)
        options["memory"] = services.client.received_memory
    if batch_receive is not None:
        kinds.append(BatchReceiveQueue)
        options["batch_receive"] = batch_receive
    if interception is not None:
        kinds.append(InterceptedQueue)
        options["interception"] = interception
    permits.paused = spec.start_paused
    return permits, _queue(tuple(kinds))(permits, **options)


def _permits(spec: ConsumerSpec) -> Permits:
    if spec.receiver_queue_size == 0:
        return ZeroQueuePermits()
    if spec.auto_scaled_receiver_queue_size:
        # Half a queue of permits less one may wait here: a batch receive has to fit into the rest.
        policy = spec.batch_receive
        together = 0 if policy is None or policy.max_messages is None else policy.max_messages
        return ScaledPermits(spec.receiver_queue_size, 2 * together - 2)
    return Permits(spec.receiver_queue_size)


@cache
def _queue(kinds: tuple[type[ReceiverQueue], ...]) -> type[ReceiverQueue]:
    """Return a queue class that combines all these kinds."""
    return type("Queue", kinds, {}) if kinds else ReceiverQueue
