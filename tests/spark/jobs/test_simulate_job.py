"""Seeds spread over Spark give what they give in one process."""

import pytest
from pyspark.sql import SparkSession

from pulsar_sim import Campaign, Recorder, observe_seed
from pulsar_spark.jobs.simulate import simulate
from pulsar_spark.progress import Seen

pytestmark = pytest.mark.spark

SEEDS = range(48, 54)
"""The fiftieth is run twice."""


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """In this process."""
    campaign = Campaign()
    with Recorder() as recorder:
        for seed in SEEDS:
            campaign.add(*observe_seed(seed, recorder))
    return campaign


def test_the_same_campaign_as_in_one_process(spark: SparkSession, campaign: Campaign) -> None:
    seen: list[Seen] = []
    spread = simulate(spark, first_seed=SEEDS[0], seeds=len(SEEDS), tasks=3, show=seen.append)
    assert spread.campaign.as_json() == campaign.as_json()
    assert seen
    assert all(each.done <= each.planned for each in seen)
    rows = spread.table.orderBy("seed").collect()
    spread.table.unpersist()
    assert [row.seed for row in rows] == list(SEEDS)
    assert {row.outcome for row in rows} == {"passed"}
    assert sum(row.messages for row in rows) == campaign.messages
    assert sum(sum(row.faults.values()) for row in rows) == sum(campaign.faults.values())


def test_numbers_out_of_range(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="tasks=0: at least"):
        simulate(spark, tasks=0)
