"""Nothing confirmed is lost and no key is out of order, whatever happens to the cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster.real_cluster import RealCluster
from tests.cluster.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def plain() -> Iterator[RealCluster]:
    with RealCluster(secure=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def secure() -> Iterator[RealCluster]:
    with RealCluster(secure=True) as cluster:
        yield cluster


def scenarios(*, secure: bool) -> list[object]:
    """Return the parameters for one of the clusters; those beyond the short form are marked."""
    return [
        pytest.param(each, id=each.name, marks=[] if each.short and secure else [pytest.mark.long])
        for each in SCENARIOS
        if (each.secure if secure else each.plain)
    ]


@pytest.mark.parametrize("scenario", scenarios(secure=False))
async def test_a_plain_cluster(plain: RealCluster, scenario: Scenario) -> None:
    verdict = await scenario.run(plain)
    print(scenario.name, verdict)
    assert verdict.holds, verdict


@pytest.mark.parametrize("scenario", scenarios(secure=True))
async def test_tls_tokens_and_permissions(secure: RealCluster, scenario: Scenario) -> None:
    verdict = await scenario.run(secure)
    print(scenario.name, verdict)
    assert verdict.holds, verdict
