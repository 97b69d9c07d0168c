"""Checks of a machine when an input is over (INV-L3).

Owns two questions about the inside of a machine. A machine takes the moment of each input, because outputs
and timers follow from that moment. A broker gives all records to its driver, unless a write is in progress.
"""

from typing import TYPE_CHECKING, Any

from ..failures import ViolationError

if TYPE_CHECKING:
    from pulsar_sansio.broker.broker import Broker
    from pulsar_sansio.core.context import Context


def check_moment(name: str, context: "Context[Any]", now: int) -> None:
    """INV-L3: the machine emits something at `now`."""
    if context.outputs and context.now != now:
        raise ViolationError("INV-L3", f"{name} emits {context.outputs[0]} and believes it is {context.now}")


def check_recorded(name: str, broker: "Broker", writing: bool) -> None:
    """INV-L3: an input is over. `writing`: a write is in progress."""
    journal = broker.services.journal
    if journal.records and not writing:
        raise ViolationError("INV-L3", f"{name} keeps {len(journal.records)} records to itself")
