"""Explanation of an attachment: its connection, or the reason for having none."""

from ..explanation import reason, seconds
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


def route(attachment: Attachment, now: int) -> str:
    """Describe the attachment's connection, or the reason for having none and the awaited event."""
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
