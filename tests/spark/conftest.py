"""Fixtures: one Spark session, the two brokers, a topic of the test's own.

`broker` runs a test against both brokers, `our_broker` and `real_broker` against one of them; all live as
long as the run. PySpark is imported when a test asks for the session.
"""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.certificates import Authority
from tests.spark.scenes.brokers import DEDUPLICATION, OurBroker, RealBroker, SparkBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent

_numbers = count()


def spark_settings(folder: Path) -> dict[str, str]:
    """The settings of a small session for tests; a test that starts a driver of its own takes these too.

    `folder` is for what Spark writes beside the data. The master has two slots, and four attempts of each
    task: without the second number a task that fails once fails the job. Options that make a JVM fast in the
    long run are left out: that takes longer than these tests do.
    """
    return {
        "spark.master": "local[2,4]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.daemon.module": "pulsar_spark.daemon",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
    }


@pytest.fixture(scope="session", autouse=True)
def spark_environment() -> Iterator[None]:
    """Workers run this Python. `tests.conformance.listening.everywhere` lets them find this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        yield


@pytest.fixture(scope="session")
def spark(spark_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The one session of the run."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("pulsar-trio tests")
    for name, value in spark_settings(tmp_path_factory.mktemp("spark")).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def our_broker(spark_environment: None) -> Iterator[OurBroker]:
    broker = OurBroker()
    broker.prepare()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that issues the certificates of all brokers of the run."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def real_broker(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    """Where a real Pulsar cannot be had, its tests fail with a line that says why. A test that takes this
    fixture by itself needs the mark `real` too."""
    broker = RealBroker(tmp_path_factory.mktemp("real"), authority)
    broker.prepare()
    yield broker
    broker.stop()


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.real)])
def broker(request: pytest.FixtureRequest) -> SparkBroker:
    under_test = request.getfixturevalue(f"{'our' if request.param == 'ours' else 'real'}_broker")
    assert isinstance(under_test, SparkBroker)
    return under_test


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test of the run has."""
    return f"persistent://public/default/{own_name(request)}"


@pytest.fixture
def deduplicated_topic(request: pytest.FixtureRequest) -> str:
    """The name of the test's topic in a namespace with deduplication."""
    return f"persistent://{DEDUPLICATION}/{own_name(request)}"


def own_name(request: pytest.FixtureRequest) -> str:
    """From the test's name, in letters that a topic may have."""
    letters = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    return f"{letters}-{next(_numbers)}"
