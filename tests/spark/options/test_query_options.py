"""The table of options: what it takes, what it refuses, and how it says so."""

import pytest

from pulsar_spark.errors import (
    ConflictingOptions,
    InvalidOption,
    MissingOption,
    OptionError,
    OptionNotImplemented,
    UnknownOption,
    UnsupportedTopic,
)
from pulsar_spark.options.option_table import ALL, OPTIONS, Use
from pulsar_spark.options.query_options import (
    is_stream_only,
    options_table,
    parse_read,
    parse_write,
)

URL = {"service.url": "pulsar://localhost:6650"}
TOPIC = {**URL, "topic": "orders"}


def test_the_defaults_of_a_stream() -> None:
    options = parse_read(TOPIC, Use.STREAM_READ)
    assert options.service_url == "pulsar://localhost:6650"
    assert options.topics == ("persistent://public/default/orders",)
    assert options.starting is None
    assert options.fail_on_data_loss
    assert (options.idle_ack_s, options.offset_poll_s, options.poll_timeout_s) == (5.0, 0.1, 120.0)
    assert (options.min_partitions, options.max_partitions) == (None, 16)


def test_case_of_names_does_not_matter() -> None:
    options = parse_read(
        {"SERVICE.URL": URL["service.url"], "TopicS": "a, b,a", "MAXPARTITIONS": "3"}, Use.BATCH_READ
    )
    assert options.topics == ("persistent://public/default/a", "persistent://public/default/b")
    assert options.max_partitions == 3


def test_names_of_other_connectors() -> None:
    options = parse_read({**TOPIC, "predefinedSubscription": "s", "subscriptionPrefix": "p"}, Use.STREAM_READ)
    assert (options.subscription, options.reader_name_prefix) == ("s", "p")
    with pytest.raises(
        ConflictingOptions, match="subscription is given twice, also as predefinedSubscription"
    ):
        parse_read({**TOPIC, "subscription": "s", "predefinedSubscription": "s"}, Use.STREAM_READ)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"topic": "a"}, MissingOption, "option service.url is required"),
        (URL, MissingOption, "topic, topics and topicsPattern"),
        ({**TOPIC, "topics": "b"}, ConflictingOptions, "topic and topics exclude"),
        ({**TOPIC, "topicsPattern": "b.*"}, ConflictingOptions, "topic and topicsPattern exclude"),
        (
            {**TOPIC, "startingOffsets": "earliest", "startingTimestamp": "0"},
            ConflictingOptions,
            "startingOffsets and startingTimestamp exclude",
        ),
        (
            {**TOPIC, "maxMessagesPerTrigger": "1", "maxBytesPerTrigger": "1"},
            ConflictingOptions,
            "maxMessagesPerTrigger and maxBytesPerTrigger exclude",
        ),
        (
            {**TOPIC, "minPartitions": "5", "maxPartitions": "4"},
            ConflictingOptions,
            "5 is more than maxPartitions=4",
        ),
        (
            {**TOPIC, "maxPartitions": "many"},
            InvalidOption,
            "maxPartitions: 'many' .* whole number from 1 to",
        ),
        ({**TOPIC, "maxPartitions": "0"}, InvalidOption, "maxPartitions: '0'"),
        ({**TOPIC, "maxMessagesPerTrigger": "-1"}, InvalidOption, "maxMessagesPerTrigger: '-1'"),
        ({**TOPIC, "failOnDataLoss": "maybe"}, InvalidOption, "failOnDataLoss: 'maybe' .* true or false"),
        (
            {**TOPIC, "startingTimestamp": "yesterday"},
            InvalidOption,
            "startingTimestamp: 'yesterday' .* ISO 8601",
        ),
        ({**TOPIC, "valueType": "avro"}, InvalidOption, "valueType: 'avro' .* bytes, text or schema"),
        ({**TOPIC, "undecodable": "null"}, ConflictingOptions, "undecodable needs valueType=schema"),
        (
            {**TOPIC, "valueType": "schema", "undecodable": "skip"},
            InvalidOption,
            "undecodable: 'skip' .* fail, null or bytes",
        ),
        ({**URL, "topicsPattern": "public/default/("}, InvalidOption, "topicsPattern"),
        ({**URL, "topicsPattern": "non-persistent://a/b/c"}, UnsupportedTopic, "topicsPattern"),
        ({**URL, "topics": " , "}, InvalidOption, "topics"),
        ({**URL, "topic": "a/b"}, InvalidOption, "option topic: .* a short name is"),
        ({**URL, "topic": "non-persistent://public/default/a"}, UnsupportedTopic, "non-persistent"),
        ({"service.url": "ftp://localhost", "topic": "a"}, InvalidOption, "service.url: .*pulsar://"),
        ({**TOPIC, "maxPartition": "3"}, UnknownOption, r"maxPartition \(did you mean maxPartitions\?\)"),
        ({**TOPIC, "readCompacted": "true"}, UnknownOption, "readCompacted is for batch read only"),
        ({**TOPIC, "compression": "lz4"}, UnknownOption, "compression is for writes only"),
        ({**TOPIC, "endingOffsets": "latest"}, UnknownOption, "endingOffsets is for batch read only"),
        ({**TOPIC, "path": "x"}, UnknownOption, "a path was given"),
        (
            {**TOPIC, "wat": "x"},
            UnknownOption,
            "unknown option wat for a stream read; allowed: auth.method, .*, batchBytes, batchRows",
        ),
    ],
)
def test_one_error_that_names_the_option_and_what_is_allowed(
    given: dict[str, str], error: type[OptionError], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        parse_read(given, Use.STREAM_READ)
    assert "\n" not in str(caught.value)


def test_another_cluster_is_refused() -> None:
    """A checkpoint has positions of one cluster, which are other messages in another cluster."""
    with pytest.raises(OptionNotImplemented, match=r"failover.urls is not .* are those of one cluster"):
        parse_read({**TOPIC, "failover.urls": "pulsar://other"}, Use.STREAM_READ)


@pytest.mark.parametrize(
    "name", ["auth", "authParams", "tls.trustCerts", "pulsar.client.authParams", "admin.url", "authParms"]
)
def test_secrets_are_never_quoted(name: str) -> None:
    with pytest.raises((OptionNotImplemented, UnknownOption)) as caught:
        parse_read({**TOPIC, name.lower(): "s3cr3t"}, Use.BATCH_READ)
    assert "s3cr3t" not in str(caught.value)
    assert name.lower() in str(caught.value).lower()


def test_a_secret_in_the_url_is_not_quoted() -> None:
    with pytest.raises(InvalidOption) as caught:
        parse_read({"service.url": "pulsar://me:s3cr3t@localhost", "topic": "a"}, Use.BATCH_READ)
    assert "s3cr3t" not in str(caught.value)


def test_times_are_iso_or_milliseconds() -> None:
    for text, expected in {
        "1767225600000": 1767225600000,
        "2026-01-01": 1767225600000,
        "2026-01-01T00:00:00Z": 1767225600000,
        "2026-01-01T01:00:00.5+01:00": 1767225600500,
    }.items():
        assert parse_read({**TOPIC, "startingTimestamp": text}, Use.BATCH_READ).starting_timestamp == expected


def test_more_tasks_than_the_default_maximum() -> None:
    options = parse_read({**TOPIC, "minPartitions": "40"}, Use.BATCH_READ)
    assert (options.min_partitions, options.max_partitions) == (40, 40)


def test_a_batch_write_that_is_exactly_once_has_a_name() -> None:
    given = {**TOPIC, "deliveryGuarantee": "exactly-once"}
    with pytest.raises(MissingOption, match="writeId"):
        parse_write(given, Use.BATCH_WRITE)
    assert parse_write({**given, "writeId": "backfill"}, Use.BATCH_WRITE).write_id == "backfill"
    assert (
        parse_write({**given, "checkpointLocation": "x"}, Use.STREAM_WRITE).delivery_guarantee
        == "exactly-once"
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"writeId": "w"}, "option writeId means nothing with deliveryGuarantee=at-least-once"),
        ({"orderBy": "a"}, "option orderBy means nothing"),
        ({"canonicalOrder": "true"}, "option canonicalOrder means nothing"),
        (
            {"deliveryGuarantee": "exactly-once", "writeId": "w", "orderBy": "a", "canonicalOrder": "false"},
            "options orderBy and canonicalOrder=false exclude each other",
        ),
    ],
)
def test_writes_that_contradict_themselves(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConflictingOptions, match=text):
        parse_write({**TOPIC, **given}, Use.BATCH_WRITE)


def test_what_only_a_stream_has() -> None:
    assert is_stream_only({"idleackms": "1"})
    assert not is_stream_only({"topic": "a", "nothing": "b"})


def test_every_row_has_one_name_for_a_use() -> None:
    for use in Use:
        names = [name.lower() for row in OPTIONS if use in row.uses for name in (row.name, *row.aliases)]
        assert len(names) == len(set(names))


def test_the_table_as_markdown_has_every_option() -> None:
    text = options_table(ALL)
    assert all(f"| `{row.name}`" in text for row in OPTIONS)
    assert all(line.count("|") - line.count("\\|") == 6 for line in text.splitlines())
