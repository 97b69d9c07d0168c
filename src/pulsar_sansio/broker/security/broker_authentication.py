"""`BrokerAuthentication`: the options of a broker that asks its clients for credentials."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...model.errors import InvalidConfiguration
from .provider import AuthenticationProvider

LONGEST_INTERVAL = 86_400.0
"""Seconds: the longest `refresh_interval`."""


@dataclass(frozen=True, slots=True)
class BrokerAuthentication:
    """Options of authentication and authorization. Raises `InvalidConfiguration`, which names the option.

    `providers`: one for each method that clients may use.
    `anonymous_role`: the role of clients whose method has no provider; None refuses those clients.
    `superusers`: roles that may do everything. `proxy_roles`: roles of Pulsar's proxies, which connect on
    behalf of other roles.
    `refresh_interval`: seconds that a client has to renew credentials that have expired
    (`authenticationRefreshCheckSeconds`).
    `authenticate_original`: whether a client behind a proxy has to prove the role that the proxy names
    (`authenticateOriginalAuthData`). The proxy has to pass the client's credentials on.
    `authorization`: whether roles need permissions. Without it every role may do everything.
    `wildcard_roles`: whether the role of a permission may begin or end with `*`, which stands for any text
    (`authorizationAllowWildcardsMatching`).
    """

    providers: tuple[AuthenticationProvider, ...]
    anonymous_role: str | None = None
    superusers: frozenset[str] = frozenset()
    proxy_roles: frozenset[str] = frozenset()
    refresh_interval: float = 60.0
    authenticate_original: bool = False
    authorization: bool = True
    wildcard_roles: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "providers", self._checked_providers())
        object.__setattr__(self, "superusers", _roles("superusers", self.superusers))
        object.__setattr__(self, "proxy_roles", _roles("proxy_roles", self.proxy_roles))
        if self.anonymous_role is not None and not _is_role(self.anonymous_role):
            raise InvalidConfiguration(f"anonymous_role: a role or None, not {self.anonymous_role!r:.200}")
        interval = self.refresh_interval
        if (
            isinstance(interval, bool)
            or not isinstance(interval, (int, float))
            or not 0.001 <= interval <= LONGEST_INTERVAL
        ):
            raise InvalidConfiguration(
                f"refresh_interval: seconds from 0.001 to {LONGEST_INTERVAL:g}, not {interval!r}"
            )
        for option in ("authenticate_original", "authorization", "wildcard_roles"):
            value = getattr(self, option)
            if not isinstance(value, bool):
                raise InvalidConfiguration(f"{option}: True or False, not {value!r:.200}")

    def _checked_providers(self) -> tuple[AuthenticationProvider, ...]:
        given: object = self.providers
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidConfiguration(f"providers: a list of providers, not {type(given).__name__}")
        providers = tuple(given)
        for each in providers:
            if not isinstance(getattr(each, "method", None), str) or not callable(
                getattr(each, "authenticate", None)
            ):
                raise InvalidConfiguration(
                    f"providers: each has a method and authenticate, not {type(each).__name__}"
                )
        methods = [each.method for each in providers]
        if len(set(methods)) != len(methods):
            raise InvalidConfiguration(f"providers: one for each method, not {', '.join(methods)}")
        if not providers and self.anonymous_role is None:
            raise InvalidConfiguration("providers: at least one, or an anonymous_role")
        return providers

    def provider(self, method: str) -> AuthenticationProvider | None:
        """Return the provider of a method, if there is one."""
        return next((each for each in self.providers if each.method == method), None)


def _is_role(role: object) -> bool:
    return isinstance(role, str) and bool(role.strip())


def _roles(option: str, given: object) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidConfiguration(f"{option}: a set of roles, not {given!r:.200}")
    roles = frozenset(given)
    if not all(map(_is_role, roles)):
        raise InvalidConfiguration(f"{option}: roles are text that is not blank, not {given!r:.200}")
    return roles
