"""The identity of a client: what its provider returns, and what becomes of a provider that is wrong."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import Address
from pulsar_sansio.client.outputs import CredentialsWanted
from pulsar_trio import (
    Authentication,
    Basic,
    CredentialsFailed,
    CredentialSteps,
    InvalidConfiguration,
    MutualTls,
    Secret,
    Token,
    open_client,
)
from pulsar_trio.application_function import MAX_THREADS
from pulsar_trio.client.driver import Driver
from pulsar_trio.client.options import client_config
from pulsar_trio.security.identity import ClientIdentity
from pulsar_trio.transport.background import background
from tests.canary import CANARY

BROKER = Address("broker", 6650)


def wanted(method: str = "token", challenge: bytes | None = None, link: int = 1) -> CredentialsWanted:
    return CredentialsWanted(link, BROKER, method, challenge)


async def asked(authentication: Authentication, seconds: float = 5) -> bytes:
    found = await ClientIdentity(None, authentication).credentials(wanted(authentication.method), seconds)
    return found.reveal()


async def test_every_source_of_a_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{CANARY}\n")

    async def fetched() -> Secret:
        return Secret(CANARY)

    def begun() -> Awaitable[Secret]:
        return fetched()

    for source in (CANARY, Secret(CANARY), file, lambda: CANARY, fetched, begun):
        assert await asked(Token(source)) == CANARY.encode()


async def test_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    token = Token(file)
    assert await asked(token) == b"first"
    file.write_text("second")
    assert await asked(token) == b"second"


async def test_a_name_and_password_and_a_certificate() -> None:
    assert await asked(Basic("user", "pass:word")) == b"user:pass:word"
    assert await asked(MutualTls()) == b""


class Nothing(Authentication):
    method = "nothing"


class Broken(Authentication):
    method = "broken"

    async def credentials(self, host: str) -> Secret:
        raise ValueError(CANARY)


class RequestFailed(OSError):
    """The error of a library for HTTP, many of which are an `OSError`."""


class Unreachable(Authentication):
    method = "unreachable"

    async def credentials(self, host: str) -> Secret:
        raise RequestFailed(f"no answer from https://issuer/token?secret={CANARY}")


class Unusable(Authentication):
    method = "unusable"

    async def credentials(self, host: str) -> Any:
        return CANARY


class Endless(Authentication):
    method = "endless"

    async def credentials(self, host: str) -> Secret:
        await trio.sleep_forever()
        raise AssertionError


def no_token() -> Any:
    return 7


@pytest.mark.parametrize(
    ("authentication", "words"),
    [
        (Nothing(), "the class Nothing overrides neither credentials nor steps"),
        (Broken(), "the provider raised ValueError"),
        (Unreachable(), "the provider raised RequestFailed"),
        (Unusable(), "returned str, not a Secret"),
        (Token(no_token), "returned int, not text"),
        (Token(lambda: f"{CANARY} "), "a token has spaces"),
        (Token(Path("/no/such/file")), "No such file"),
        (Token(Path("/dev/zero")), "more than 65536 bytes"),
    ],
)
async def test_the_error_of_a_provider_names_the_fault_and_no_secret(
    authentication: Authentication, words: str
) -> None:
    with pytest.raises(CredentialsFailed, match=words) as caught:
        await asked(authentication)
    assert CANARY not in str(caught.value)


async def test_a_provider_that_does_not_answer(autojump_clock: object) -> None:
    with pytest.raises(CredentialsFailed, match="did not answer within 5 s"):
        await asked(Endless())


async def test_a_function_that_never_returns_takes_no_thread_of_others() -> None:
    """Each connection that is tried again asks it again. A thread cannot be ended."""
    calls: list[None] = []
    over = threading.Event()

    def hang() -> str:
        calls.append(None)
        over.wait()
        return "late"

    token = Token(hang)
    try:
        for _ in range(2 * MAX_THREADS):
            with pytest.raises(CredentialsFailed, match="did not answer"):
                await asked(token, 0.01)
        assert len(calls) == MAX_THREADS
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    finally:
        over.set()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Token(""),
        lambda: Token("two words"),
        lambda: Token(7),  # type: ignore[arg-type]
        lambda: Basic("a:b", "c"),
        lambda: Basic("", "c"),
    ],
)
def test_wrong_credentials_are_refused_at_once(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidConfiguration):
        wrong()


def test_no_text_has_the_secret() -> None:
    assert CANARY not in repr([Token(CANARY), Token(lambda: CANARY), Basic("user", CANARY), Secret(CANARY)])


async def test_a_class_without_a_method_is_refused() -> None:
    class Nameless(Authentication):
        pass

    with pytest.raises(InvalidConfiguration, match="authentication_method"):
        async with open_client("pulsar://localhost", authentication=Nameless()):
            pass


class Doubling(Authentication):
    """Answers each challenge with the challenge, twice."""

    method = "doubling"

    def steps(self, host: str) -> CredentialSteps:
        return _Doubling()


class _Doubling(CredentialSteps):
    async def first(self) -> Secret:
        return Secret(b"first")

    async def answer(self, challenge: bytes) -> Secret:
        return Secret(challenge * 2)


async def test_a_method_with_several_steps() -> None:
    identity = ClientIdentity(None, Doubling())
    assert (await identity.credentials(wanted("doubling"), 5)).reveal() == b"first"
    assert (await identity.credentials(wanted("doubling", b"ab"), 5)).reveal() == b"abab"


async def test_a_challenge_of_a_method_with_one_step() -> None:
    identity = ClientIdentity(None, Token("text"))
    await identity.credentials(wanted(), 5)
    with pytest.raises(CredentialsFailed, match="one step"):
        await identity.credentials(wanted(challenge=b"more"), 5)


class Keeping(Authentication):
    """Returns one text until it has to be discarded, then the next."""

    method = "keeping"

    def __init__(self, *texts: bytes) -> None:
        self.texts = list(texts)

    async def credentials(self, host: str) -> Secret:
        return Secret(self.texts[0])

    def discard(self, credentials: Secret) -> None:
        if credentials == Secret(self.texts[0]):
            del self.texts[0]


async def test_credentials_that_a_broker_takes_no_more_are_discarded() -> None:
    """INV-N10: for renewals, and after a refusal. Links that showed the old text share the next one."""
    identity = ClientIdentity(None, Keeping(b"one", b"two", b"three"))

    async def shown(link: int) -> bytes:
        return (await identity.credentials(wanted("keeping", link=link), 5)).reveal()

    assert [await shown(1), await shown(2), await shown(3)] == [b"one"] * 3
    assert [await shown(1), await shown(2)] == [b"two"] * 2
    identity.refused(3)  # it showed the first text
    assert await shown(4) == b"two"
    identity.refused(4)
    identity.disconnected(4)
    assert await shown(5) == b"three"


async def test_a_provider_that_fails_to_discard_costs_one_link() -> None:
    identity = ClientIdentity(None, Keeping(b"one"))
    await identity.credentials(wanted("keeping"), 5)
    with pytest.raises(CredentialsFailed, match="raised IndexError"):
        await identity.credentials(wanted("keeping"), 5)


async def test_the_steps_of_a_link_that_is_gone_are_not_kept() -> None:
    """The link may end before its provider is asked."""
    identity = ClientIdentity(None, Doubling())
    driver = Driver(client_config("pulsar://localhost", {}), 1, identity, None)
    async with background(driver, trio.lowlevel.checkpoint):
        driver._on_credentials_wanted(wanted("doubling", link=99))
        await trio.testing.wait_all_tasks_blocked()
    assert identity._steps == identity._shown == {}
