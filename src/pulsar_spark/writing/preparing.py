"""A topic's first transactional message, sent by the driver before tasks send theirs at the same time.

A Pulsar broker before 4.0.8 and 4.1.2 prepares a topic for transactions when its first transactional message
comes. Where that comes from two producers at once, it prepares twice, fails, and then refuses every message
of a transaction until the topic is unloaded (apache/pulsar#24945). So one producer sends one message to each
partition, in a transaction that is aborted: no consumer ever receives it.

It knows nothing of Spark or of rows.
"""

from dataclasses import replace

from pulsar_sansio import OutgoingMessage

from ..link import Link
from .producing import Limits, TaskProducer
from .transactions import abort_quietly, begin

_prepared: set[tuple[str, str]] = set()
"""This process has prepared these topics and partitions; each is here with its service URL. Spark plans the
writer of a stream for every micro-batch, in processes that live on."""


def prepare(link: Link, topic: str, partitions: int, limits: Limits) -> None:
    """Let the topic, or each of its partitions, have its first transactional message, once in this process.

    `partitions`: 0 for a topic without. `limits`: those of the tasks, because the topic may demand a schema
    or encryption. Raises `WriteFailed` and `SchemaRefused`."""
    names = [f"{topic}-partition-{number}" for number in range(partitions)] or [topic]
    missing = [name for name in names if (link.service_url, name) not in _prepared]
    if not missing:
        return
    timeout = limits.operation_timeout
    transaction = begin(link, topic, 0, timeout, timeout)
    producer = TaskProducer(link, replace(limits, send_timeout=timeout), None, transaction.id)
    try:
        producer.open(missing)
        for name in missing:
            producer.send(name, [OutgoingMessage(b"", transaction=transaction.id)], [0])
        producer.finish()
    finally:
        producer.abandon()
        abort_quietly(link, transaction, timeout)
    _prepared.update((link.service_url, name) for name in missing)
