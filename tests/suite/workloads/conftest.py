"""The workloads run against the real broker in long runs only: it shows that the programs are right."""

import pytest

from tests.real_pulsar import RealPulsar


@pytest.fixture(params=["ours", pytest.param("real", marks=[pytest.mark.real, pytest.mark.long])])
def real_or_none(request: pytest.FixtureRequest) -> RealPulsar | None:
    if request.param == "ours":
        return None
    pulsar = request.getfixturevalue("real_pulsar")
    assert isinstance(pulsar, RealPulsar)
    return pulsar
