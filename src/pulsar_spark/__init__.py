"""Apache Pulsar in PySpark, without a jar: `spark.read.format("pulsar")`, streams, exactly-once writes, jobs.

    frame = spark.read.format("pulsar").option("service.url", url).option("topics", "a,b").load()

Spark finds the format by itself (package `pyspark_pulsar`). The data source and the jobs drive the protocol
core `pulsar_sansio` with blocking sockets, in the processes that Spark gives them; there is no event loop.

This package may import `pulsar_sansio`'s public names, PySpark, Arrow and numpy; it does not know the
adapter `pulsar_trio`. Importing it imports none of them: Spark's workers import what they need, and the
command line asks for its commands where PySpark is not installed.
"""
