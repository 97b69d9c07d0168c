"""Key pairs in files, as clients of all languages read them."""

from dataclasses import dataclass
from pathlib import Path

from tests.encryption.keys import key_pair


@dataclass(frozen=True)
class KeyFiles:
    """One key pair. The files are named so that the canary's plugin knows what they hold."""

    public: Path
    private: Path


def key_files(folder: Path, kind: str, number: int = 0) -> KeyFiles:
    """Write a key pair of that kind, "rsa", "p256" or "p521"."""
    files = KeyFiles(folder / f"{kind}-{number}-public.key", folder / f"{kind}-{number}-private.key")
    for file, pem in zip((files.public, files.private), key_pair(kind, number), strict=True):
        file.write_bytes(pem)
    return files
