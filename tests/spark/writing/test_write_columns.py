"""The columns of a DataFrame that is written: which are taken, which are ignored, and what a refusal says."""

import pytest

from pulsar_spark.errors import InvalidOption, InvalidRows, MissingOption
from pulsar_spark.writing.write_columns import GIVEN, WRITTEN, check_columns

VALUE = ("value", "binary")


@pytest.mark.parametrize(
    ("columns", "topic", "order_by"),
    [
        ([VALUE], "t", None),
        ([("value", "string")], "t", None),
        ([VALUE, ("__topic", "string")], None, None),
        ([*[(name, kinds[0]) for name, kinds in WRITTEN.items()], ("__schemaVersion", "binary")], None, None),
        ([VALUE, *[(name, "whatever") for name in sorted(GIVEN)]], "t", None),
        ([VALUE, ("number", "int")], "t", ("number",)),
        ([VALUE, ("__sequenceId", "bigint")], "t", ("__sequenceId", "value")),
    ],
)
def test_columns_that_make_messages(
    columns: list[tuple[str, str]], topic: str | None, order_by: tuple[str, ...] | None
) -> None:
    """Columns of a read message, and those of the order, are not written."""
    check_columns(columns, topic, order_by)


@pytest.mark.parametrize(
    ("columns", "topic", "order_by", "error", "words"),
    [
        ([VALUE, ("number", "int")], "t", None, InvalidRows, "column number cannot be written"),
        (
            [("value", "int")],
            "t",
            None,
            InvalidRows,
            "column value has the type int; allowed: binary or string",
        ),
        ([VALUE, ("__orderingKey", "string")], "t", None, InvalidRows, "allowed: binary"),
        ([("__key", "string")], "t", None, InvalidRows, "column value is missing: what is written is __key"),
        ([], "t", None, InvalidRows, "column value is missing: what is written is nothing"),
        ([VALUE], None, None, MissingOption, "option topic is required"),
        (
            [VALUE],
            "t",
            ("number",),
            InvalidOption,
            "option orderBy: there is no column number; there are value",
        ),
        ([VALUE, ("a", "int")], "t", ("b",), InvalidRows, "column a cannot be written"),
        ([VALUE, ("__schemaTopic", "string")], "t", None, InvalidRows, "needs the column __schemaVersion"),
    ],
)
def test_other_columns_are_refused(
    columns: list[tuple[str, str]],
    topic: str | None,
    order_by: tuple[str, ...] | None,
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error) as caught:
        check_columns(columns, topic, order_by)
    assert words in str(caught.value)
