"""The table of options: one row each, for parsing, errors and documentation alike.

It says what an option is called, what it is for and what it may be; `options` reads queries by it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..reading import offsets
from . import option_values as values


class Use(Enum):
    """The kinds of query that an option is for."""

    STREAM_READ = "stream read"
    BATCH_READ = "batch read"
    STREAM_WRITE = "stream write"
    BATCH_WRITE = "batch write"


STREAM = frozenset({Use.STREAM_READ})
BATCH = frozenset({Use.BATCH_READ})
READS = STREAM | BATCH
WRITES = frozenset({Use.STREAM_WRITE, Use.BATCH_WRITE})
BATCH_WRITE = frozenset({Use.BATCH_WRITE})
ALL = READS | WRITES

BATCH_ROWS: Final = 32 * 1024
"""Rows handed to Spark together. What a batch costs by itself, in the worker and in the JVM, is spread over
them; four times as many save nothing more, and cost memory."""

BATCH_BYTES: Final = 8 * 2**20

RECEIVER_QUEUE: Final = 50_000
"""Messages that the broker may send before the first of them is taken. It only sends as fast as the socket is
read, so this bounds no memory; it is large so that no task waits for permits."""

REQUIRED: Final = object()
"""The default of an option without which there is nothing to do."""


@dataclass(frozen=True)
class Option:
    """One row of the table."""

    name: str
    uses: frozenset[Use]
    attribute: str
    """The field of `ReadOptions` or `WriteOptions` that holds the value."""
    parse: Callable[[str], object]
    """Gives the value of a text, or raises `Refused`."""
    allowed: str
    """The values that `parse` takes, as the user reads them."""
    default: object
    meaning: str
    default_text: str = ""
    """The text of the default, where the value's own text does not say it."""
    aliases: tuple[str, ...] = ()
    """Other connectors' names for this option."""
    secret: str = ""
    """Advice for a command line, which must not have the value; no text may quote such a value. Empty for
    values that are no secret."""

    def shown_default(self) -> str:
        if self.default is REQUIRED:
            return "required"
        if self.default_text:
            return self.default_text
        return "none" if self.default is None else str(self.default)


_A_DAY = 24 * 3600 * 1000


def _duration(
    name: str,
    uses: frozenset[Use],
    attribute: str,
    least: int,
    default: int,
    meaning: str,
    most: int = _A_DAY,
) -> Option:
    """A row of milliseconds, kept as seconds."""
    allowed = f"a whole number of milliseconds from {least} to {most}"
    parse = values.milliseconds(least, most)
    return Option(name, uses, attribute, parse, allowed, default / 1000, meaning, default_text=str(default))


def _flag(name: str, uses: frozenset[Use], attribute: str, default: bool, meaning: str) -> Option:
    shown = str(default).lower()
    return Option(
        name, uses, attribute, values.boolean, "true or false", default, meaning, default_text=shown
    )


def _count(
    name: str, uses: frozenset[Use], attribute: str, least: int, most: int, default: int | None, meaning: str
) -> Option:
    allowed = f"a whole number from {least} to {most}"
    return Option(name, uses, attribute, values.whole(least, most), allowed, default, meaning)


def _text(name: str, attribute: str, allowed: str, meaning: str) -> Option:
    """A row for every use, with a text that nothing else is known of."""
    return Option(name, ALL, attribute, values.text, allowed, None, meaning)


def _secret(name: str, attribute: str, meaning: str, advice: str) -> Option:
    return Option(name, ALL, attribute, values.secret, "a text", None, meaning, secret=advice)


# --- the table --------------------------------------------------------------------------------------

OPTIONS: tuple[Option, ...] = (
    Option(
        "service.url",
        ALL,
        "service_url",
        values.service_url,
        "pulsar://host:port[,host:port…], pulsar+ssl:// for TLS, http:// or https:// for lookups over HTTP",
        REQUIRED,
        "where the broker is",
        aliases=("serviceUrl",),
    ),
    # what is read
    Option("topic", READS, "topics", values.topic_to_read, "a topic's name", None, "the topic to read"),
    Option(
        "topics",
        READS,
        "several_topics",
        values.topics,
        "names with commas between",
        None,
        "the topics to read",
    ),
    Option(
        "topicsPattern",
        READS,
        "topics_pattern",
        values.pattern,
        "[persistent://]tenant/namespace/regular-expression",
        None,
        "read all topics of one namespace whose own name the expression matches as a whole",
    ),
    Option(
        "startingOffsets",
        READS,
        "starting",
        offsets.parse_start,
        "earliest, latest, subscription:NAME, or JSON of positions",
        None,
        "where reading begins; JSON as under Offsets. A topic that is not named there begins at its earliest",
        default_text="`latest` (stream), `earliest` (batch)",
    ),
    Option(
        "startingTimestamp",
        READS,
        "starting_timestamp",
        values.timestamp,
        "ISO 8601 (UTC unless it says a zone), or milliseconds since 1970",
        None,
        "begin with what was published at this time or later; excludes `startingOffsets`",
    ),
    Option(
        "endingOffsets",
        BATCH,
        "ending",
        offsets.parse_end,
        "latest, or JSON of positions",
        None,
        "the last position to read; `latest` is what is there when the DataFrame is made",
        default_text="`latest`",
    ),
    Option(
        "endingTimestamp",
        BATCH,
        "ending_timestamp",
        values.timestamp,
        "ISO 8601 (UTC unless it says a zone), or milliseconds since 1970",
        None,
        "end before what was published at this time or later; excludes `endingOffsets`",
    ),
    Option(
        "columns",
        READS,
        "columns",
        values.names,
        "names of columns with commas between, or `all`",
        None,
        "the columns of the DataFrame; a schema given to Spark overrides it",
        default_text="the first seven",
    ),
    Option(
        "valueType",
        READS,
        "value_type",
        values.choice("bytes", "text", "schema"),
        "bytes, text or schema",
        "bytes",
        "whether the column `value` is binary, a string of UTF-8, or of the type of the topic's schema",
    ),
    Option(
        "undecodable",
        READS,
        "undecodable",
        values.choice("fail", "null", "bytes"),
        "fail, null or bytes",
        "fail",
        "what a message does that holds no value of the type that is read, with valueType=schema: fail the "
        "query, be null, or be null with its bytes in the column `__undecodable`",
    ),
    _flag(
        "readCompacted",
        BATCH,
        "read_compacted",
        False,
        "read the last message of every key where the topic is compacted",
    ),
    _flag(
        "pushdown",
        BATCH,
        "pushdown",
        False,
        "let filters on `__publishTime`, `__topic` and `__partition` decide what is read; publish times may "
        "be out of order by a minute, no more; needs `spark.sql.python.filterPushdown.enabled=true`",
    ),
    _flag(
        "failOnDataLoss",
        READS,
        "fail_on_data_loss",
        True,
        "fail where messages to be read are deleted; false continues and logs the loss",
    ),
    # a stream's course
    Option(
        "subscription",
        STREAM,
        "subscription",
        values.text,
        "a name",
        None,
        "a durable subscription that keeps what the query has not read; it is acknowledged as batches are "
        "committed, and never deleted",
        aliases=("predefinedSubscription",),
    ),
    _duration(
        "idleAckMs",
        STREAM,
        "idle_ack_s",
        0,
        5000,
        "how long nothing comes before the subscription is acknowledged up to the last committed batch, "
        "which Spark itself does only with the next one; 0 is never",
    ),
    _count(
        "maxMessagesPerTrigger",
        STREAM,
        "max_messages",
        1,
        10**12,
        None,
        "about how many messages a micro-batch has, shared out in proportion to the partitions' backlogs",
    ),
    _count(
        "maxBytesPerTrigger",
        STREAM,
        "max_bytes",
        1,
        10**15,
        None,
        "about how many bytes of payload a micro-batch has; excludes `maxMessagesPerTrigger`",
    ),
    _duration(
        "topicDiscoveryMs",
        STREAM,
        "topic_discovery_s",
        100,
        60000,
        "how often new topics and partitions are looked for; they are read from their beginning",
    ),
    _duration(
        "offsetPollMs",
        STREAM,
        "offset_poll_s",
        1,
        100,
        "how often the broker is asked for the ends of the topics",
        most=60_000,
    ),
    # tasks
    _count(
        "minPartitions",
        READS,
        "min_partitions",
        1,
        100_000,
        None,
        "cut long ranges until there are this many tasks",
    ),
    _count(
        "maxPartitions",
        READS,
        "max_partitions",
        1,
        100_000,
        16,
        "put short ranges together until there are no more tasks than this",
    ),
    _count(
        "batchRows",
        READS,
        "batch_rows",
        1,
        1_000_000,
        BATCH_ROWS,
        "rows that are handed to Spark together, about: entries are not cut",
    ),
    _count(
        "batchBytes",
        READS,
        "batch_bytes",
        1024,
        2**30,
        BATCH_BYTES,
        "bytes of payload that are handed to Spark together, about",
    ),
    _count(
        "receiverQueue",
        READS,
        "receiver_queue",
        1,
        1_000_000,
        RECEIVER_QUEUE,
        "messages that a task asks the broker for in advance",
    ),
    Option(
        "readerNamePrefix",
        READS,
        "reader_name_prefix",
        values.text,
        "a name's beginning",
        "spark-reader",
        "how the subscriptions of the tasks' readers begin",
        aliases=("subscriptionPrefix",),
    ),
    _duration(
        "pollTimeoutMs",
        READS,
        "poll_timeout_s",
        100,
        120000,
        "how long a task waits for the next message of its range before it fails with RangeReadTimeout",
    ),
    _duration(
        "waitForTopicsMs",
        READS,
        "wait_for_topics_s",
        0,
        0,
        "how long a topic that does not exist yet is waited for; 0 fails with TopicNotFound at once",
    ),
    # what is written
    Option(
        "topic",
        WRITES,
        "topic",
        values.topic,
        "a topic's name",
        None,
        "the topic to write to; without it every row says its own in the column `__topic`",
    ),
    Option(
        "valueSchema",
        WRITES,
        "value_schema",
        values.choice("none", "avro", "json", "primitive", "topic"),
        "none, avro, json, primitive or topic",
        "none",
        "the schema that `value` is encoded with, and that is registered: made of the column's type as Avro, "
        "JSON or a primitive, or the one that the topic has; none writes bytes",
    ),
    Option(
        "keyValue",
        WRITES,
        "key_value",
        values.choice("none", "separated", "inline"),
        "none, separated or inline",
        "none",
        "write a `value` of key and value as a pair: the key as the message's key, or both in the payload; "
        "needs valueSchema=avro, json or primitive",
    ),
    Option(
        "deliveryGuarantee",
        WRITES,
        "delivery_guarantee",
        values.choice("at-least-once", "exactly-once", "transactions"),
        "at-least-once, exactly-once or transactions",
        "at-least-once",
        "exactly once needs deduplication of the topic's broker; transactions make rows visible when all of "
        "their batch are stored, and need the broker's transactions",
    ),
    _duration(
        "transactionTimeoutMs",
        WRITES,
        "transaction_timeout_s",
        10_000,
        600_000,
        "the timeout of transactions: a batch may take three quarters of it. The transaction of an attempt "
        "that was killed holds up readers for so long",
    ),
    Option(
        "commitNamespace",
        WRITES,
        "commit_namespace",
        values.namespace,
        "tenant/namespace",
        None,
        "where the driver keeps what it has committed: the topic PREFIX-NAME-commits. Not with `topic`, "
        "which has TOPIC-PREFIX-NAME-commits beside it",
    ),
    Option(
        "writeId",
        BATCH_WRITE,
        "write_id",
        values.text,
        "a name",
        None,
        "the name of this write; a repeated write with this name adds no message twice. Required for "
        "exactly once and transactions in a batch write",
    ),
    Option(
        "producerPrefix",
        WRITES,
        "producer_prefix",
        values.text,
        "a name's beginning",
        "spark",
        "how the names of the producers begin",
    ),
    _duration(
        "producerBusyTimeoutMs",
        WRITES,
        "producer_busy_timeout_s",
        0,
        60000,
        "how long a task waits while a producer of its name is connected",
    ),
    Option(
        "orderBy",
        WRITES,
        "order_by",
        values.names,
        "names of columns with commas between",
        None,
        "the order in which exactly-once rows are numbered",
        default_text="topic, key, value, properties",
    ),
    _flag(
        "canonicalOrder",
        WRITES,
        "canonical_order",
        True,
        "sort the rows of each task before they are numbered for exactly once",
    ),
    _duration(
        "sendTimeoutMs", WRITES, "send_timeout_s", 100, 120000, "how long a message may stay unconfirmed"
    ),
    _count(
        "maxInFlight",
        WRITES,
        "max_in_flight",
        1,
        1_000_000,
        50_000,
        "messages of a task that may be unconfirmed at once",
    ),
    _count(
        "batchMaxMessages",
        WRITES,
        "batch_max_messages",
        1,
        100_000,
        1000,
        "messages in one entry of the topic, at most",
    ),
    _count(
        "batchMaxBytes",
        WRITES,
        "batch_max_bytes",
        1,
        4 * 2**20,
        128 * 2**10,
        "bytes of payload in one entry of the topic, at most",
    ),
    Option(
        "compression",
        WRITES,
        "compression",
        values.choice("none", "lz4", "zlib", "zstd", "snappy"),
        "none, lz4, zlib, zstd or snappy",
        "none",
        "how entries are compressed",
    ),
    # the connection
    _duration(
        "operationTimeoutMs", ALL, "operation_timeout_s", 100, 30000, "how long the broker may take to answer"
    ),
    _duration("connectTimeoutMs", ALL, "connect_timeout_s", 100, 10000, "how long a connection may take"),
    Option(
        "broker.hosts",
        ALL,
        "broker_hosts",
        values.names,
        "hosts with commas between; `.example.com` is every host in it",
        None,
        "the hosts that brokers may send this query to",
        default_text="all; with credentials those of service.url",
    ),
    # end-to-end encryption
    Option(
        "encryption.keyFiles",
        ALL,
        "key_files",
        values.key_files,
        "a file, or NAME=FILE with commas between",
        None,
        "PEM files of encryption keys: private keys for a read, public keys for a write; executors need them",
        default_text="none: encrypted messages fail a read",
    ),
    Option(
        "encryption.keys",
        WRITES,
        "encryption_keys",
        values.names,
        "names of keys with commas between",
        None,
        "encrypt for the holders of these keys; needs `encryption.keyFiles`",
        default_text="none: messages are not encrypted",
    ),
    # TLS and credentials
    _text("tls.trust", "trust", "a file or folder", "certificates of the trusted authorities, PEM"),
    _text("tls.certificate", "certificate", "a file", "the client's own certificate with its chain, PEM"),
    _text("tls.key", "key", "a file", "the private key of the certificate, PEM"),
    _secret("tls.keyPassword", "key_password", "opens the private key", "give $PULSAR_TLS_KEY_PASSWORD"),
    _text("tls.ciphers", "ciphers", "OpenSSL's cipher list", "the ciphers of TLS 1.2"),
    _flag(
        "tls.insecureAcceptAnyCertificate",
        ALL,
        "insecure_accept_any_certificate",
        False,
        "verify no certificate: any machine on the way can take messages and credentials",
    ),
    _flag(
        "tls.insecureAcceptAnyHost",
        ALL,
        "insecure_accept_any_host",
        False,
        "accept a certificate that is for another host",
    ),
    Option(
        "auth.method",
        ALL,
        "method",
        values.choice("none", "token", "basic", "tls", "oauth2"),
        "none, token, basic, tls or oauth2",
        "none",
        "how the query shows its identity; `tls` is by `tls.certificate`",
    ),
    _secret(
        "auth.token",
        "token",
        "the token; Spark sends it to the executors",
        "give auth.tokenFile, or $PULSAR_TOKEN",
    ),
    _text("auth.tokenFile", "token_file", "a file", "a file with the token, read for each connection"),
    Option(
        "auth.user",
        ALL,
        "user",
        values.user,
        "a name without a colon",
        None,
        "the user of auth.method=basic",
    ),
    _secret(
        "auth.password",
        "password",
        "the user's password; Spark sends it to the executors",
        "give $PULSAR_PASSWORD",
    ),
    _text(
        "auth.oauth2Credentials",
        "oauth2_credentials",
        "a file",
        "client credentials as in Java's client, JSON, read for each token",
    ),
    _text(
        "auth.oauth2Issuer", "oauth2_issuer", "https://host[/path]", "the issuer, where the file names none"
    ),
    _text("auth.oauth2ClientId", "oauth2_client_id", "a text", "in place of the file"),
    _secret(
        "auth.oauth2ClientSecret",
        "oauth2_client_secret",
        "in place of the file; Spark sends it to the executors",
        "give auth.oauth2Credentials",
    ),
    _text("auth.oauth2Audience", "oauth2_audience", "a text", "sent to the issuer"),
    _text("auth.oauth2Scope", "oauth2_scope", "a text", "sent to the issuer"),
    _text("auth.oauth2Trust", "oauth2_trust", "a file or folder", "as `tls.trust`, for the issuer"),
)
