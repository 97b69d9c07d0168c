"""`CertificateProvider`: the common name of a verified certificate is the role."""

import pytest

from pulsar_sansio import AuthenticationError, Identity
from pulsar_sansio.broker.security.certificate import CertificateProvider


def test_a_certificate_is_the_identity_where_it_has_a_name() -> None:
    provider = CertificateProvider()
    assert provider.authenticate(b"ignored", "ada") == Identity("ada")
    for missing in (None, ""):
        with pytest.raises(AuthenticationError, match="no certificate with a common name"):
            provider.authenticate(b"", missing)
    assert provider.method == "tls"
    assert repr(provider) == "CertificateProvider()"
