"""`ReloadedContext`: a TLS context whose files may change while connections are made."""

import ssl

from .file_stamps import file_stamps
from .server_tls import ServerTls
from .tls_config import TlsConfig


class ReloadedContext:
    """The context of a `TlsConfig` or a `ServerTls`, made anew when one of its files has changed."""

    def __init__(self, config: TlsConfig | ServerTls) -> None:
        self._config = config
        self._stamps = file_stamps(self._config.files())
        self._context = config.make_context()

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection.

        Raises `InvalidConfiguration` when a file has changed and cannot be used; the next call tries again.
        """
        stamps = file_stamps(self._config.files())
        if stamps != self._stamps:
            self._context = self._config.make_context()
            self._stamps = stamps
        return self._context
