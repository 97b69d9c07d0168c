"""The generated protobuf module under a friendly name: `proto.BaseCommand`, `proto.CommandSubscribe`, …

Made by tools/generate_proto.py from proto/PulsarApi.proto. `Schema.Type.None` is reached with
`getattr(proto.Schema, "None")`, because `None` is a keyword of Python.
"""

from collections.abc import Iterable
from typing import Any

from . import PulsarApi_pb2
from .PulsarApi_pb2 import *  # noqa: F403
from .PulsarApi_pb2 import DESCRIPTOR as _FILE


def _at_hand(scope: Any, enums: Iterable[str]) -> None:
    """Makes values of enums attributes: otherwise each use of one is looked for in the descriptor, and costs
    a microsecond."""
    for name in enums:
        enum = getattr(scope, name)
        vars(enum).update(enum.items())


_at_hand(PulsarApi_pb2, _FILE.enum_types_by_name)
for _name, _message in _FILE.message_types_by_name.items():
    _at_hand(getattr(PulsarApi_pb2, _name), _message.enum_types_by_name)
