"""Explanation of an attachment: its connection, or the reason for having none."""

from ..explanation import reason, seconds
from . import attachment_states as states
from .attachment import Attachment


def route(attachment: Attachment, now: int) -> str:
    """Describe the attachment's connection, or the reason for having none and the awaited event."""
    state = attachment.state
    for_so_long = seconds(now - attachment.since)
    match state:
        case states.Attached(connection):
            return f"connected to {connection.logical} for {for_so_long}"
        case states.Closing(connection):
            return f"closing: {connection.logical} was told {for_so_long} ago and has not answered"
        case states.Closed():
            return "closed"
        case states.Failed(error):
            return "failed" + reason(error)
        case states.Queued(connection):
            return (
                f"waiting for exclusive access for {for_so_long}: another producer has it "
                f"(connected to {connection.logical})"
            )
        case states.Idle():
            return "not started: nothing was sent to it"
        case states.BackingOff():
            at = attachment.next_attempt_at
            wait = f"; next attempt in {seconds(max(0, (at or now) - now))}"
            return _not_connected(attachment, now) + wait
        case states.CheckingPartitions() | states.LookingUp():
            asked = attachment.asked
            if asked is not None:
                what = f"connecting to {asked}"
            elif isinstance(state, states.LookingUp):
                what = "asking which broker serves the topic"
            else:
                what = "asking how many partitions the topic has"
        case states.Connecting():
            what = "connecting to the broker that serves the topic"
        case states.Opening(connection):
            what = f"waiting for {connection.logical} to open it"
    return f"{_not_connected(attachment, now)}; {what} for {for_so_long}"


def _not_connected(attachment: Attachment, now: int) -> str:
    never = "" if attachment.was_attached else ", and never was"
    since = seconds(now - attachment.down_since)
    return f"not connected for {since}{never}{reason(attachment.last_error)}"
