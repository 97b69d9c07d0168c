"""The text that says why nothing moves: sentences about attachments, windows, queues and permits.

Pure functions over facts. Each machine knows its own facts and puts its lines together (`explain`); the root
joins them under one heading. Nothing secret is among the facts: neither properties nor payloads nor keys.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..model.errors import PulsarError
from .attachment import (
    Attached,
    Attachment,
    BackingOff,
    CheckingPartitions,
    Closed,
    Closing,
    Connecting,
    Failed,
    Idle,
    LookingUp,
    Opening,
    Queued,
)

if TYPE_CHECKING:
    from ..model.config import ConsumerSpec
    from .intake import Intake
    from .memory import MemoryLimit
    from .permits import Permits
    from .window import Window

MAX_PARTS = 10
"""Topics and partitions with a line of their own; of the others only the number is said."""

MAX_REASON = 500
"""Characters of an error that are repeated; a broker's text may be longer."""

USUAL_LIMIT = 50_000
"""Unacknowledged messages of one consumer at which a broker stops delivering, unless it is told otherwise
(`maxUnackedMessagesPerConsumer`); for Shared and Key_Shared subscriptions only."""


class Part(NamedTuple):
    """One topic or partition of a consumer or producer that has several."""

    name: str
    moves: bool
    """The topic or partition is attached."""
    lines: Sequence[str]


def seconds(nanoseconds: int) -> str:
    """A duration, to a tenth of a second."""
    return f"{nanoseconds / 1e9:.1f} s"


def reason(error: PulsarError | None) -> str:
    """An error as the end of a sentence; an empty text where there is none."""
    if error is None:
        return ""
    text = str(error)
    return ": " + (text if len(text) <= MAX_REASON else text[:MAX_REASON] + "…")


def way(attachment: Attachment, now: int) -> str:
    """Say how an attachment is connected, or why it is not and what it waits for."""
    state = attachment.state
    for_so_long = seconds(now - attachment.since)
    match state:
        case Attached(connection):
            return f"connected to {connection.logical} for {for_so_long}"
        case Closing(connection):
            return f"closing: {connection.logical} was told {for_so_long} ago and has not answered"
        case Closed():
            return "closed"
        case Failed(error):
            return "failed" + reason(error)
        case Queued(connection):
            return (
                f"waiting for exclusive access for {for_so_long}: another producer has it "
                f"(connected to {connection.logical})"
            )
        case Idle():
            return "not started: nothing was sent to it"
        case BackingOff():
            at = attachment.next_attempt_at
            wait = f"; next attempt in {seconds(max(0, (at or now) - now))}"
            return _not_connected(attachment, now) + wait
        case CheckingPartitions() | LookingUp():
            asked = attachment.asked
            if asked is not None:
                what = f"connecting to {asked}"
            elif isinstance(state, LookingUp):
                what = "asking which broker serves the topic"
            else:
                what = "asking how many partitions the topic has"
        case Connecting():
            what = "connecting to the broker that serves the topic"
        case Opening(connection):
            what = f"waiting for {connection.logical} to open it"
    return f"{_not_connected(attachment, now)}; {what} for {for_so_long}"


def _not_connected(attachment: Attachment, now: int) -> str:
    never = "" if attachment.was_attached else ", and never was"
    since = seconds(now - attachment.down_since)
    return f"not connected for {since}{never}{reason(attachment.last_error)}"


def window(
    intake: "Intake", sent: "Window", memory: "MemoryLimit", send_timeout: float, now: int
) -> list[str]:
    """Say what a producer has taken and not settled."""
    pending = intake.pending
    lines = []
    if intake.waits_for_memory:
        lines.append(
            f"the client's memory is full: producers hold {memory.held} of {memory.limit} bytes "
            "(memory_limit)"
        )
    if not pending:
        return [*lines, "no message is pending"]
    full = "the window is full, " if pending >= intake.limit else ""
    size = intake.open_bytes + sum(entry.size for entry in sent.entries)
    lines.append(
        f"{full}{pending} of at most {intake.limit} messages are pending (max_pending_messages), with {size} "
        "bytes of payload"
    )
    if sent.entries:
        fails = f"; messages fail after the send timeout of {send_timeout:g} s" if send_timeout else ""
        lines.append(
            f"the oldest pending message was sent {seconds(now - sent.entries[0].sealed)} ago{fails}"
        )
    return lines


def subscription(spec: "ConsumerSpec") -> str:
    """The subscription of a consumer; a reader's has a made-up name, which is of no interest."""
    return f", subscription {spec.subscription!r}" if spec.durable else ""


def permits(ledger: "Permits", available: int) -> list[str]:
    """Say what a broker may still send, and what waits in the receiver queue."""
    if ledger.paused:
        first = "paused: it asks for no more messages until resume"
    elif ledger.queue_size == 0 and ledger.at_broker <= 0:
        first = "it asks for a message when the application waits for one (receiver_queue_size is 0)"
    else:
        first = f"{max(0, ledger.at_broker)} permits are at the broker, for a queue of {ledger.queue_size}"
    return [first, f"{available} messages are in the receiver queue and wait for the application"]


def unacknowledged(at_most: int) -> str:
    """Say how many messages are delivered over the present connection and not acknowledged."""
    return (
        f"at most {at_most} messages are delivered and not acknowledged; a broker stops at a limit "
        f"(usually {USUAL_LIMIT} for one consumer)"
    )


def blocked(count: int, ago: int) -> str:
    """The broker's own word that it delivers nothing more."""
    return (
        f"blocked: the broker said {seconds(ago)} ago that {count} messages are unacknowledged, and delivers "
        "no more until the application acknowledges or negatively acknowledges some of them"
    )


def several(parts: Sequence[Part], what: str) -> list[str]:
    """A line for each part, those that are not attached first; never more than `MAX_PARTS`."""
    attached = sum(part.moves for part in parts)
    lines = [f"{attached} of {len(parts)} {what} are connected"]
    ordered = sorted(parts, key=lambda part: part.moves)
    lines += [f"{part.name}: {'; '.join(part.lines)}" for part in ordered[:MAX_PARTS]]
    if len(parts) > MAX_PARTS:
        lines.append(f"and {len(parts) - MAX_PARTS} more")
    return lines


def under(heading: str, lines: Iterable[str]) -> str:
    """One text: the first line behind the heading, the others indented below."""
    first, *rest = lines
    return "\n".join([f"{heading}: {first}", *(f"  {line}" for line in rest)])
