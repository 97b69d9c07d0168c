"""The page of a campaign: what stands in it, and that nothing in it is more than text."""

from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

import pytest

from pulsar_sim import Campaign, Coverage, Outcome, SeedReport
from pulsar_sim.coverage_points import COVERAGE_POINTS
from pulsar_sim.runs.coverage import MAPS
from pulsar_sim.runs.report import files, picture_of_pairs, render

HOSTILE = "<script>alert('&')</script>"


class Page(HTMLParser):
    """A page as a browser parses it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.rows: dict[str, int] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            kind = dict(attributes).get("class") or "head"
            self.rows[kind] = self.rows.get(kind, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def campaign() -> Campaign:
    campaign = Campaign()
    coverage = Coverage(
        {("connection", "Opening", "OPENED"): 12},
        {("connection", "Closed", "CLOSE"): 2},
        {"window full": 5},
        {"window full": 1},
    )
    campaign.add(
        SeedReport(7, messages=1500, virtual_ns=7_200 * 10**9, faults={"reset": 3, "stall": 1}), coverage
    )
    campaign.add(
        SeedReport(8, Outcome.INVARIANT, rule="INV-P3", text=HOSTILE, phase="drain", faults={"reset": 1}),
        Coverage(),
    )
    return campaign


def test_it_says_how_much_there_was_and_how_it_went(campaign: Campaign) -> None:
    page = Page(render(campaign, 4.0))
    assert page.open == []
    for text in ("invariant", "1,500", "2.0", "0.5", "375", "Seed 8: INV-P3"):
        assert text in page.texts
    assert any("Seeds 7 to 8" in text for text in page.texts)


def test_what_was_reached_and_what_was_not(campaign: Campaign) -> None:
    page = Page(render(campaign))
    kinds = len(campaign.fault_kinds)
    assert page.rows == {"head": 2, "reached": 1 + 2, "never": len(COVERAGE_POINTS) - 1 + kinds - 2}
    assert page.tags.count("svg") == len(MAPS) + 1
    for text in (
        "OPENED, Opening: 12",
        "CLOSE, Closed: not legal; came 2 times",
        "CLOSE, Ready: legal, never happened",
        "coverage point send timeout",
        "7",  # the first seed of the coverage point
        "move connection: CONNECTED in Handshaking",
        "fault half_open",
    ):
        assert text in page.texts


def test_a_campaign_that_reached_everything_says_so(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Campaign, "gaps", property(lambda self: []))
    texts = Page(render(campaign)).texts
    assert (
        "Nothing: every fault kind, every coverage point and every move of the client's machines was."
        in texts
    )


def test_nothing_in_it_is_more_than_text(campaign: Campaign) -> None:
    page = Page(render(campaign))
    assert HOSTILE in page.texts
    assert "script" not in page.tags


def test_it_needs_no_other_file(campaign: Campaign) -> None:
    page = Page(render(campaign))
    assert {"link", "img", "iframe", "object"}.isdisjoint(page.tags)
    assert {"src", "href"}.isdisjoint(name for name, _ in page.attributes)
    assert {value for _, value in page.attributes if value is not None and "://" in value} == {
        "http://www.w3.org/2000/svg"
    }


def test_the_maps_are_pictures_of_their_own(campaign: Campaign) -> None:
    found = files(campaign)
    assert {"attachment.svg", "commands-to-brokers.svg", "report.html"} < set(found)
    assert len(found) == len(MAPS) + 1
    for name, text in found.items():
        if name.endswith(".svg"):
            assert fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_pairs_of_faults_are_half_a_table(campaign: Campaign) -> None:
    titles = [title.text or "" for title in picture_of_pairs(campaign).iter("title")]
    kinds = len(campaign.fault_kinds)
    assert len(titles) == kinds * (kinds + 1) // 2
    assert "stall, reset: 1" in titles
    assert "reset, reset: 2" in titles
    assert "stall, half_open: never together" in titles
