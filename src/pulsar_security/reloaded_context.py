"""`ReloadedContext`: a TLS context whose files may change while connections are made."""

import ssl
from pathlib import Path

from .server_tls import ServerTls
from .tls_config import TlsConfig


class ReloadedContext:
    """The context of a `TlsConfig` or a `ServerTls`, made anew when one of its files has changed."""

    def __init__(self, config: TlsConfig | ServerTls) -> None:
        self._config = config
        self._stamps = self._read_stamps()
        self._context = config.make_context()

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection.

        Raises `InvalidConfiguration` when a file has changed and cannot be used; the next call tries again.
        """
        stamps = self._read_stamps()
        if stamps != self._stamps:
            self._context = self._config.make_context()
            self._stamps = stamps
        return self._context

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._config.files()]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
