"""Key pairs for the tests, each made once: RSA, and two curves."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

KINDS = ("rsa", "p256", "p521")


@cache
def key_pair(kind: str, number: int = 0) -> tuple[bytes, bytes]:
    """The public and the private key in PEM. `number`: of several pairs of a kind."""
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    if kind == "rsa":
        key = rsa.generate_private_key(65537, 2048)
    else:
        key = ec.generate_private_key(ec.SECP256R1() if kind == "p256" else ec.SECP521R1())
    return (
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
