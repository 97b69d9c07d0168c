"""Opens a consumer of one topic, or of several.

One topic that is given by its name is opened with one `Consumer`. When the topic turns out to have
partitions, a consumer of all of them replaces it under its handle, before the application is told of it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ...model.config import ConsumerSpec
from ..connecting.services import Services
from ..consuming.consumer import Consumer
from ..consuming.reader import machine_for
from .multi_topics_consumer import MultiTopicsConsumer
from .partition_growth import Known

AnyConsumer: TypeAlias = Consumer | MultiTopicsConsumer


def open_consumer(
    services: Services,
    handle: int,
    spec: ConsumerSpec,
    register: Callable[[AnyConsumer], None],
) -> None:
    """Open a consumer. `register` is given the machine for the handle, and again when another replaces it."""
    if not isinstance(spec.topic, str):
        several = MultiTopicsConsumer(services, handle, spec)
        register(several)
        several.start()
        return
    consumer = machine_for(spec)(services, handle, services.next_consumer_id(), spec)

    def partitioned(partitions: int) -> None:
        known = Known(partitions, consumer.wire_id, consumer.name, consumer.attachment.gives_up_at)
        several = MultiTopicsConsumer(
            services, handle, replace(spec, start_paused=consumer.permits.paused), known
        )
        register(several)
        several.start()
        for request in consumer.hand_over():
            several.batch_receive(request)

    register(consumer)
    consumer.attachment.on_partitioned = partitioned
    consumer.attachment.start()
