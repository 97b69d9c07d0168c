"""The Spark session of a command: found, or made with what a job needs and no more.

Knows which settings; not what runs in them. A program that has a session of its own passes that to a job.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import PulsarSparkError
from .java import LEAST, missing_java
from .python import check_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = Path(__file__).resolve().with_name("log4j2.properties")

LOCAL = "local[*,4]"
"""A slot per core, and four attempts of each task: with `local[*]` a task that fails once fails the job."""


class SparkUnavailable(PulsarSparkError):
    """PySpark or Java is not there; the text is one line that says what is missing."""


def open_session(
    name: str, master: str | None = None, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A session for a command called `name`.

    `master` is a master's URL as spark-submit takes it; by default the one that spark-submit or
    spark-defaults name, else this machine. `settings` replace those here. Raises `SparkUnavailable`, and
    `WrongPython` where Spark runs on this machine and its workers could not run this package.
    """
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError:
        raise SparkUnavailable("PySpark is not installed: pip install 'pulsar-trio[spark]'") from None
    missing = missing_java()
    if missing is not None:
        raise SparkUnavailable(f"Spark needs Java {LEAST} or later: {missing}")
    # Workers on this machine run this Python, with what it can import. Elsewhere people say which.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    given = dict(settings or {})
    master = master or given.get("spark.master") or SparkConf().get("spark.master", LOCAL)
    if master.startswith("local"):
        check_python()
    builder = SparkSession.builder.appName(f"pulsar-trio {name}").master(master)
    for key, value in {**_defaults(master), **given}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _defaults(master: str) -> dict[str, str]:
    defaults = {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
    if not master.startswith("local"):
        return defaults
    return defaults | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "pulsar_spark.daemon",
    }
