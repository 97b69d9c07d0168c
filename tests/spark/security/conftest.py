"""Fixtures: a broker with TLS that refuses clients without credentials, and an issuer."""

from collections.abc import Iterator

import pytest

from tests.security.certificates import Authority
from tests.spark.security.issuing import issuing
from tests.spark.security.secure_broker import SecureBroker
from tests.trio.security.issuer import LocalIssuer


@pytest.fixture(scope="package")
def secure_broker(authority: Authority) -> Iterator[SecureBroker]:
    broker = SecureBroker(authority)
    yield broker
    broker.stop()


@pytest.fixture(scope="package")
def issuer() -> Iterator[LocalIssuer]:
    with issuing() as opened:
        yield opened
