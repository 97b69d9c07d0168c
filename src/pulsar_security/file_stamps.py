"""`file_stamps`: shows whether files have changed, without reading them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

Stamp = tuple[int, int, int] | None


def file_stamps(files: Iterable[Path]) -> list[Stamp]:
    """Return modification time, size and inode of each file; None for one that cannot be found.

    A folder's stamp is followed by those of the files in it: one that is written in place leaves the folder's
    own stamp alone.
    """
    return [_stamp(path) for file in files for path in _with_content(file)]


def _with_content(path: Path) -> Iterator[Path]:
    yield path
    try:
        yield from sorted(path.iterdir())
    except OSError:  # no folder, or one that cannot be read
        return


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
