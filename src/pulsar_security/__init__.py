"""TLS without an event loop: what the adapters of trio and of Spark share.

The standard library's `ssl` encrypts and verifies. Nothing here waits, and nothing here knows trio or Spark.
"""

from .common_name import common_name
from .reloaded_context import ReloadedContext
from .server_tls import ServerTls
from .tls_config import TlsConfig
from .tls_socket import TlsFailure, TlsSocket, Wanted
from .tokens import checked_token

__all__ = [
    "ReloadedContext",
    "ServerTls",
    "TlsConfig",
    "TlsFailure",
    "TlsSocket",
    "Wanted",
    "checked_token",
    "common_name",
]
