"""The generated protobuf module under a friendly name: `proto.BaseCommand`, `proto.CommandSubscribe`, …

Made by tools/generate_proto.py from proto/PulsarApi.proto. `Schema.Type.None` is reached with
`getattr(proto.Schema, "None")`, because `None` is a keyword of Python.
"""

from .PulsarApi_pb2 import *  # noqa: F403
