"""`file_stamps`: shows whether files have changed, without reading them."""

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int] | None


def file_stamps(files: Iterable[Path]) -> list[Stamp]:
    """Return modification time, size and inode of each file or folder; None for one that cannot be found."""
    return [_stamp(path) for path in files]


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
