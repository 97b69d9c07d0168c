"""The report of a campaign, as a page: figures, failures, reached and missing coverage.

The page is one file that needs no other; beside it are the maps, as SVG files of their own. This module
builds a tree of elements, so that no text can be taken for markup. It owns the layout. Counts come from the
campaign, pictures from `heat_map`, and the caller writes the files.
"""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from ..coverage_points import COVERAGE_POINTS
from ..engine.failures import Outcome
from .campaign import Campaign
from .coverage import MAPS, Map
from .heat_map import HeatMap, draw, short

STYLE = """
:root { --ink: #1c2833; --faint: #66737c; --line: #e3e7ea; --never: #c2410c; --good: #1d7a55; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f6f7; color: var(--ink);
  font: 15px/1.5 ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 40px 24px 80px; }
h1 { font-size: 28px; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 19px; margin: 48px 0 4px; }
h3 { font-size: 15px; margin: 24px 0 2px; }
p { margin: 0 0 12px; color: var(--faint); max-width: 78ch; }
code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { overflow-x: auto; margin: 6px 0 0; font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; }
.badge { display: inline-block; margin-left: 12px; padding: 2px 12px; border-radius: 99px; color: #fff;
  background: var(--never); font-size: 14px; vertical-align: 4px; }
.badge.passed { background: var(--good); }
.figures { display: flex; flex-wrap: wrap; gap: 12px; margin: 24px 0 0; padding: 0; list-style: none; }
.figures li { flex: 1 1 140px; padding: 12px 16px; background: #fff; border: 1px solid var(--line);
  border-radius: 8px; color: var(--faint); font-size: 13px; }
.figures b { display: block; color: var(--ink); font-size: 22px; font-weight: 600; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 8px 16px;
  overflow-x: auto; margin: 8px 0 0; }
.failure { border-left: 4px solid var(--never); }
.gaps { columns: 3 260px; margin: 8px 0; padding-left: 18px; color: var(--never); font-size: 14px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--faint); }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { white-space: nowrap; font-weight: 600; }
tr.never td { color: var(--never); }
.bar { display: block; height: 10px; border-radius: 2px; background: #26808e; min-width: 2px; }
"""


def files(campaign: Campaign, seconds: float | None = None) -> dict[str, str]:
    """Build the files of the report, by file name: `report.html`, and a picture of each map.

    `seconds`: the time that the campaign took; None where the caller had no clock.
    """
    pictures = {
        f"{name.replace(' ', '-')}.svg": tostring(picture_of(campaign, each), encoding="unicode")
        for name, each in MAPS.items()
    }
    return {"report.html": render(campaign, seconds), **pictures}


def render(campaign: Campaign, seconds: float | None = None) -> str:
    """The page."""
    html = Element("html", {"lang": "en"})
    head = SubElement(html, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "title").text = "Simulation report"
    SubElement(head, "style").text = STYLE
    main = SubElement(SubElement(html, "body"), "main")
    _head(main, campaign, seconds)
    _failures(main, campaign)
    _gaps(main, campaign)
    _maps(main, campaign)
    _points(main, campaign)
    _faults(main, campaign)
    return "<!doctype html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def picture_of(campaign: Campaign, of: Map) -> Element:
    """A map: inputs go down, states across."""
    coverage = campaign.coverage

    def turned(cells: dict[tuple[str, str, str], int]) -> dict[tuple[str, str], int]:
        return {(column, row): count for (name, row, column), count in cells.items() if name == of.name}

    return draw(
        HeatMap(
            of.columns,
            of.rows,
            turned(coverage.cells),
            {(column, row) for row, column in of.legal},
            turned(coverage.illegal),
            row_title="input",
            column_title="state",
            width=58,
        )
    )


def picture_of_pairs(campaign: Campaign) -> Element:
    """Draw the number of worlds in which two kinds of faults struck; the diagonal is for each kind alone."""
    kinds = campaign.fault_kinds
    counts = {(later, earlier): count for (earlier, later), count in campaign.fault_pairs.items()}
    counts |= {(kind, kind): count for kind, count in campaign.fault_seeds.items()}
    legal = {(row, column) for row in kinds for column in kinds if column <= row}
    return draw(
        HeatMap(
            kinds,
            kinds,
            counts,
            legal,
            width=14,
            height=14,
            numbers=False,
            blank=True,
            never="never together",
        )
    )


# --- parts ---------------------------------------------------------------------------------------------


def _head(main: Element, campaign: Campaign, seconds: float | None) -> None:
    title = SubElement(main, "h1")
    title.text = "Simulation report"
    outcome = campaign.outcome
    badge = SubElement(title, "span", {"class": "badge passed" if outcome is Outcome.PASSED else "badge"})
    badge.text = outcome.name.lower()
    if campaign.seeds:
        _paragraph(
            main, f"Seeds {campaign.first_seed} to {campaign.last_seed}. The same seeds, the same page."
        )
    figures = [
        (f"{campaign.seeds:,}", "seeds"),
        (f"{campaign.messages:,}", "messages delivered and acknowledged"),
        (f"{campaign.virtual_ns / 3_600e9:,.1f}", "virtual hours"),
        (f"{sum(campaign.faults.values()):,}", f"faults of {len(campaign.faults)} kinds"),
        (f"{campaign.events:,}", "events"),
        (f"{len(campaign.failures):,}", "violations"),
    ]
    if seconds:
        figures.append((f"{campaign.seeds / seconds:,.1f}", f"seeds a second, for {seconds:,.0f} s"))
        figures.append((f"{campaign.messages / seconds:,.0f}", "messages a second"))
    shown = SubElement(main, "ul", {"class": "figures"})
    for figure, what in figures:
        item = SubElement(shown, "li")
        number = SubElement(item, "b")
        number.text, number.tail = figure, what
    _paragraph(main, f"Trace hash {campaign.as_json()['trace_hash']}").set("style", "margin-top: 12px")


def _failures(main: Element, campaign: Campaign) -> None:
    if not campaign.failures:
        return
    SubElement(main, "h2").text = "Violations"
    for report in campaign.failures:
        card = SubElement(main, "div", {"class": "card failure"})
        line = SubElement(card, "b")
        line.text = f"Seed {report.seed}: {report.rule}"
        line.tail = f" ({report.outcome.name.lower()}, in phase {report.phase})"
        SubElement(card, "pre").text = report.text
        SubElement(card, "code").text = f"pulsar-trio simulate shrink --seed {report.seed}"


def _gaps(main: Element, campaign: Campaign) -> None:
    SubElement(main, "h2").text = "What was never reached"
    gaps = campaign.gaps
    if not gaps:
        _paragraph(
            main,
            "Nothing: every fault kind, every coverage point and every move of the client's machines was.",
        )
        return
    _paragraph(
        main,
        "Of the fault kinds, the coverage points, and the moves in the tables of the client's machines. "
        "More seeds may reach it; else a fault, a workload or a feature of the simulator is missing.",
    )
    shown = SubElement(main, "ul", {"class": "gaps"})
    for gap in gaps:
        SubElement(shown, "li").text = gap


def _maps(main: Element, campaign: Campaign) -> None:
    SubElement(main, "h2").text = "State × input"
    _paragraph(main, "How often each input came in each state. Point at a cell for its number.")
    found = campaign.coverage.as_json()["maps"]
    for name, each in MAPS.items():
        SubElement(main, "h3").text = name.capitalize()
        reached, legal = found[name]["reached"], found[name]["legal"]
        _paragraph(main, f"{each.text} {reached} of {legal} legal pairs happened.")
        SubElement(main, "div", {"class": "card"}).append(picture_of(campaign, each))


def _points(main: Element, campaign: Campaign) -> None:
    coverage = campaign.coverage
    SubElement(main, "h2").text = "Marks"
    _paragraph(
        main,
        f"{len(COVERAGE_POINTS) - len(coverage.missing_points)} of {len(COVERAGE_POINTS)} situations were "
        "reached that a simulator worth trusting gets into.",
    )
    table = _table(main, "coverage point", "what happened", "first seed", "seeds", "times")
    for point in COVERAGE_POINTS.values():
        times = coverage.points.get(point.name, 0)
        row = SubElement(table, "tr", {"class": "reached" if times else "never"})
        SubElement(row, "td", {"class": "name"}).text = point.name
        SubElement(row, "td").text = point.text
        first = SubElement(row, "td", {"class": "number"})
        first.text = str(campaign.first_reached.get(point.name, ""))
        _numbers(row, (coverage.seeds.get(point.name, 0), times))


def _faults(main: Element, campaign: Campaign) -> None:
    SubElement(main, "h2").text = "Faults"
    most = max(campaign.faults.values(), default=1)
    table = _table(main, "kind", "", "seeds", "times")
    for kind in sorted(campaign.fault_kinds, key=lambda each: (-campaign.faults.get(each, 0), each)):
        times = campaign.faults.get(kind, 0)
        row = SubElement(table, "tr", {"class": "reached" if times else "never"})
        SubElement(row, "td", {"class": "name"}).text = kind
        cell = SubElement(row, "td", {"style": "width: 50%"})
        if times:
            SubElement(cell, "span", {"class": "bar", "style": f"width: {100 * times / most:.1f}%"})
        _numbers(row, (campaign.fault_seeds.get(kind, 0), times))
    pairs = campaign.as_json()["coverage"]["fault_pairs"]
    SubElement(main, "h3").text = "Two in one world"
    _paragraph(
        main,
        f"{pairs['seen']:,} of {pairs['possible']:,} pairs of kinds struck in the same world. The diagonal: "
        "the worlds in which a kind struck.",
    )
    SubElement(main, "div", {"class": "card"}).append(picture_of_pairs(campaign))


def _table(main: Element, *titles: str) -> Element:
    card = SubElement(main, "div", {"class": "card"})
    table = SubElement(card, "table")
    row = SubElement(table, "tr")
    for title in titles:
        attributes = {"class": "number"} if title in ("first seed", "seeds", "times") else {}
        SubElement(row, "th", attributes).text = title
    return table


def _numbers(row: Element, numbers: Iterable[int]) -> None:
    for number in numbers:
        cell = SubElement(row, "td", {"class": "number", "title": f"{number:,}"})
        cell.text = short(number)


def _paragraph(main: Element, text: str) -> Element:
    paragraph = SubElement(main, "p")
    paragraph.text = text
    return paragraph
