"""The pipeline of this example: orders from one topic, totals per customer to another, exactly once.

    python orders.py --url pulsar://localhost:6650 --checkpoint /somewhere/that/stays

Kill it whenever you like and start it again with the same checkpoint: it goes on where it was.
"""

import argparse
import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from pulsar_spark.progress import lag
from pulsar_spark.session import open_session

ORDERS = "persistent://public/default/orders"
"""Messages are JSON, `{"customer": "c-7", "cents": 1250}`."""

TOTALS = "persistent://public/default/order-totals"
"""After each change, a message of JSON keyed by the customer:
`{"customer": "c-7", "orders": 31, "cents": 40210}`."""

SUBSCRIPTION = "order-totals"
"""The subscription keeps what the query has not read, however long the query does not run."""

LOOK_EVERY = 1.0
"""Seconds between two lines of progress."""


def totals(orders: DataFrame) -> DataFrame:
    """Compute the number of orders of each customer, and their sum. `orders` is a batch or a stream."""
    order = f.from_json(f.col("value").cast("string"), "customer string, cents bigint")
    return (
        orders.select(order.alias("order"))
        .groupBy("order.customer")
        .agg(f.count("*").alias("orders"), f.sum("order.cents").alias("cents"))
        .select(
            f.col("customer").alias("__key"),
            f.to_json(f.struct("customer", "orders", "cents")).alias("value"),
        )
    )


def start(spark: SparkSession, url: str, checkpoint: str, most: int) -> StreamingQuery:
    """The query, running; `most` orders, about, in a micro-batch."""
    orders = (
        spark.readStream.format("pulsar")
        .option("service.url", url)
        .option("topic", ORDERS)
        .option("subscription", SUBSCRIPTION)
        .option("startingOffsets", "earliest")
        .option("maxMessagesPerTrigger", most)
        .load()
    )
    return (
        totals(orders)
        .writeStream.foreachBatch(Results(url))
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .queryName("order-totals")
        .start()
    )


class Results:
    """Writes the changed totals. Spark has no update mode for sinks in Python, so each batch is written by
    itself. The sink finds the query and the number of the batch, and numbers its rows by them."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, changed: DataFrame, batch: int) -> None:
        (
            changed.write.format("pulsar")
            .mode("append")
            .option("service.url", self._url)
            .option("topic", TOTALS)
            .option("deliveryGuarantee", "exactly-once")
            .option("writeId", "order-totals")
            .save()
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Totals of orders per customer, exactly once.")
    parser.add_argument("--url", default="pulsar://localhost:6650")
    parser.add_argument("--checkpoint", required=True, help="a folder that stays: where the query is")
    parser.add_argument("--most", type=int, default=100_000, help="orders in a micro-batch, about")
    arguments = parser.parse_args()
    spark = open_session("orders", settings={"spark.sql.shuffle.partitions": "2"})
    query = start(spark, arguments.url, arguments.checkpoint, arguments.most)
    seen = -1
    while not query.awaitTermination(LOOK_EVERY):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != seen:
            seen = progress["batchId"]
            behind = sum(each.entries for each in lag(progress).values())
            line = {"batch": seen, "orders": progress["numInputRows"], "entries_behind": behind}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
