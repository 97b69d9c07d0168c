"""Re-drive: dead letters back to the topics they came from, those that a condition names, each once.

A run writes down which letters it is about to move, and where to, before it moves them, and that it is done
afterwards. So the next run finishes a run that was killed, under the name it had and as it was meant. A
later run with another condition can choose letters that were left. Owns that book;
what a letter says of its origin is the protocol's (`REAL_TOPIC` in its properties).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from ..errors import MissingOption, PulsarSparkError
from ..link import Link
from ..options.option_table import Use
from ..options.option_values import topic
from ..options.query_options import parse_write
from ..progress import Show, watched

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ORIGIN = ("REAL_TOPIC", "REAL_SUBSCRIPTION", "ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME", "RECONSUMETIMES")
"""Properties that a letter has and its original had not."""

POSITION = ("__topic", "__ledgerId", "__entryId", "__batchIndex")

COLUMNS = (
    "value",
    "__key",
    "__eventTime",
    "__messageProperties",
    "__orderingKey",
    "__schemaVersion",
    *POSITION,
)

HOME = "home"
"""In the book: the topic that a letter goes to."""

A_TOPIC = r"^((persistent://)?[-=:.\w]+/[-=:.\w]+/)?[^/]*[^/\s][^/]*$"
"""A letter must name its origin in this form. The job leaves any other letter: its run could never end."""

POSITION_DDL = "__topic string, __ledgerId bigint, __entryId bigint, __batchIndex int"

TASKS = 4
"""That write. The same for every run: rows that are written again have to be numbered as they were."""

ACKNOWLEDGE_TIMEOUT = 30.0
"""Seconds for one topic partition."""


class LettersGone(PulsarSparkError):
    """Letters that a run has chosen are not in the dead-letter topic any more. Nothing was written."""


@dataclass(frozen=True)
class Redriven:
    """Numbers of letters."""

    moved: int
    finished: int
    """The letters that this run moved for an earlier run that was interrupted."""
    left: int
    """In the dead-letter topic, and not moved by this run or an earlier one."""


def redrive(
    spark: "SparkSession",
    service_url: str,
    letters: str,
    book: str,
    *,
    where: str | None = None,
    to: str | None = None,
    subscription: str | None = None,
    exactly_once: bool = True,
    access: Mapping[str, str] | None = None,
    encrypt: Mapping[str, str] | None = None,
    show: Show | None = None,
) -> Redriven:
    """Move the letters in the topic `letters` for which `where` is true, all by default.

    `where` is a condition in SQL over the columns of a read, `__messageProperties['reason'] = 'timeout'`. A
    letter goes to the topic it came from, or to `to`, with the definition of its schema; without either topic
    it is left. `book` is a folder that Spark can write, one for each dead-letter topic. `subscription` of the
    dead-letter topic, with no consumer connected, is acknowledged up to the first letter that is left.
    `exactly_once` needs deduplication on the topics written to; without it a letter may be sent twice when a
    run is interrupted. `access`: options `tls.…`, `auth.…` and `broker.hosts` of source and sink, and
    `encryption.keyFiles` of the source: private keys. `encrypt`: names of encryption keys and files of their
    public keys, for all letters that are sent.

    Raises `LettersGone`, and an `OptionError` where `to` is no persistent topic, and for private keys without
    `encrypt`: no letter is sent unencrypted that was found encrypted.
    """
    given = {**(access or {}), "service.url": service_url}
    connection = {name: value for name, value in given.items() if not name.lower().startswith("encryption.")}
    if len(connection) < len(given) and not encrypt:
        raise MissingOption("letters that are decrypted are encrypted again: name keys and files (encrypt)")
    ledger = _Book(spark, book, show)
    run = _Run(spark, connection, given, encrypt or {}, letters, to, exactly_once, show)
    finished = 0
    for name, chosen in ledger.open_runs():
        finished += run.move(chosen, name, ledger.count(name))
        ledger.done(name)
    found = run.letters().join(ledger.moved(), list(POSITION), "left_anti")
    wanted = found.where(where) if where is not None else found
    name = uuid4().hex
    count = ledger.choose(name, wanted.withColumn(HOME, run.home()).where(f"{HOME} IS NOT NULL"))
    moved = run.move(ledger.chosen(name), name, count) if count else 0
    ledger.done(name)
    if subscription is not None:
        run.acknowledge(ledger.moved(), subscription)
    left = run.letters().join(ledger.moved(), list(POSITION), "left_anti")
    return Redriven(moved, finished, watched(spark, "re-drive: what is left", left.count, show))


class _Book:
    """The book records which run moves which letters, as Parquet. `chosen/run=…` holds positions and
    where each letter goes. `runs` says planned and done.

    What is chosen counts from the moment the run is planned, so a half-written choice is none.
    """

    def __init__(self, spark: "SparkSession", path: str, show: Show | None) -> None:
        self._spark = spark
        self._path = path.rstrip("/")
        self._show = show

    def _runs(self) -> dict[str, set[str]]:
        from pyspark.errors import AnalysisException

        try:
            rows = self._spark.read.schema("run string, state string").parquet(f"{self._path}/runs").collect()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return {}
        states: dict[str, set[str]] = {}
        for row in rows:
            states.setdefault(row.run, set()).add(row.state)
        return states

    def open_runs(self) -> "list[tuple[str, DataFrame]]":
        """Planned, and not done; oldest or newest makes no difference, no letter is in two."""
        names = [name for name, states in self._runs().items() if "done" not in states]
        return [(name, self.chosen(name)) for name in sorted(names)]

    def chosen(self, run: str) -> "DataFrame":
        schema = f"{POSITION_DDL}, {HOME} string"
        return self._spark.read.schema(schema).parquet(f"{self._path}/chosen/run={run}")

    def count(self, run: str) -> int:
        return int(self.chosen(run).count())

    def choose(self, run: str, letters: "DataFrame") -> int:
        """Write down the choice; how many they are."""
        writing = letters.select(*POSITION, HOME).coalesce(TASKS).write.mode("overwrite")
        path = f"{self._path}/chosen/run={run}"
        watched(self._spark, "re-drive: choose", lambda: writing.parquet(path), self._show)
        self._mark(run, "planned")
        return self.count(run)

    def done(self, run: str) -> None:
        self._mark(run, "done")

    def _mark(self, run: str, state: str) -> None:
        row = self._spark.range(1).selectExpr(f"'{run}' AS run", f"'{state}' AS state")
        row.coalesce(1).write.mode("append").parquet(f"{self._path}/runs")

    def moved(self) -> "DataFrame":
        """The positions of all letters of runs that are done."""
        done = [name for name, states in self._runs().items() if "done" in states]
        found = self._spark.createDataFrame([], POSITION_DDL)
        for name in done:
            found = found.unionAll(self.chosen(name).select(*POSITION))
        return found


class _Run:
    """One run reads the letters, writes the chosen ones and acknowledges them."""

    def __init__(
        self,
        spark: "SparkSession",
        connection: dict[str, str],
        reading: dict[str, str],
        encrypt: Mapping[str, str],
        letters: str,
        to: str | None,
        exactly_once: bool,
        show: Show | None,
    ) -> None:
        self._spark = spark
        self._connection = connection
        """The options of URL, TLS and credentials."""
        self._reading = reading
        """These options, and the private keys of letters."""
        self._encrypt = encrypt
        """The files of public keys by name; empty: letters are not encrypted."""
        self._topic = letters
        self._to = None if to is None else topic(to)
        self._exactly_once = exactly_once
        self._show = show

    def letters(self) -> "DataFrame":
        """All that are there now."""
        options = {**self._reading, "topic": self._topic, "columns": ",".join(COLUMNS)}
        return self._spark.read.format("pulsar").options(**options).load()

    def home(self) -> "Column":
        """The topic that a letter goes to; null where it is unknown or cannot be written."""
        from pyspark.sql import functions as f

        if self._to is not None:
            return f.lit(self._to)
        said = f.col("__messageProperties")["REAL_TOPIC"]
        return f.when(said.rlike(A_TOPIC), said)

    def move(self, chosen: "DataFrame", run: str, count: int) -> int:
        """Write the chosen letters, `count` of them, under the name of their run. Raises `LettersGone` before
        anything is written: with some of them missing, the others would be numbered otherwise than before."""
        from pyspark.sql import functions as f

        letters = self.letters().join(chosen, list(POSITION))
        there = watched(self._spark, "re-drive: find", letters.count, self._show)
        if there != count:
            raise LettersGone(f"{count - there} of {count} letters chosen by a run are not in {self._topic}")
        properties = f.map_filter("__messageProperties", lambda name, _: ~name.isin(*ORIGIN))
        rows = (
            letters.withColumns(
                {
                    "__topic": f.col(HOME),
                    "__schemaTopic": f.col("__topic"),
                    "__messageProperties": properties,
                }
            )
            .drop(HOME)
            .repartition(TASKS, "__topic")
            .sortWithinPartitions(*POSITION)
        )
        options = dict(self._connection)
        if self._encrypt:
            files = ",".join(f"{name}={file}" for name, file in self._encrypt.items())
            options |= {"encryption.keys": ",".join(self._encrypt), "encryption.keyFiles": files}
        if self._exactly_once:
            options |= {
                "deliveryGuarantee": "exactly-once",
                "writeId": run,
                "canonicalOrder": "false",
            }
        writing = rows.write.format("pulsar").mode("append").options(**options)
        watched(self._spark, "re-drive: move", writing.save, self._show)
        return count

    def acknowledge(self, moved: "DataFrame", subscription: str) -> None:
        """Up to the last entry before the first letter that is left, in each partition."""
        from pyspark.sql import functions as f

        place = f.struct("__ledgerId", "__entryId")
        known = moved.withColumn("moved", f.lit(True))
        flagged = self.letters().select(*POSITION).join(known, list(POSITION), "left")
        first_left = flagged.groupBy("__topic").agg(
            f.min(f.when(f.col("moved").isNull(), place)).alias("first_left")
        )
        before = flagged.join(first_left, "__topic").where(
            f.col("first_left").isNull() | (place < f.col("first_left"))
        )
        rows = before.groupBy("__topic").agg(f.max(place).alias("last")).collect()
        options = parse_write(self._connection, Use.BATCH_WRITE)
        link = Link(options.service_url, options.access)
        try:
            for row in rows:
                hold = link.hold(row["__topic"], subscription, timeout=ACKNOWLEDGE_TIMEOUT)
                hold.acknowledge_up_to((row.last["__ledgerId"], row.last["__entryId"]), ACKNOWLEDGE_TIMEOUT)
                hold.close()
        finally:
            link.close()
