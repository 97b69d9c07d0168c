"""Frames as one line of text each, for readers of a seed's trace.

The text is stable and has neither payloads nor credentials: names and numbers of the wire schema.
"""

from typing import Any

from pulsar_sansio.wire import MessageCommand, Send, proto

SKIPPED = frozenset(("payload", "rest", "position_rest"))


def describe(kind: int, command: Any) -> str:
    """Return `SEND producer_id=0 sequence_id=4 …`; defaults and absent fields are left out."""
    try:
        name = proto.BaseCommand.Type.Name(kind)
    except ValueError:
        return f"type {kind}"
    if command is None:
        return name
    if hasattr(command, "ListFields"):
        return f"{name} {_fields(command)}".rstrip()
    values = (
        f"{field}={value}"
        for field, value in command._asdict().items()
        if field not in SKIPPED and value is not None and value is not False and value != b""
    )
    text = f"{name} {' '.join(values)}"
    if isinstance(command, (Send, MessageCommand)):
        text += f" +{len(command.payload)} bytes"
    return text


def _fields(message: Any) -> str:
    parts = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            items = value if field.is_repeated else (value,)
            parts.append(f"{field.name}=[{', '.join('{' + _fields(item) + '}' for item in items)}]")
        else:
            parts.append(f"{field.name}={'***' if field.name == 'auth_data' else value}")
    return " ".join(parts)
