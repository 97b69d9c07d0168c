"""Clients behind a proxy, and wildcards in permissions: our broker and a real Pulsar decide alike.

Each broker runs twice: with the options `authenticateOriginalAuthData` and
`authorizationAllowWildcardsMatching`, and without.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from tests.security.proxy_peer import ProxyPeer
from tests.security.secure_pulsar import PASSWORD, SecurePulsar, our_broker, real_pulsar, token_of

BROKERS = {"ours": our_broker, "real": real_pulsar}
OURS, REAL = pytest.mark.slow, pytest.mark.real
OTHER_KEY = b"another key of the same length!!"

_numbers = count()


@dataclass(frozen=True, slots=True)
class Setting:
    """A broker, and whether it has both options."""

    pulsar: SecurePulsar
    options: bool


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("ours", False), marks=OURS, id="ours"),
        pytest.param(("ours", True), marks=OURS, id="ours with the options"),
        pytest.param(("real", False), marks=REAL, id="real"),
        pytest.param(("real", True), marks=REAL, id="real with the options"),
    ],
)
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    name, options = request.param
    settings = {
        "proxyRoles": "proxy",
        "authenticateOriginalAuthData": str(options).lower(),
        "authorizationAllowWildcardsMatching": str(options).lower(),
    }
    with BROKERS[name](tmp_path_factory.mktemp("proxied"), **settings) as pulsar:
        permit(pulsar, "public/default", "proxy", "produce", "consume")
        yield Setting(pulsar, options)


def permit(pulsar: SecurePulsar, namespace: str, role: str, *actions: str) -> None:
    path = f"/admin/v2/namespaces/{namespace}/permissions/{quote(role, safe='')}"
    pulsar.admin.request("POST", path, list(actions))


def behind(principal: str, data: str | None = None, method: str = "token") -> dict[str, Any]:
    """Return the fields by which a proxy names a client and passes its credentials on."""
    fields = {"original_principal": principal}
    if data is not None:
        fields |= {"original_auth_data": data, "original_auth_method": method}
    return fields


CONNECTED = "CONNECTED"
INVALID = "AuthorizationError: Invalid roles."
NO_PROXY = "AuthorizationError: Must not set proxyVersion without connecting as a ProxyRole."
FAILED = "AuthenticationError: Failed to authenticate"


@pytest.mark.parametrize(
    ("role", "fields", "by_word", "by_proof"),
    [
        ("proxy", behind("worker"), CONNECTED, FAILED),
        ("proxy", behind("worker", token_of("worker")), CONNECTED, CONNECTED),
        ("proxy", behind("worker", token_of("worker", key=OTHER_KEY)), CONNECTED, FAILED),
        ("proxy", behind("worker", token_of("worker", seconds=-10)), CONNECTED, FAILED),
        ("proxy", behind("worker", f"worker:{PASSWORD}", "basic"), CONNECTED, CONNECTED),
        ("proxy", behind("worker", "worker:wrong", "basic"), CONNECTED, FAILED),
        ("proxy", behind("worker", "", "tls"), CONNECTED, FAILED),
        ("proxy", behind("worker", "x", "unheard-of"), CONNECTED, FAILED),
        ("proxy", behind("worker", token_of("proxy")), CONNECTED, INVALID),
        ("proxy", {}, INVALID, INVALID),
        ("proxy", behind("proxy"), INVALID, FAILED),
        ("worker", behind("stranger"), INVALID, FAILED),
        ("worker", behind("stranger", token_of("stranger")), INVALID, INVALID),
        ("worker", {}, CONNECTED, CONNECTED),
        ("proxy", {"proxy_version": "1", **behind("worker", token_of("worker"))}, CONNECTED, CONNECTED),
        ("proxy", {"proxy_version": "1"}, INVALID, INVALID),
        ("worker", {"proxy_version": "1"}, NO_PROXY, NO_PROXY),
    ],
)
def test_a_proxy_speaks_for_a_client(
    setting: Setting, role: str, fields: dict[str, Any], by_word: str, by_proof: str
) -> None:
    with ProxyPeer(setting.pulsar.port, token_of(role), **fields) as peer:
        assert peer.outcome == (by_proof if setting.options else by_word)


EVERYTHING = {"look up", "produce", "consume"}


@pytest.mark.parametrize(
    ("fields", "by_word", "by_proof"),
    [
        (behind("worker", token_of("worker")), EVERYTHING, EVERYTHING),
        (behind("stranger", token_of("worker")), set(), EVERYTHING),
        (behind("worker", token_of("stranger")), EVERYTHING, set()),
    ],
    ids=["worker", "named stranger", "named worker"],
)
def test_the_role_that_counts_is_named_or_proved(
    setting: Setting, fields: dict[str, Any], by_word: set[str], by_proof: set[str]
) -> None:
    with ProxyPeer(setting.pulsar.port, token_of("proxy"), **fields) as peer:
        assert peer.may() == (by_proof if setting.options else by_word)


def test_credentials_that_a_proxy_passed_on_are_renewed(setting: Setting) -> None:
    """Without the option the broker has no credentials of the client, and the expired ones are the proxy's.

    Only the credentials that expire are asked for, and a renewal is for the role that was proved.
    """
    port, soon = setting.pulsar.port, 2.0
    if not setting.options:
        with ProxyPeer(port, token_of("proxy", soon), **behind("worker")) as peer:
            assert peer.outcome == CONNECTED
            assert not peer.renew(lambda: token_of("proxy"))
        return
    with ProxyPeer(port, token_of("proxy"), **behind("worker", token_of("worker", soon))) as peer:
        assert peer.outcome == CONNECTED
        assert peer.renew(lambda: token_of("worker", soon))
        assert peer.may() == EVERYTHING
        assert peer.renew(lambda: token_of("stranger"))
        assert not peer.renew(lambda: token_of("worker"))


@pytest.mark.parametrize(
    ("granted", "role", "literally", "by_wildcard"),
    [
        ("shop-*", "shop-1", False, True),
        ("shop-*", "shop-", False, True),
        ("shop-*", "my-shop-1", False, False),
        ("shop-*", "shop-*", True, True),
        ("*-shop", "my-shop", False, True),
        ("*-shop", "my-shops", False, False),
        ("*", "anyone", False, True),
        ("*sh*", "*sh-1", False, True),
        ("*sh*", "my-sh-1", False, False),
        ("a*a", "aba", False, False),
        ("a*a", "a*a", True, True),
    ],
)
def test_a_wildcard_stands_for_any_text_at_one_end(
    setting: Setting, granted: str, role: str, literally: bool, by_wildcard: bool
) -> None:
    namespace = f"public/wild-{next(_numbers)}"
    setting.pulsar.admin.request("PUT", f"/admin/v2/namespaces/{namespace}", {})
    permit(setting.pulsar, namespace, granted, "produce")
    with ProxyPeer(setting.pulsar.port, token_of(role)) as peer:
        allowed = by_wildcard if setting.options else literally
        assert peer.may(f"persistent://{namespace}/t") == ({"look up", "produce"} if allowed else set())
