"""Tokens, passwords and brokers that ask for them."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt

from pulsar_trio import (
    BasicProvider,
    BrokerAuthentication,
    CertificateProvider,
    EmbeddedBroker,
    Secret,
    TokenProvider,
    open_broker,
)
from tests.canary import CANARY

KEY = f"{CANARY}-of-sixty-four-bytes".ljust(64, "-").encode()
"""The secret key of all tokens here."""

HTPASSWD = "ada:$apr1$12345678$eLJRD0q0YcLlLtJB1nH7i/\n"
"""The user ada, whose password is the canary."""

TOPIC = "persistent://public/default/t"


def token(role: str | None = "ada", seconds: float | None = None, *, key: bytes = KEY, **claims: Any) -> str:
    """Return a token for a role, which expires after so many seconds. The canary is one of its claims."""
    claims["canary"] = CANARY
    if role is not None:
        claims["sub"] = role
    if seconds is not None:
        claims["exp"] = time.time() + seconds
    return jwt.encode(claims, key, algorithm="HS256")


def authentication(**options: Any) -> BrokerAuthentication:
    providers = (TokenProvider(secret_key=Secret(KEY)), BasicProvider(HTPASSWD), CertificateProvider())
    options.setdefault("superusers", {"root"})
    return BrokerAuthentication(providers, **options)


@asynccontextmanager
async def guarded_broker(
    *, settings: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[EmbeddedBroker]:
    """A broker where ada may produce and consume in public/default. `settings`: of the authentication."""
    async with open_broker(authentication=authentication(**(settings or {})), **options) as broker:
        broker.grant("public/default", "ada", "produce", "consume")
        yield broker
