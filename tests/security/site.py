"""Everything that the table of cases meets: brokers, certificates, tokens and an issuer."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio

from pulsar_trio import EmbeddedBroker, ServerTls
from tests.canary import CANARY
from tests.security.certificates import Authority, Files, self_signed
from tests.security.matrix import Case
from tests.trio.broker.identities import guarded_broker, token
from tests.trio.security.issuer import Answer, open_issuer

HOSTS = ("127.0.0.1", "localhost")
"""The names of a broker. The Java client looks up the name of an address, and verifies that."""
TOKEN_LIFE = 2
"""Seconds."""

OTHER_KEY = b"o" * 64

PATIENT, IMPATIENT = 60, 3
"""Seconds of a client for one operation: where it is let in, and where some clients repeat a refusal."""


@dataclass
class Site:
    """Brokers by the name of their address, files by the name of what they are, and the issuer."""

    urls: dict[str, str] = field(default_factory=dict)
    brokers: list[EmbeddedBroker] = field(default_factory=list)
    trust: dict[str, Path] = field(default_factory=dict)
    certificates: dict[str, Files] = field(default_factory=dict)
    tokens: dict[str, Path] = field(default_factory=dict)
    issuers: dict[str, str] = field(default_factory=dict)
    credentials: dict[str, Path] = field(default_factory=dict)

    def options(self, case: Case) -> dict[str, str]:
        """Return what a program is told about a case."""
        options = {
            "name": case.name,
            "url": self.urls[case.broker],
            "topic": topic(case),
            "messages": str(case.messages),
            "pause": str(case.pause),
            "timeout": str(IMPATIENT if case.error else PATIENT),
            "verify": case.verify,
            "method": case.method,
        }
        if case.trust is not None:
            options["trust"] = str(self.trust[case.trust])
        if case.certificate is not None:
            files = self.certificates[case.certificate]
            options |= {"certificate": str(files.certificate), "key": str(files.key)}
        if case.method == "token":
            options["token"] = str(self.tokens[case.credential])
        elif case.method == "basic":
            options["user"] = "eve" if case.credential == "unknown" else "ada"
            options["password"] = f"{CANARY}{'-wrong' if case.credential == 'wrong' else ''}"
        elif case.method == "oauth2":
            options["issuer"] = self.issuers[case.credential]
            options["credentials"] = str(self.credentials[case.credential])
        return options

    def topics(self) -> set[str]:
        """Return the topics of all brokers."""
        return {name for broker in self.brokers for name in broker.topics()}


def topic(case: Case) -> str:
    """Return the topic of a case."""
    name = "-".join("".join(letter if letter.isalnum() else " " for letter in case.name).split())
    return f"persistent://public/default/{name}"


@asynccontextmanager
async def open_site(folder: Path) -> AsyncIterator[Site]:
    """Start the brokers and the issuer with files in this folder."""
    site = Site()
    authority, foreign = Authority(folder), Authority(folder, "foreign")
    site.trust = {"authority": authority.file, "foreign": foreign.file}
    now, day = datetime.now(UTC), timedelta(days=1)
    site.certificates = {
        "worker": authority.issue(common_name="ada"),
        "stranger": authority.issue(common_name="eve"),
        "foreign": foreign.issue(common_name="ada"),
        "expired": authority.issue(common_name="ada", begins=now - 9 * day, ends=now - day),
    }
    good = authority.issue(*HOSTS)
    served = {
        "tls": ServerTls(good.certificate, good.key, trust=authority.file),
        "certificate required": ServerTls(
            good.certificate, good.key, trust=authority.file, require_client_certificate=True
        ),
        "another host": authority.server("elsewhere.example"),
        "expired": _server(authority.issue(*HOSTS, begins=now - 9 * day, ends=now - day)),
        "not valid yet": _server(authority.issue(*HOSTS, begins=now + day, ends=now + 9 * day)),
        "self-signed": _server(self_signed(folder)),
    }
    async with AsyncExitStack() as stack:
        for name, tls in served.items():
            broker = await stack.enter_async_context(
                guarded_broker(
                    tls=tls, tls_port=0, http_port=0, https_port=0, settings={"refresh_interval": 1}
                )
            )
            site.brokers.append(broker)
            site.urls[name] = str(broker.tls_url)
        main = site.brokers[0]
        site.urls |= {
            "plain": main.url,
            "https": str(main.admin_url_tls),
            "no TLS to TLS": site.urls["tls"].replace("pulsar+ssl", "pulsar"),
            "TLS to no TLS": main.url.replace("pulsar", "pulsar+ssl"),
        }
        await _begin_tokens(site, folder, stack)
        await _begin_issuers(site, folder, stack)
        yield site


def _server(files: Files) -> ServerTls:
    return ServerTls(files.certificate, files.key)


async def _begin_tokens(site: Site, folder: Path, stack: AsyncExitStack) -> None:
    """Write files with tokens; the expiring one is renewed while the site is open."""
    texts = {
        "good": token(),
        "stranger": token("eve"),
        "expired": token(seconds=-5),
        "another key": token(key=OTHER_KEY),
        "garbage": f"no.token.at-all-{CANARY}",
        "expiring": token(seconds=TOKEN_LIFE),
    }
    for number, (name, text) in enumerate(texts.items()):
        site.tokens[name] = folder / f"token-{number}"
        site.tokens[name].write_text(text)

    async def renew() -> None:
        file = site.tokens["expiring"]
        while True:
            await trio.sleep(0.2)
            fresh = file.with_name("token-fresh")
            fresh.write_text(token(seconds=TOKEN_LIFE))
            fresh.rename(file)  # readers see the old token or the new one

    nursery = await stack.enter_async_context(trio.open_nursery())
    stack.callback(nursery.cancel_scope.cancel)
    nursery.start_soon(renew)


async def _begin_issuers(site: Site, folder: Path, stack: AsyncExitStack) -> None:
    """Start issuers of good, expiring and wrong tokens, and one that refuses the client secret."""
    made: dict[str, dict[str, Any]] = {
        "good": {},
        "expiring": {"seconds": TOKEN_LIFE},
        "another key": {"key": OTHER_KEY},
    }
    for number, name in enumerate([*made, "wrong"]):
        issuer = await stack.enter_async_context(open_issuer())
        issuer.tokens()
        issuer.answers["/token"] = _answer(made.get(name))
        site.issuers[name] = issuer.url
        site.credentials[name] = folder / f"credentials-{number}.json"
        site.credentials[name].write_text(
            json.dumps(
                {
                    "type": "client_credentials",
                    "client_id": "ada",
                    "client_secret": CANARY,
                    "issuer_url": issuer.url,
                }
            )
        )


def _answer(options: dict[str, Any] | None) -> Any:
    """Return an issuer's answer: tokens made with these options, or a refusal."""

    def answer(form: dict[str, str]) -> Answer:
        if options is None or form.get("client_secret") != CANARY:
            return 401, {"error": "invalid_client", "error_description": "unknown client"}
        life = options.get("seconds", 3600) - 1  # some clients keep a token for all of its life
        return 200, {"access_token": token(**options), "token_type": "Bearer", "expires_in": life}

    return answer
