"""A query's lag behind its topics, from what Spark reports; and the page that shows it."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from pulsar_spark.errors import OffsetVersionError
from pulsar_spark.progress import SOURCE_LATE, STARTS, Behind, lag, patiently
from pulsar_spark.reading.offsets import Position, to_json
from pulsar_spark.report import behind, plot, rates, render, seconds

A, B = "persistent://public/default/a", "persistent://public/default/b"


def progress(
    number: int = 0,
    rows: int = 0,
    end: dict[str, Position] | None = None,
    last: dict[str, Position] | None = None,
) -> dict[str, Any]:
    """As Spark has it: offsets are texts of JSON."""
    return {
        "batchId": number,
        "numInputRows": rows,
        "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
        "durationMs": {"triggerExecution": 500},
        "sources": [
            {"endOffset": json.dumps(to_json(end or {})), "latestOffset": json.dumps(to_json(last or {}))}
        ],
    }


@pytest.mark.parametrize(
    ("read", "last", "entries", "exact"),
    [
        ((3, 9), (3, 9), 0, True),
        ((3, 9), (3, 14), 5, True),
        ((3, 9), (5, 4), 5, False),  # what is left of ledger 3 is not known
        ((-1, -1), (3, 4), 5, False),
        ((4, 0), (3, 4), 0, True),  # what was asked before is older than what was read
    ],
)
def test_entries_behind(read: Position, last: Position, entries: int, exact: bool) -> None:
    found = lag(progress(end={A: read}, last={A: last}))
    assert found == {A: Behind(read, last)}
    assert (found[A].entries, found[A].exact) == (entries, exact)


def test_a_topic_that_is_new_is_behind_from_its_beginning() -> None:
    assert lag(progress(end={A: (1, 1)}, last={A: (1, 1), B: (2, 6)}))[B] == Behind((-1, -1), (2, 6))


@pytest.mark.parametrize("offset", [None, "17", "not json", '{"kafka":{"0":5}}'])
def test_other_sources_are_left_out(offset: str | None) -> None:
    assert lag({"sources": [{"endOffset": offset, "latestOffset": offset}]}) == {}


def test_a_version_from_the_future_is_refused() -> None:
    future = json.dumps({"v": 2, "t": {}})
    with pytest.raises(OffsetVersionError):
        lag({"sources": [{"endOffset": future, "latestOffset": future}]})


class Start:
    """A function that starts a query, and fails `failures` times."""

    def __init__(self, failures: int, says: str) -> None:
        self.failures = failures
        self.says = says
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise RuntimeError(f"[STREAM_FAILED] Query [id = 1] terminated with exception: {self.says}.")
        return "query"


def test_a_query_whose_source_is_late_is_started_again() -> None:
    start = Start(STARTS - 1, SOURCE_LATE)
    assert patiently(start) == "query"
    assert start.calls == STARTS


@pytest.mark.parametrize(("says", "calls"), [(SOURCE_LATE, STARTS), ("DataLoss: data loss in t", 1)])
def test_but_not_for_ever_and_not_for_another_error(says: str, calls: int) -> None:
    start = Start(STARTS, says)
    with pytest.raises(RuntimeError, match=says):
        patiently(start)
    assert start.calls == calls


BATCHES = [
    progress(0, 1000, {A: (1, 4)}, {A: (1, 24)}),
    progress(3, 3000, {A: (1, 24)}, {A: (1, 24)}),
]


def test_figures_of_a_query() -> None:
    assert seconds(BATCHES) == [0.5, 3.5]
    assert rates(BATCHES) == [2000, 6000]
    assert behind(BATCHES) == [20, 0]


def test_the_page_shows_every_batch_and_both_plots() -> None:
    page = render("Archive of <orders>", BATCHES)
    assert "Archive of &lt;orders&gt;" in page
    assert "<orders>" not in page
    assert page.count("<polyline") == 2
    assert page.count("<circle") == 4
    for figure in ("4,000", "micro-batches", "6,000"):
        assert figure in page


def test_the_page_of_a_run_with_nothing_to_do() -> None:
    assert render("Archive", []).count("<polyline") == 2


def test_a_plot_stays_in_its_frame() -> None:
    svg = plot([0.5, 1.0, 9.0], [3.0, 0.0, 12.0], "rate")
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    circles = [each for each in svg.iter() if each.tag == "circle"]
    assert len(circles) == 3
    assert all(0 <= float(each.attrib["cx"]) <= width for each in circles)
    assert all(0 <= float(each.attrib["cy"]) <= height for each in circles)
    assert ElementTree.fromstring(ElementTree.tostring(svg)) is not None
