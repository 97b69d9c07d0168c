"""`HttpAnswer`: a whole answer over HTTP, its JSON, and the error that its status stands for."""

import json
from dataclasses import dataclass
from typing import Any

from ...model.errors import AuthenticationError, PulsarError, RemoteProtocolError, ServerError, broker_error
from ...model.http_url import HttpUrl

MAX_REASON = 500
"""Characters of an answer that an error shows: a web server may send megabytes."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses of a redirect."""

_CODES = {
    401: ServerError.AuthenticationError,
    403: ServerError.AuthorizationError,
    404: ServerError.TopicNotFound,
    408: ServerError.ServiceNotReady,
    409: ServerError.ServiceNotReady,
    412: ServerError.ServiceNotReady,
    429: ServerError.TooManyRequests,
}
"""The codes of the binary protocol for these statuses."""

_WITHOUT_PERMISSION = "Unauthorized to "
"""Begins the reason of a 401 with which a broker refuses a role that it knows; a 403 would be meant."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`url`: the URL that was asked. `location`: the target of a redirect, or empty."""

    url: HttpUrl
    status: int
    location: str
    body: bytes

    @property
    def redirects(self) -> bool:
        """True for a redirect."""
        return self.status in REDIRECTS

    @property
    def refuses_credentials(self) -> bool:
        """True when the broker did not accept the credentials of the request."""
        return self.status == 401 and isinstance(self.refusal(), AuthenticationError)

    def json(self) -> Any:
        """Return the value of a successful answer. Raises `RemoteProtocolError`, or the refusal's error."""
        if self.status != 200:
            raise self.refusal()
        try:
            return json.loads(self.body.decode())
        except (ValueError, RecursionError):
            raise RemoteProtocolError(f"{self.url.address} answered with something else than JSON") from None

    def refusal(self) -> PulsarError:
        """Return the error that the status stands for; the answer's reason is its text."""
        status, reason = self.status, self._reason()
        text = f"{reason} (HTTP status {status} of {self.url.address})"
        if status == 401 and reason.startswith(_WITHOUT_PERMISSION):
            return broker_error(ServerError.AuthorizationError, text)
        if status >= 500:
            return broker_error(ServerError.ServiceNotReady, text)
        if status >= 400:
            return broker_error(_CODES.get(status, ServerError.NotAllowedError), text)
        return RemoteProtocolError(f"{self.url.address} answered with HTTP status {status}")

    def _reason(self) -> str:
        text = self.body.decode("utf-8", "replace")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        reason = found.get("reason") if isinstance(found, dict) else None
        if isinstance(reason, str) and reason:
            return reason[:MAX_REASON]
        return " ".join(text.split())[:MAX_REASON] or "refused without a reason"
