"""Explanation of the messages that a producer has accepted and not settled."""

from collections.abc import Sequence

from ...model.schema import SchemaInfo
from ..explanation import seconds
from ..memory import MemoryLimit
from .admission import Admission
from .send_window import SendWindow


def keys(names: Sequence[str]) -> list[str]:
    """Describe the encryption keys that a producer waits for before it opens."""
    if not names:
        return []
    return [f"waiting for the key reader to return {', '.join(f'encryption key {name!r}' for name in names)}"]


def schema(wanted: SchemaInfo | None) -> list[str]:
    """Describe the schema that is being registered for messages that have it."""
    if wanted is None:
        return []
    name = f" {wanted.name!r:.100}" if wanted.name else ""
    return [f"messages wait until the broker has registered schema {wanted.type.name}{name}"]


def window(
    admission: Admission, sent: SendWindow, memory: MemoryLimit, send_timeout: float, now: int
) -> list[str]:
    """Describe the pending messages, and the limits that delay them."""
    pending = admission.pending
    lines = []
    if admission.waits_for_memory:
        lines.append(
            f"the client's memory is full: producers hold {memory.held} of {memory.limit} bytes "
            "(memory_limit)"
        )
    if not pending:
        return [*lines, "no message is pending"]
    full = "the window is full, " if pending >= admission.limit else ""
    size = admission.open_bytes + sum(entry.size for entry in sent.entries)
    lines.append(
        f"{full}{pending} of at most {admission.limit} messages are pending (max_pending_messages), with "
        f"{size} bytes of payload"
    )
    if sent.entries:
        fails = f"; messages fail after the send timeout of {send_timeout:g} s" if send_timeout else ""
        lines.append(
            f"the oldest pending message was sent {seconds(now - sent.entries[0].sealed)} ago{fails}"
        )
    return lines
