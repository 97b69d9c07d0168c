"""The session that all tests with Spark share, and the brokers they share."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.scenes.brokers import DEDUPLICATION, SparkBroker

pytestmark = pytest.mark.spark


def test_two_slots_and_retries(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2,4]"
    assert spark.range(10, numPartitions=2).count() == 10


def test_workers_find_this_checkout(spark: SparkSession) -> None:
    def where(_: object) -> str:
        import pulsar_spark

        return str(pulsar_spark.__file__)

    import pulsar_spark

    assert spark.sparkContext.parallelize([0], 1).map(where).collect() == [pulsar_spark.__file__]


def test_brokers_have_a_namespace_with_deduplication(broker: SparkBroker) -> None:
    policies = broker.admin.request("GET", f"/admin/v2/namespaces/{DEDUPLICATION}")
    assert policies["deduplicationEnabled"] is True


def test_every_column_is_in_the_docs() -> None:
    from pulsar_spark.reading.columns import ALL_COLUMNS

    docs = (Path(__file__).parent.parent.parent / "docs" / "spark.md").read_text()
    rows = [f"| `{name}` | {column.ddl} | {column[-1]} |" for name, column in ALL_COLUMNS.items()]
    assert [row for row in rows if row not in docs] == []
