"""A function of the application names the service URL: at the opening, and after failed attempts."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from pulsar_trio import AutoFailover, InvalidConfiguration, InvalidServiceUrl, open_broker, open_client
from pulsar_trio.client import service_url_source
from pulsar_trio.client.service_url_source import PAUSE, ServiceUrlSource
from tests.canary import CANARY
from tests.trio.client.test_failover import Cluster, changes
from tests.trio.waiting import until

TOPIC = "persistent://public/default/t"
NOWHERE = "pulsar://127.0.0.1:1"
SECONDS = 5.0

Provider = Callable[[], str | Awaitable[str]]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "pulsar_trio.connection")
    return caplog


def plain(url: str) -> Provider:
    return lambda: url


def asynchronous(url: str) -> Provider:
    async def provider() -> str:
        await trio.lowlevel.checkpoint()
        return url

    return provider


def returning_an_awaitable(url: str) -> Provider:
    return lambda: asynchronous(url)()


@pytest.mark.parametrize("kind", [plain, asynchronous, returning_an_awaitable])
async def test_a_client_is_opened_by_the_url_of_a_function(kind: Callable[[str], Provider]) -> None:
    async with open_broker() as broker, open_client(kind(broker.url)) as client:
        assert repr(client) == f"<Client of {broker.url}, 0 connections>"
        async with client.create_producer(TOPIC) as producer:
            await producer.send(b"x")
        assert broker.stats(TOPIC)["msgInCounter"] == 1


async def test_a_producer_follows_the_function_when_its_broker_is_gone(
    nursery: trio.Nursery, warnings: pytest.LogCaptureFixture
) -> None:
    """The connections end, as with `update_service_url`, and what was not confirmed is sent again."""
    first = Cluster(nursery)
    former = await first.start()
    urls = [former.url]
    async with open_broker() as latter:
        async with (
            open_client(lambda: urls[-1], max_backoff=0.1) as client,
            client.create_producer(TOPIC) as producer,
        ):
            await producer.send(b"1")
            urls.append(latter.url)
            await producer.send(b"2")
            assert former.stats(TOPIC)["msgInCounter"] == 2, "nothing has failed yet"
            await first.stop()
            await producer.send(b"3")
            assert latter.stats(TOPIC)["msgInCounter"] == 1
            assert repr(client).startswith(f"<Client of {latter.url}, ")
    reason = "the provider of the service URL returns it"
    assert changes(warnings) == [f"changed from {former.url} to {latter.url}: {reason}"]


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_url_source, "PAUSE", 0.001)


@pytest.mark.usefixtures("no_pause")
async def test_the_same_url_ends_no_connection(
    nursery: trio.Nursery, warnings: pytest.LogCaptureFixture
) -> None:
    """A URL is the same where only its text differs."""
    asked: list[str] = []
    cluster = Cluster(nursery)
    broker = await cluster.start()

    def provider() -> str:
        asked.append(f"PULSAR://127.0.0.1:{broker.port}/")
        return asked[-1]

    async with (
        open_client(provider, max_backoff=0.1) as client,
        client.create_producer(TOPIC) as producer,
    ):
        await producer.send(b"1")
        await cluster.stop()
        await until(lambda: len(asked) >= 3)
        await cluster.start()
        await producer.send(b"2")
    assert changes(warnings) == []


@pytest.mark.usefixtures("no_pause")
async def test_the_application_may_name_a_url_itself() -> None:
    """The function is asked again after an attempt has failed, and its answer then counts."""
    asked: list[str] = []

    def provider() -> str:
        asked.append(former.url)
        return asked[-1]

    async with open_broker() as former, open_broker() as latter:
        async with (
            open_client(provider, max_backoff=0.1) as client,
            client.create_producer(TOPIC) as producer,
        ):
            client.update_service_url(latter.url)
            await producer.send(b"1")
            assert latter.stats(TOPIC)["msgInCounter"] == len(asked) == 1
            client.update_service_url(NOWHERE)
            await producer.send(b"2")
            assert former.stats(TOPIC)["msgInCounter"] == 1


class Fault(Exception):
    pass


async def test_an_exception_of_the_function_ends_the_opening() -> None:
    def fails() -> str:
        raise Fault

    def returns_nothing() -> Any:
        return None

    with pytest.raises(Fault):
        async with open_client(fails):
            pass
    with pytest.raises(InvalidServiceUrl, match="the provider returned NoneType, not the text of a URL"):
        async with open_client(returns_nothing):
            pass
    with pytest.raises(InvalidServiceUrl, match="begins with pulsar://"):
        async with open_client(lambda: "ftp://x"):
            pass


async def test_a_failover_and_a_function_exclude_each_other() -> None:
    def unasked() -> str:
        raise AssertionError

    failover = AutoFailover(("pulsar://b",))
    with pytest.raises(InvalidConfiguration, match="the provider of the service URL chooses the cluster"):
        async with open_client(unasked, failover=failover):
            pass


class Run:
    """A source that runs in a nursery, with what it gave and said."""

    def __init__(self, provider: Provider, nursery: trio.Nursery) -> None:
        self.source = ServiceUrlSource(provider)
        self.used: list[str] = []
        self.reports: list[str] = []
        nursery.start_soon(self.source.run, SECONDS, self.used.append, self.reports.append)


async def test_questions_come_one_at_a_time_with_a_pause(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Failures while the provider is asked, or in the pause, are one further question."""
    began = trio.current_time()
    asked: list[float] = []

    async def provider() -> str:
        asked.append(trio.current_time() - began)
        await trio.sleep(3)
        return f"answer {len(asked)}"

    run = Run(provider, nursery)
    await trio.sleep(1)
    assert asked == []
    run.source.ask_soon()
    await trio.sleep(1)
    run.source.ask_soon()
    await trio.sleep(2 + PAUSE / 2)
    run.source.ask_soon()
    await trio.sleep(20)
    assert asked == pytest.approx([1, 1 + 3 + PAUSE])
    assert run.used == ["answer 1", "answer 2"]
    assert run.reports == []


async def never() -> str:
    await trio.sleep_forever()
    raise AssertionError


async def shows_a_secret() -> str:
    raise ValueError(CANARY)


async def is_cut_off() -> str:
    raise ConnectionResetError(104, "Connection reset by peer")


async def names_no_url() -> Any:
    return 7


@pytest.mark.parametrize(
    ("provider", "report"),
    [
        (never, "the provider did not answer within 5 s"),
        (shows_a_secret, "the provider raised ValueError"),
        (is_cut_off, "[Errno 104] Connection reset by peer"),
        (names_no_url, "the provider returned int, not the text of a URL"),
    ],
)
async def test_a_failure_is_reported_and_the_next_question_comes(
    provider: Provider, report: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    run = Run(provider, nursery)
    for count in (1, 2):
        run.source.ask_soon()
        await trio.sleep(SECONDS + PAUSE + 1)
        assert run.reports == [report] * count
    assert run.used == []


@pytest.mark.usefixtures("no_pause")
async def test_an_answer_that_cannot_be_used_is_in_the_log(warnings: pytest.LogCaptureFixture) -> None:
    """The client stays where it is, and asks again after the next failure."""
    async with open_broker() as broker:
        answers = [NOWHERE, "ftp://x", broker.url]
        async with open_client(lambda: answers.pop(0), max_backoff=0.1) as client:
            async with client.create_producer(TOPIC) as producer:
                await producer.send(b"x")
    texts = [record.getMessage() for record in warnings.records]
    assert [text for text in texts if text.startswith("the service URL stays")] == [
        "the service URL stays as it is: service URL 'ftp://x': it begins with pulsar://, pulsar+ssl://, "
        "http:// or https://, found 'ftp'"
    ]
    assert answers == []
