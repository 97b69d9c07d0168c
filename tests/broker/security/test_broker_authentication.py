"""Options of authentication are checked, and each error names its option."""

from typing import Any

import pytest

from pulsar_sansio import (
    BrokerAuthentication,
    BrokerConfig,
    CertificateProvider,
    InvalidConfiguration,
)


def test_sets_and_lists_of_roles_are_taken() -> None:
    made = BrokerAuthentication([CertificateProvider()], superusers=["a", "a"], proxy_roles={"p"})  # type: ignore[arg-type]
    assert made.superusers == frozenset({"a"})
    assert made.providers[0].method == "tls"
    assert made.provider("token") is None


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"providers": ()}, "providers"),
        ({"providers": 3}, "providers"),
        ({"providers": "tls"}, "providers"),
        ({"providers": [object()]}, "providers"),
        ({"providers": [CertificateProvider(), CertificateProvider()]}, "providers"),
        ({"anonymous_role": ""}, "anonymous_role"),
        ({"superusers": "admin"}, "superusers"),
        ({"superusers": [" "]}, "superusers"),
        ({"proxy_roles": [3]}, "proxy_roles"),
        ({"refresh_interval": 0}, "refresh_interval"),
        ({"refresh_interval": True}, "refresh_interval"),
        ({"authorization": 1}, "authorization"),
        ({"authenticate_original": "yes"}, "authenticate_original"),
        ({"wildcard_roles": None}, "wildcard_roles"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidConfiguration, match=name):
        BrokerAuthentication(**{"providers": [CertificateProvider()], **options})


def test_the_option_of_the_broker_has_its_type_checked() -> None:
    with pytest.raises(InvalidConfiguration, match="authentication: a BrokerAuthentication"):
        BrokerConfig(authentication="token")  # type: ignore[arg-type]
