"""Generates the protobuf module of the wire schema from proto/PulsarApi.proto (`make proto`).

Needs `grpcio-tools`, for its protoc. The module protoc writes refuses every runtime older than the protoc
that wrote it. Nothing in it needs that: the descriptor and the builder calls have been the same since
protobuf 4. So this tool sets the gate and the comment of the version to the oldest runtime that the project
supports. The result depends on the schema alone, not on the protoc at hand. A test compares.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "proto" / "PulsarApi.proto"
TARGET = ROOT / "src" / "pulsar_sansio" / "wire"
OLDEST_RUNTIME = (6, 31, 0)
"""The oldest version that `dependencies` in pyproject.toml allows: protobuf>=6.31."""

_VERSION_COMMENT = re.compile(r"^# Protobuf Python Version: .*$", re.MULTILINE)
_VERSION_GATE = re.compile(r"(_runtime_version\.Domain\.PUBLIC,)\s*\d+,\s*\d+,\s*\d+,\s*'[^']*',")

_UNSTUBBABLE = re.compile(r"^ +None: .*\n|^    KeyValue: Schema\.Type\n", re.MULTILINE)
"""Lines of the stub for values of Schema.Type: `None` is no Python name, and in class Schema the value
KeyValue hides the message KeyValue. `getattr` and `Schema.Type.KeyValue` reach them."""


def generate() -> dict[str, str]:
    """The generated files: name to text. Raises `RuntimeError` when protoc refuses the schema."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "protoc",
            f"--proto_path={SCHEMA.parent}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            SCHEMA.name,
        ]
        if protoc.main(arguments) != 0:
            raise RuntimeError(f"protoc refuses {SCHEMA}")
        return {file.name: _settle(file.read_text()) for file in sorted(Path(folder).iterdir())}


def _settle(text: str) -> str:
    """Takes out what depends on protoc's version, and out of the stub what a strict type checker refuses."""
    major, minor, patch = OLDEST_RUNTIME
    text = _VERSION_COMMENT.sub(f"# Protobuf Python Version: {major}.{minor}.{patch}", text)
    text = _VERSION_GATE.sub(rf"\1\n    {major},\n    {minor},\n    {patch},\n    '',", text)
    text = _UNSTUBBABLE.sub("", text)
    return text.replace(": bool = ...", ": _Optional[bool] = ...").replace(
        "_Mapping]", "_Mapping[str, object]]"
    )


def main() -> int:
    for name, text in generate().items():
        (TARGET / name).write_text(text)
        print(f"wrote {(TARGET / name).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
