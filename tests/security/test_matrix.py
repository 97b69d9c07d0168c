"""The table of TLS and credentials, with our client, the official one, the Java client and the Go client.

All of them meet our broker. `test_secure_pulsar.py` has our client and a real Pulsar. Our client's refusals
are asserted by type and text. The others count as refused when they do not exchange the messages.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path

import pytest
import trio

from pulsar_trio import Authentication, Basic, MutualTls, OAuth2, TimedOut, TlsConfig, Token, open_client
from tests.interop.programs import answers, go_command, java_command
from tests.official.client import in_thread
from tests.real_pulsar import Unavailable
from tests.security.matrix import CASES, Case
from tests.security.official_program import answer
from tests.security.site import Site, open_site, topic

breaks = pytest.mark.breaks("GAP-06", why="a client begins a TLS handshake at a port without TLS")


GO_REFUSES = ("another host, name not verified",)
"""Without `TLSValidateHostname` the Go client leaves the name to Go's own TLS, which verifies it."""


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def every_record(caplog: pytest.LogCaptureFixture) -> None:
    """The canary is searched in debug records, too."""
    caplog.set_level(logging.DEBUG, "pulsar_trio")


def authentication(options: dict[str, str]) -> Authentication | None:
    match options["method"]:
        case "token":
            return Token(Path(options["token"]))
        case "basic":
            return Basic(options["user"], options["password"])
        case "tls":
            return MutualTls()
        case "oauth2":
            return OAuth2(options["issuer"], credentials=options["credentials"])
        case _:
            return None


async def exchange(case: Case, options: dict[str, str]) -> None:
    """Send messages one by one and receive each in order."""
    tls = TlsConfig(
        trust=options.get("trust"),
        certificate=options.get("certificate"),
        key=options.get("key"),
        insecure_accept_any_host=case.verify == "chain",
        insecure_accept_any_certificate=case.verify == "nothing",
    )
    if options["url"].startswith("pulsar://"):
        tls = TlsConfig()
    timeout = 0.5 if case.error is TimedOut else float(options["timeout"])
    async with (
        open_client(
            options["url"],
            tls=tls,
            authentication=authentication(options),
            operation_timeout=timeout,
        ) as client,
        client.subscribe(topic(case), "s") as consumer,
        client.create_producer(topic(case)) as producer,
    ):
        for number in range(case.messages):
            await producer.send(b"%d" % number)
            message = await consumer.receive()
            assert message.value == b"%d" % number
            consumer.acknowledge(message)
            await trio.sleep(case.pause / 1000)


@breaks
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_our_client(site: Site, case: Case) -> None:
    options = site.options(case)
    if case.error is None:
        await exchange(case, options)
        assert topic(case) in site.topics()
        return
    with pytest.raises(case.error, match=case.words):
        await exchange(case, options)
    assert site.topics() == set()


@breaks
@pytest.mark.slow
@pytest.mark.official
async def test_the_official_client(site: Site) -> None:
    found: dict[str, str] = {}

    async def run(case: Case) -> None:
        found[case.name] = await in_thread(answer, site.options(case))

    async with trio.open_nursery() as nursery:
        for case in CASES:
            nursery.start_soon(run, case)
    check(found, site)


@breaks
@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize(
    ("command", "refuses"),
    [
        pytest.param(java_command, (), id="Java"),
        pytest.param(go_command, GO_REFUSES, id="Go", marks=pytest.mark.long),
    ],
)
async def test_a_client_of_another_language(
    site: Site, command: Callable[[], list[str]], refuses: Collection[str]
) -> None:
    try:
        program = await trio.to_thread.run_sync(command)
    except Unavailable as reason:
        pytest.skip(str(reason))
    check(await answers(program, map(site.options, CASES)), site, refuses)


def check(found: dict[str, str], site: Site, refuses: Collection[str] = ()) -> None:
    """Compare the answers with the table; a refused client has left no topic.

    `refuses`: the cases that this client refuses, though its options say otherwise.
    """
    refused = {case.name for case in CASES if case.error} | set(refuses)
    expected = {case.name: "refused" if case.name in refused else "ok" for case in CASES}
    assert found.keys() == expected.keys()
    wrong = {name: text for name, text in found.items() if text.partition(" ")[0] != expected[name]}
    assert wrong == {}
    assert site.topics() == {topic(case) for case in CASES if case.name not in refused}
