"""Helpers of the tests of binary lookups."""

from typing import Any

from pulsar_sansio.model.config import ProducerSpec
from tests.client.script import Script

SPEC = ProducerSpec(topic="demo")


def looking_up_again(**config: Any) -> tuple[Script, int]:
    """A producer that was attached and lost its connection, so that opening has no deadline."""
    script = Script(operation_timeout=10.0, connect_timeout=8.0, keepalive_interval=1000.0, **config)
    _, link = script.ready_producer()
    script.lose(link)
    script.said()
    script.advance(0.1)
    return script, script.ready_link()
