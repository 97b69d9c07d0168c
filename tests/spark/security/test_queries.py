"""Queries over TLS: rows are written and read again, executors read the token, and no plan has a secret."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.certificates import Authority
from tests.spark.scenes.brokers import OurBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SECRET = "canary-secret"


@pytest.fixture(scope="module")
def tls_broker(authority: Authority) -> Iterator[OurBroker]:
    files = authority.issue("127.0.0.1")
    broker = OurBroker(
        *("--tls-port", "0", "--tls-certificate", str(files.certificate), "--tls-key", str(files.key))
    )
    yield broker
    broker.stop()


@pytest.fixture
def options(tls_broker: OurBroker, authority: Authority, topic: str) -> dict[str, str]:
    return {"service.url": tls_broker.tls_url, "topic": topic, "tls.trust": str(authority.file)}


def test_rows_are_written_and_read_over_tls(
    spark: "SparkSession", options: dict[str, str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    options |= {"auth.method": "token", "auth.tokenFile": str(token)}
    rows = spark.range(1000).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    rows.write.format("pulsar").mode("append").options(**options).save()
    read = spark.read.format("pulsar").options(**options).load()
    assert sorted(int(row.value) for row in read.collect()) == list(range(1000))


def test_a_stream_over_tls(spark: "SparkSession", options: dict[str, str], tmp_path: Path) -> None:
    rows = spark.range(10).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    rows.write.format("pulsar").mode("append").options(**options).save()
    stream = spark.readStream.format("pulsar").options(**options, startingOffsets="earliest").load()
    writing = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writing.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 10


def test_a_certificate_that_is_not_trusted_is_named(spark: "SparkSession", options: dict[str, str]) -> None:
    del options["tls.trust"]
    with pytest.raises(Exception, match="CertificateAuthorityUnknown") as caught:
        spark.read.format("pulsar").options(**options).load().collect()
    assert "tls.trust" in str(caught.value)


def test_a_token_and_a_password_are_in_no_plan_and_no_error(
    spark: "SparkSession", options: dict[str, str], authority: Authority
) -> None:
    own = authority.issue(common_name="worker")
    secrets = {"auth.method": "token", "auth.token": SECRET, "tls.keyPassword": SECRET}
    secrets |= {"tls.certificate": str(own.certificate), "tls.key": str(own.key)}
    rows = spark.range(1).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    rows.write.format("pulsar").mode("append").options(**options, **secrets).save()
    read = spark.read.format("pulsar").options(**options, **secrets).load()
    assert read.count() == 1
    plan = read._jdf.queryExecution().toString() + read._jdf.queryExecution().explainString(
        spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )
    assert "pulsar" in plan.lower()
    assert SECRET not in plan
    with pytest.raises(Exception, match=r"auth\.method") as caught:
        spark.read.format("pulsar").options(**options, **{"auth.token": SECRET}).load()
    assert SECRET not in str(caught.value)
