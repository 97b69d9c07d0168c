"""Nothing confirmed is lost and no key is out of order, whatever happens to the cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster.real_cluster import RealCluster
from tests.cluster.scenarios import SHORT, Scenario, scenarios

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def plain() -> Iterator[RealCluster]:
    with RealCluster(secure=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def secure() -> Iterator[RealCluster]:
    with RealCluster(secure=True) as cluster:
        yield cluster


async def check(cluster: RealCluster, scenario: Scenario) -> None:
    outcome = await scenario.run(cluster)
    print(scenario.name, outcome)
    assert outcome.holds, outcome


@pytest.mark.long
@pytest.mark.parametrize("scenario", scenarios(secure=False), ids=lambda each: each.way)
async def test_a_plain_cluster(plain: RealCluster, scenario: Scenario) -> None:
    await check(plain, scenario)


@pytest.mark.long
@pytest.mark.parametrize("scenario", scenarios(secure=True), ids=lambda each: each.way)
async def test_tls_tokens_and_permissions(secure: RealCluster, scenario: Scenario) -> None:
    await check(secure, scenario)


@pytest.mark.parametrize("scenario", SHORT, ids=lambda each: each.name)
async def test_some_of_them(secure: RealCluster, scenario: Scenario) -> None:
    await check(secure, scenario)
