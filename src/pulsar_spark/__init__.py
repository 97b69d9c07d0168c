"""Apache Pulsar for PySpark: a data source without a JVM connector.

    spark.read.format("pulsar").option("service.url", "pulsar://localhost").option("topic", "orders").load()

The pipeline's parts are plain modules: `options`, `offsets` and `plan` are pure; `link` drives the protocol
core with blocking sockets; the rest stands between them and Spark. Nothing here is imported by the core or by
`pulsar_trio`.
"""
