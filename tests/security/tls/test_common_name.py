"""`common_name`: the role of a client, of what `ssl` tells about its certificate."""

from collections.abc import Mapping

import pytest

from pulsar_security import common_name

ORGANIZATION = (("organizationName", "example"),)


@pytest.mark.parametrize(
    ("certificate", "role"),
    [
        (None, None),
        ({}, None),
        ({"subject": ()}, None),
        ({"subject": (ORGANIZATION,)}, None),
        ({"subject": ((("commonName", ""),),)}, None),
        ({"subject": ((("commonName", "worker"),), ORGANIZATION)}, "worker"),
        ({"subject": ((("organizationName", "example"), ("commonName", "worker")),)}, "worker"),
        ({"subject": ((("commonName", "first"),), (("commonName", "last"),))}, "last"),
        ({"issuer": ((("commonName", "authority"),),)}, None),
    ],
)
def test_the_role_in_a_certificate(certificate: Mapping[str, object] | None, role: str | None) -> None:
    """The most specific name counts; an authority is no role."""
    assert common_name(certificate) == role
