"""`Authenticator`: asks the provider of a method, and judges what the provider answers.

The connections of clients and the administration over HTTP share it.
"""

from collections.abc import Callable

from ...model.errors import AuthenticationError
from .broker_authentication import BrokerAuthentication
from .provider import Challenge, Identity, Outcome

MAX_CREDENTIALS = 64 * 1024
"""Bytes of the largest credentials that a provider is asked about."""


class Authenticator:
    """`wall_time`: returns the milliseconds since 1970."""

    __slots__ = ("_wall_time", "settings")

    def __init__(self, settings: BrokerAuthentication, wall_time: Callable[[], int]) -> None:
        self.settings = settings
        self._wall_time = wall_time

    def begin(self, method: str, data: bytes, certificate: str | None) -> Outcome:
        """Judge the first credentials of a client. Raises `AuthenticationError`.

        A client whose method has no provider gets the anonymous role, where there is one.
        """
        provider = self.settings.provider(method)
        if provider is None:
            if self.settings.anonymous_role is None:
                raise AuthenticationError(f"no anonymous role, and no provider of the method {method!r:.100}")
            return Identity(self.settings.anonymous_role)
        return self.step(lambda data: provider.authenticate(data, certificate), data)

    def step(self, judge: Callable[[bytes], Outcome], data: bytes) -> Outcome:
        """Pass credentials to `judge` of a provider. Raises `AuthenticationError`."""
        if len(data) > MAX_CREDENTIALS:
            raise AuthenticationError(f"credentials of {len(data)} bytes, allowed are {MAX_CREDENTIALS}")
        try:
            outcome = judge(data)
        except AuthenticationError:
            raise
        except Exception as error:  # its text and its cause may hold the credentials
            raise AuthenticationError(f"the provider raised {type(error).__name__}") from None
        if isinstance(outcome, Challenge):
            return outcome
        if not isinstance(outcome, Identity) or not isinstance(outcome.role, str) or not outcome.role:
            raise AuthenticationError("the credentials have no role")
        now = self._wall_time()
        if outcome.begins_at_ms is not None and now < outcome.begins_at_ms:
            raise AuthenticationError("the credentials are not valid yet")
        if outcome.expires_at_ms is not None and now >= outcome.expires_at_ms:
            raise AuthenticationError("the credentials have expired")
        return outcome

    def role(self, method: str, data: bytes, certificate: str | None) -> str:
        """Return the role of credentials that come in one step. Raises `AuthenticationError`."""
        outcome = self.begin(method, data, certificate)
        if isinstance(outcome, Challenge):
            raise AuthenticationError("the method needs several steps")
        return outcome.role

    def valid_principals(self, role: str, original: str | None) -> bool:
        """True when a proxy names the role that it stands for, and no other client does."""
        proxies = self.settings.proxy_roles
        if role in proxies:
            return bool(original) and original not in proxies
        return not original
