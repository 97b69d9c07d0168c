"""`CertificateProvider`: the client's certificate is its identity (method "tls")."""

from ...model.errors import AuthenticationError
from .provider import Identity


class CertificateProvider:
    """The role is the common name of the certificate. The adapter verifies the certificate."""

    __slots__ = ()

    method = "tls"

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        if not certificate:
            raise AuthenticationError("the client has shown no certificate with a common name")
        return Identity(certificate)

    def __repr__(self) -> str:
        return "CertificateProvider()"
