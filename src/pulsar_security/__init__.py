"""TLS, OAuth 2.0 and files of keys without an event loop: what the adapters of trio and of Spark share.

The standard library's `ssl` encrypts and verifies. Nothing here waits, and nothing here knows trio or Spark.
"""

from .client_credentials import ClientCredentials, TokenRequest
from .common_name import common_name
from .file_stamps import file_stamps
from .key_files import KeyFiles
from .oauth2_issuer import (
    HEADERS,
    MAX_ANSWER,
    RENEWAL_TIME,
    REQUEST_TIME,
    HttpFailure,
    HttpRequest,
    Issued,
    IssuerAnswer,
    OAuth2Issuer,
    Pause,
)
from .reloaded_context import ReloadedContext
from .server_tls import ServerTls
from .tls_config import TlsConfig
from .tls_socket import TlsFailure, TlsSocket, Wanted
from .tokens import checked_token, read_token

__all__ = [
    "HEADERS",
    "KeyFiles",
    "MAX_ANSWER",
    "RENEWAL_TIME",
    "REQUEST_TIME",
    "ClientCredentials",
    "IssuerAnswer",
    "HttpFailure",
    "HttpRequest",
    "Issued",
    "OAuth2Issuer",
    "Pause",
    "ReloadedContext",
    "ServerTls",
    "TlsConfig",
    "TlsFailure",
    "TlsSocket",
    "TokenRequest",
    "Wanted",
    "checked_token",
    "common_name",
    "file_stamps",
    "read_token",
]
