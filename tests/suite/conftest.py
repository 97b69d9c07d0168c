"""Fixtures: the two brokers, a client of whichever it is, and a topic of the test's own."""

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
import trio

from pulsar_trio import Client, open_client
from tests.patience import give_up
from tests.real_pulsar import RealPulsar
from tests.suite.brokers import BrokerUnderTest, OurBroker, RealBroker, prepare_real_pulsar
from tests.suite.line import Line

MAX_BACKOFF = 1.0
"""Seconds: a broker that is back is found soon."""

_numbers = count()


@pytest.fixture(scope="session")
def real_pulsar() -> Iterator[RealPulsar]:
    """One real Pulsar for all tests. Where it cannot be had, they fail with a line that says why."""
    with RealPulsar() as pulsar:
        prepare_real_pulsar(pulsar)
        yield pulsar


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.real)])
def real_or_none(request: pytest.FixtureRequest) -> RealPulsar | None:
    if request.param == "ours":
        return None
    pulsar = request.getfixturevalue("real_pulsar")
    assert isinstance(pulsar, RealPulsar)
    return pulsar


@pytest.fixture
async def broker(real_or_none: RealPulsar | None, nursery: trio.Nursery) -> BrokerUnderTest:
    under_test: BrokerUnderTest
    if real_or_none is not None:
        under_test = RealBroker(real_or_none)
    else:
        under_test = OurBroker(nursery)
        await under_test.start()
        under_test.prepare()
    nursery.start_soon(give_up)
    return under_test


@pytest.fixture
async def client(broker: BrokerUnderTest) -> AsyncIterator[Client]:
    async with open_client(broker.url, max_backoff=MAX_BACKOFF) as client:
        yield client


@pytest.fixture
async def line(broker: BrokerUnderTest, nursery: trio.Nursery) -> Line:
    """A line to the broker that can be cut."""
    line = await nursery.start(Line(broker).run)
    assert isinstance(line, Line)
    return line


@pytest.fixture
async def client_on_line(line: Line) -> AsyncIterator[Client]:
    async with open_client(line.url, max_backoff=MAX_BACKOFF) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the run has."""
    return f"persistent://public/default/{own_name(request)}"


@pytest.fixture
def local_name(request: pytest.FixtureRequest) -> str:
    """The topic's name without domain and namespace, for tests that choose the namespace."""
    return own_name(request)


def own_name(request: pytest.FixtureRequest) -> str:
    """From the test's name; without "-partition-", which makes a partition of a topic's name."""
    letters = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{letters.replace('-partition-', '-part-')}-{next(_numbers)}"
