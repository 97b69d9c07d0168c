"""This module defines the errors of the Spark connector, one class for each kind.

Spark shows the text of an exception behind traces of its own, so the first line says it all: the option or
topic, what was given, what is allowed. Secrets are never part of it.
"""


class PulsarSparkError(Exception):
    """Base of every error of this package."""


# --- options ----------------------------------------------------------------------------------------


class OptionError(PulsarSparkError, ValueError):
    """The options of a query contradict themselves, or the table of options."""


class MissingOption(OptionError):
    """A required option is not given."""


class UnknownOption(OptionError):
    """There is no such option, or it has no meaning here; the text names the one that was probably meant."""


class InvalidOption(OptionError):
    """The value of an option is none of those allowed."""


class ConflictingOptions(OptionError):
    """Two options that exclude each other are both given."""


class OptionNotImplemented(OptionError, NotImplementedError):
    """An option of another connector is given that this package has not."""


class UnsupportedSparkVersion(PulsarSparkError):
    """This version of PySpark cannot do what is asked for; the text names the first that can."""


# --- offsets ----------------------------------------------------------------------------------------


class OffsetParseError(OptionError):
    """Offsets are not what `docs/spark.md` describes; the text says where."""


class OffsetVersionError(PulsarSparkError):
    """A checkpoint was written in a version of the offsets that this package does not know."""


# --- reading ----------------------------------------------------------------------------------------


class TopicNotFound(PulsarSparkError):
    """A topic that was named, or was there when the query began, does not exist."""


class UnsupportedTopic(OptionError):
    """Topics that are not persistent have no positions to come back to."""


class SubscriptionBusy(PulsarSparkError):
    """Another consumer, most likely another run of this query, holds the subscription."""


class DataLoss(PulsarSparkError):
    """Messages that the query should read are not in the topic any more (option `failOnDataLoss`)."""

    def __init__(self, topic: str, expected: str, found: str, reason: str) -> None:
        super().__init__(
            f"data loss in {topic}: {reason}; expected to continue {expected}, found {found}. "
            "Set failOnDataLoss=false to continue with the present messages."
        )
        self.topic = topic
        self.expected = expected
        self.found = found
        self.reason = reason

    def __reduce__(self) -> tuple[type["DataLoss"], tuple[str, str, str, str]]:
        return DataLoss, (self.topic, self.expected, self.found, self.reason)


class RangeReadTimeout(PulsarSparkError):
    """Nothing of a range came for `pollTimeoutMs`; nothing of it was skipped."""


class UnreadableMessages(PulsarSparkError):
    """Messages are in the topic and cannot be delivered: they are damaged, encrypted, or too large."""


class UndecodableMessage(PulsarSparkError):
    """A message holds no value of the type that the query reads (option `undecodable`)."""


class NoSchema(PulsarSparkError):
    """A topic has no schema that Spark has a type for, or topics of one query disagree."""


class BadColumn(PulsarSparkError, ValueError):
    """A column was asked for in a way that cannot say what a message has."""


class RecordBatchTooLarge(PulsarSparkError):
    """One record batch is larger than Arrow can hold. The text names the options that make it smaller."""


class LinkTimeout(PulsarSparkError):
    """The broker did not answer in time; the text names it and what was asked."""


# --- writing ----------------------------------------------------------------------------------------


class ProducerBusy(PulsarSparkError):
    """Another producer of this name is connected to the topic, and stayed."""


class DeduplicationOff(PulsarSparkError):
    """Exactly once was asked for on a topic whose deduplication is off."""


class CommitTooLate(PulsarSparkError):
    """A batch took so long that its transactions may time out before all are committed; none was."""


class CommitUnknown(PulsarSparkError):
    """All transactions of a batch may be committed or not; the text says what to do."""


class SchemaRefused(PulsarSparkError):
    """The broker refuses the schema of the rows: it is not compatible with the topic's."""


class InvalidRows(PulsarSparkError, ValueError):
    """Rows to write lack a topic, or have a column of a wrong type."""
