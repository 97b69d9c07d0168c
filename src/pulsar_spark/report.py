"""The batches of a query as a page to look at: how fast, and how far behind.

One file that needs no other. Everything is put together as a tree of elements, so that no text can be taken
for markup. It draws what Spark reported; it has no clock and asks no broker.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from pulsar_sim.runs.report import STYLE

from .progress import lag

WIDTH, HEIGHT, MARGIN = 1080, 180, 56


def render(title: str, batches: Sequence[dict[str, Any]]) -> str:
    """The page; `batches` are progresses as `pulsar_spark.progress.followed` gives them."""
    html = Element("html", {"lang": "en"})
    head = SubElement(html, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "title").text = title
    SubElement(head, "style").text = STYLE
    main = SubElement(SubElement(html, "body"), "main")
    SubElement(main, "h1").text = title
    _figures(main, batches)
    for name, values in (("Messages a second", rates(batches)), ("Entries behind", behind(batches))):
        SubElement(main, "h2").text = name
        SubElement(main, "div", {"class": "card"}).append(plot(seconds(batches), values, name))
    _table(main, batches)
    return "<!doctype html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


# --- what is shown ----------------------------------------------------------------------------------


def seconds(batches: Sequence[dict[str, Any]]) -> list[float]:
    """When each batch was over, since the first began."""
    if not batches:
        return []
    begun = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in batches]
    return [at - begun[0] + _duration(each) for at, each in zip(begun, batches, strict=True)]


def rates(batches: Sequence[dict[str, Any]]) -> list[float]:
    """Messages a second of each batch."""
    return [each["numInputRows"] / max(0.001, _duration(each)) for each in batches]


def behind(batches: Sequence[dict[str, Any]]) -> list[float]:
    """Entries that were still to be read after each batch; at least so many, see `progress.Behind`."""
    return [float(sum(one.entries for one in lag(each).values())) for each in batches]


def _duration(batch: dict[str, Any]) -> float:
    """Seconds."""
    return float(batch["durationMs"].get("triggerExecution", 0)) / 1000


# --- how --------------------------------------------------------------------------------------------


def plot(across: Sequence[float], values: Sequence[float], name: str) -> Element:
    """A line over seconds, as SVG: a point for each batch."""
    svg = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "role": "img",
            "aria-label": name,
            "width": "100%",
            "font-size": "11",
            "fill": "#66737c",
        },
    )
    most, last = max([*values, 1.0]), max([*across, 0.001])
    left, right, top, bottom = MARGIN, WIDTH - 16, 16, HEIGHT - 28

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / last * (right - left), bottom - y / most * (bottom - top)

    for share in (0.0, 0.5, 1.0):
        _, y = place(0, share * most)
        SubElement(
            svg,
            "line",
            {"x1": str(left), "x2": str(right), "y1": f"{y:.1f}", "y2": f"{y:.1f}", "stroke": "#e3e7ea"},
        )
        text = SubElement(svg, "text", {"x": str(left - 6), "y": f"{y + 4:.1f}", "text-anchor": "end"})
        text.text = f"{share * most:,.0f}"
    end = SubElement(svg, "text", {"x": str(right), "y": str(HEIGHT - 8), "text-anchor": "end"})
    end.text = f"{last:,.1f} s"
    points = [place(x, y) for x, y in zip(across, values, strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    SubElement(svg, "polyline", {"points": line, "fill": "none", "stroke": "#26808e", "stroke-width": "2"})
    for (x, y), value in zip(points, values, strict=True):
        dot = SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3", "fill": "#26808e"})
        SubElement(dot, "title").text = f"{value:,.0f}"
    return svg


def _figures(main: Element, batches: Sequence[dict[str, Any]]) -> None:
    rows = sum(each["numInputRows"] for each in batches)
    took = sum(map(_duration, batches))
    figures = [(f"{rows:,}", "messages"), (f"{len(batches):,}", "micro-batches"), (f"{took:,.1f}", "seconds")]
    if took:
        figures.append((f"{rows / took:,.0f}", "messages a second"))
    shown = SubElement(main, "ul", {"class": "figures"})
    for figure, what in figures:
        item = SubElement(shown, "li")
        number = SubElement(item, "b")
        number.text, number.tail = figure, what


def _table(main: Element, batches: Sequence[dict[str, Any]]) -> None:
    SubElement(main, "h2").text = "Micro-batches"
    table = SubElement(SubElement(main, "div", {"class": "card"}), "table")
    head = SubElement(table, "tr")
    for name in ("batch", "messages", "seconds", "messages a second", "entries behind"):
        SubElement(head, "th", {"class": "number"}).text = name
    for each, rate, still in zip(batches, rates(batches), behind(batches), strict=True):
        row = SubElement(table, "tr")
        cells = (
            str(each["batchId"]),
            f"{each['numInputRows']:,}",
            f"{_duration(each):.2f}",
            f"{rate:,.0f}",
            f"{still:,.0f}",
        )
        for cell in cells:
            SubElement(row, "td", {"class": "number"}).text = cell
