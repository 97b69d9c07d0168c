"""A table of counts as a picture: SVG, colour by the logarithm of the count.

A cell says one of four things: it happened so often; it is legal and never happened; it is not legal; it is
not legal, and came. Owns geometry and colours. It refuses to know what is counted.
Nothing but the standard library, and nothing in the picture that needs a style sheet, a font or a script.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, cos, log10, radians, sin
from xml.etree.ElementTree import Element, SubElement

SCALE = ((223, 240, 236), (120, 190, 185), (38, 128, 142), (22, 66, 91), (12, 30, 52))
"""Colours from one to the greatest count, evenly spaced."""

INK, FAINT, LINE = "#1c2833", "#8a969e", "#d5dbdf"
HATCH, NEVER, NEVER_FILL, ILLEGAL = "#d3dade", "#c2410c", "#fff3e8", "#8a4baf"

SMALL, CAPITAL = 6.3, 7.7
"""Widths of letters, of a broad font: a label that ends early looks better than one cut off."""
SLANT = 40
"""Degrees by which the labels of the columns rise."""
MARGIN = 16


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows go down, columns across."""

    rows: Sequence[str]
    columns: Sequence[str]
    counts: Mapping[tuple[str, str], int]
    """(row, column) -> how often; absent is never."""
    legal: Collection[tuple[str, str]]
    illegal: Mapping[tuple[str, str], int] = field(default_factory=dict)
    row_title: str = ""
    column_title: str = ""
    width: int = 46
    height: int = 22
    """The height of a cell; `width` is its width."""
    numbers: bool = True
    """When True, the counts stand in the cells. The reader can point at a cell for its count in any case."""
    blank: bool = False
    """Cells that are not legal are left out, instead of hatched."""
    never: str = "legal, never happened"


def width_of(text: str) -> float:
    """Compute the greatest width that a label may take."""
    return sum(CAPITAL if letter.isupper() else SMALL for letter in text)


def decades(most: int) -> list[int]:
    """Counts for the legend: 1, 10, 100 … and the greatest."""
    found = [1]
    while found[-1] * 15 < most:
        found.append(found[-1] * 10)
    return [*found, most] if most > 1 else found


def shade(count: int, most: int) -> tuple[int, int, int]:
    """The colour of a count from 1 to `most`."""
    place = log10(count) / log10(most) if most > 1 else 1.0
    position = max(0.0, min(1.0, place)) * (len(SCALE) - 1)
    index = min(int(position), len(SCALE) - 2)
    part = position - index
    lower, upper = SCALE[index], SCALE[index + 1]
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(lower, upper, strict=True))
    return red, green, blue


def short(count: int) -> str:
    """At most four letters: 950, 1.2k, 34k, 5.6M."""
    for limit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= limit:
            value = count / limit
            return f"{value:.1f}{letter}" if value < 9.95 else f"{value:.0f}{letter}"
    return str(count)


def draw(heat_map: HeatMap) -> Element:
    """The picture, with the namespace of a file of its own."""
    return _Drawing(heat_map).draw()


class _Drawing:
    def __init__(self, heat_map: HeatMap) -> None:
        self._map = heat_map
        self._most = max(heat_map.counts.values(), default=1)
        self._left = MARGIN + max(map(width_of, heat_map.rows), default=0.0) + 10
        self._starts = [self._first_row(column) * heat_map.height for column in heat_map.columns]
        rises = [width_of(column) * sin(radians(SLANT)) for column in heat_map.columns]
        above = max((rise - start for rise, start in zip(rises, self._starts, strict=True)), default=0.0)
        self._top = MARGIN + (22 if heat_map.column_title else 0) + above + 10
        overhang = max(map(width_of, heat_map.columns), default=0.0) * cos(radians(SLANT))
        self._right = self._left + len(heat_map.columns) * heat_map.width
        self._bottom = self._top + len(heat_map.rows) * heat_map.height
        self._total_width = max(self._right + overhang, self._left + 420) + MARGIN
        self._total_height = self._bottom + 62

    def draw(self) -> Element:
        width, height = ceil(self._total_width), ceil(self._total_height)
        self._svg = Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "width": str(width),
                "height": str(height),
                "viewBox": f"0 0 {width} {height}",
                "font-family": "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif",
                "font-size": "11",
                "role": "img",
            },
        )
        SubElement(self._svg, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
        self._labels()
        for index, row in enumerate(self._map.rows):
            for place, column in enumerate(self._map.columns):
                self._cell(row, column, self._x(place), self._y(index))
        self._legend(self._left, self._bottom + 22)
        return self._svg

    def _first_row(self, column: str) -> int:
        """The place where a column begins: at its first cell."""
        if not self._map.blank:
            return 0
        rows = self._map.rows
        return next((index for index, row in enumerate(rows) if (row, column) in self._map.legal), 0)

    def _x(self, place: int) -> float:
        return self._left + place * self._map.width

    def _y(self, index: int) -> float:
        return self._top + index * self._map.height

    # --- parts ---

    def _labels(self) -> None:
        heat_map = self._map
        for index, row in enumerate(heat_map.rows):
            self._text(row, self._left - 7, self._y(index) + heat_map.height / 2 + 4, anchor="end")
        for place, column in enumerate(heat_map.columns):
            x, y = self._x(place) + heat_map.width / 2 - 2, self._top + self._starts[place] - 7
            label = self._text(column, x, y)
            label.set("transform", f"rotate(-{SLANT} {x:.1f} {y:.1f})")
        if heat_map.row_title:
            title = self._text(f"{heat_map.row_title} ↓", self._left - 7, self._top - 8, FAINT, "end")
            title.set("font-weight", "600")
        if heat_map.column_title:
            title = self._text(f"{heat_map.column_title} →", self._left, MARGIN + 8, FAINT)
            title.set("font-weight", "600")

    def _cell(self, row: str, column: str, x: float, y: float) -> None:
        heat_map = self._map
        count = heat_map.counts.get((row, column), 0)
        illegal = heat_map.illegal.get((row, column), 0)
        legal = (row, column) in heat_map.legal
        if not legal and heat_map.blank:
            return
        if count:
            colour = shade(count, self._most)
            what = f"{count:,}"
            box = self._box(x, y, f"#{bytes(colour).hex()}")
            if heat_map.numbers:
                self._number(short(count), x, y, "#ffffff" if sum(colour) < 400 else INK)
        elif legal:
            what = heat_map.never
            box = self._box(x, y, NEVER_FILL, NEVER)
            if heat_map.numbers:
                self._number("0", x, y, NEVER)
        else:
            what = f"not legal; came {illegal:,} times" if illegal else "not legal"
            box = self._box(x, y, "#ffffff", LINE)
            self._hatch(x, y)
            if illegal:
                self._number(short(illegal), x, y, ILLEGAL)
        SubElement(box, "title").text = f"{row}, {column}: {what}"

    def _legend(self, x: float, y: float) -> None:
        width, height = 30, self._map.height
        for count in decades(self._most):
            self._box(x, y, f"#{bytes(shade(count, self._most)).hex()}", width=width)
            self._text(short(count), x + width / 2, y + height + 14, FAINT, "middle")
            x += width
        x += 20
        self._box(x, y, NEVER_FILL, NEVER, width)
        x = self._beside(self._map.never, x + width, y)
        if self._map.blank:
            return
        self._box(x, y, "#ffffff", LINE, width)
        self._hatch(x, y, width)
        x = self._beside("not legal", x + width, y)
        if self._map.illegal:
            self._box(x, y, "#ffffff", LINE, width)
            self._hatch(x, y, width)
            self._number("7", x, y, ILLEGAL, width)
            x = self._beside("not legal, and came", x + width, y)
        self._widen(x)

    def _beside(self, text: str, x: float, y: float) -> float:
        self._text(text, x + 6, y + self._map.height / 2 + 4)
        end = x + 6 + width_of(text) + 16
        self._widen(end)
        return end

    def _widen(self, x: float) -> None:
        if x + MARGIN > self._total_width:
            self._total_width = x + MARGIN
            width = ceil(self._total_width)
            self._svg.set("width", str(width))
            self._svg.set("viewBox", f"0 0 {width} {ceil(self._total_height)}")

    # --- shapes ---

    def _box(self, x: float, y: float, fill: str, edge: str = "#ffffff", width: float = 0) -> Element:
        """A cell, with a little space around it."""
        return SubElement(
            self._svg,
            "rect",
            {
                "x": f"{x + 1:.1f}",
                "y": f"{y + 1:.1f}",
                "width": f"{(width or self._map.width) - 2:.1f}",
                "height": f"{self._map.height - 2:.1f}",
                "rx": "2",
                "fill": fill,
                "stroke": edge,
            },
        )

    def _hatch(self, x: float, y: float, width: float = 0) -> None:
        """Strokes from the lower left to the upper right, cut off at the edges of the cell."""
        left, right = x + 2, x + (width or self._map.width) - 2
        top, bottom = y + 2, y + self._map.height - 2
        strokes = []
        start = left - (bottom - top) + 4
        while start < right:
            from_x, to_x = max(start, left), min(start + bottom - top, right)
            strokes.append(
                f"M{from_x:.1f} {bottom - from_x + start:.1f}L{to_x:.1f} {bottom - to_x + start:.1f}"
            )
            start += 6
        SubElement(self._svg, "path", {"d": "".join(strokes), "stroke": HATCH, "pointer-events": "none"})

    def _number(self, text: str, x: float, y: float, colour: str, width: float = 0) -> None:
        number = self._text(
            text, x + (width or self._map.width) / 2, y + self._map.height / 2 + 4, colour, "middle"
        )
        number.set("pointer-events", "none")

    def _text(self, text: str, x: float, y: float, colour: str = INK, anchor: str = "start") -> Element:
        element = SubElement(
            self._svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "fill": colour, "text-anchor": anchor}
        )
        element.text = text
        return element
