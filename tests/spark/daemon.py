"""What Spark's workers are forked from, in tests: a daemon that has imported already most of what they need.

Named by the setting `spark.python.daemon.module`. A worker that a test ends is replaced by a new one, which
would import everything anew. NumPy and PyArrow are left to the workers: importing them starts threads, and
what is forked must not have any.
"""

import pyspark.daemon
import pyspark.sql.datasource
import pyspark.worker

import pulsar_spark.options
import pulsar_spark.producing  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
