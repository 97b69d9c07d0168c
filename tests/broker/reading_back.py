"""`reads_back`: runs a test twice, with all entries in memory, and with none that is durable."""

import pytest

from tests.broker.peer import World


@pytest.fixture(autouse=True, params=[False, True], ids=["in memory", "read back"])
def reads_back(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "reads_back", request.param)
