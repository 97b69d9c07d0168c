"""Fixtures: our broker, which can be killed and started again, and a topic of the test's own."""

from itertools import count
from pathlib import Path

import pytest
import trio

from tests.patience import give_up
from tests.suite.brokers import OurBroker

_HERE = Path(__file__).parent
_numbers = count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.official)


@pytest.fixture
async def broker(nursery: trio.Nursery) -> OurBroker:
    broker = OurBroker(nursery)
    await broker.start()
    broker.prepare()
    nursery.start_soon(give_up)
    return broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the run has."""
    letters = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"persistent://public/default/{letters}-{next(_numbers)}"
