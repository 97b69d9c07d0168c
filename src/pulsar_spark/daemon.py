"""Spark forks its Python workers from this daemon, which has already imported what they need of Pulsar.

Named by the setting `spark.python.daemon.module`; without it every new worker, and Spark has one for each
step of planning, imports all of it anew. NumPy and PyArrow are left to the workers: importing them starts
threads, and what is forked must not have any.
"""

import pyspark.daemon
import pyspark.sql.datasource
import pyspark.worker

import pulsar_spark.options.query_options
import pulsar_spark.writing.producing  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
