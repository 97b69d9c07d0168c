"""The picture of a table of counts: what each cell says, where it stands, that nothing is cut off."""

from xml.etree.ElementTree import Element, fromstring, tostring

import pytest

from pulsar_sim.runs.heat_map import (
    HATCH,
    ILLEGAL,
    NEVER_FILL,
    HeatMap,
    decades,
    draw,
    shade,
    short,
    width_of,
)

EXAMPLE = HeatMap(
    rows=["START", "STOP"],
    columns=["Idle", "Running", "Over"],
    counts={("START", "Idle"): 1000, ("STOP", "Running"): 1},
    legal={("START", "Idle"), ("STOP", "Idle"), ("STOP", "Running")},
    illegal={("STOP", "Over"): 7},
    row_title="input",
    column_title="state",
)


def cells(picture: Element) -> dict[str, Element]:
    """Map the text that a cell shows when pointed at -> the cell."""
    found = {}
    for box in picture.iter("rect"):
        title = box.find("title")
        if title is not None:
            assert title.text is not None
            found[title.text] = box
    return found


def edges(box: Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def test_every_cell_says_which_of_the_four_it_is() -> None:
    found = cells(draw(EXAMPLE))
    assert sorted(found) == [
        "START, Idle: 1,000",
        "START, Over: not legal",
        "START, Running: not legal",
        "STOP, Idle: legal, never happened",
        "STOP, Over: not legal; came 7 times",
        "STOP, Running: 1",
    ]
    assert found["START, Idle: 1,000"].attrib["fill"] == f"#{bytes(shade(1000, 1000)).hex()}"
    assert found["STOP, Running: 1"].attrib["fill"] == f"#{bytes(shade(1, 1000)).hex()}"
    assert found["STOP, Idle: legal, never happened"].attrib["fill"] == NEVER_FILL


def test_what_is_not_legal_is_hatched_inside_of_its_cell() -> None:
    picture = draw(EXAMPLE)
    boxes = [edges(box) for what, box in cells(picture).items() if "not legal" in what]
    hatched = [path for path in picture.iter("path") if path.attrib["stroke"] == HATCH]
    inside = 0
    for path in hatched:
        numbers = [float(each) for each in path.attrib["d"].replace("M", " ").replace("L", " ").split()]
        xs, ys = numbers[0::2], numbers[1::2]
        inside += any(
            left <= min(xs) and max(xs) <= right and top <= min(ys) and max(ys) <= bottom
            for left, top, right, bottom in boxes
        )
    assert len(boxes) == inside == 3
    assert len(hatched) == 3 + 2  # and twice in the legend


def test_cells_stand_beside_each_other_and_inside_of_the_picture() -> None:
    picture = draw(EXAMPLE)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    places = sorted(edges(box) for box in cells(picture).values())
    for index, (left, top, right, bottom) in enumerate(places):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for other in places[index + 1 :]:
            assert other[0] >= right or other[1] >= bottom or other[3] <= top


def test_labels_fit_into_the_picture() -> None:
    long = "GET_TOPICS_OF_NAMESPACE_RESPONSE"
    picture = draw(HeatMap([long], [long], {}, set()))
    label = next(text for text in picture.iter("text") if text.attrib["text-anchor"] == "end")
    assert float(label.attrib["x"]) - width_of(long) >= 0
    for text in picture.iter("text"):
        if text.attrib["text-anchor"] == "start" and "transform" not in text.attrib:
            assert float(text.attrib["x"]) + width_of(text.text or "") <= float(picture.attrib["width"])


def test_what_came_although_it_is_not_legal_has_its_number_and_its_place_in_the_legend() -> None:
    numbers = [text.text for text in draw(EXAMPLE).iter("text") if text.attrib["fill"] == ILLEGAL]
    assert numbers == ["7", "7"]


def test_half_a_table_leaves_the_other_half_out() -> None:
    picture = draw(
        HeatMap(["a", "b"], ["a", "b"], {("b", "a"): 3}, {("a", "a"), ("b", "a"), ("b", "b")}, blank=True)
    )
    assert len(cells(picture)) == 3
    assert list(picture.iter("path")) == []
    labels = {
        text.text: float(text.attrib["y"]) for text in picture.iter("text") if "transform" in text.attrib
    }
    assert labels["b"] - labels["a"] == 22  # each at the first cell of its column


def test_names_are_text_and_nothing_else() -> None:
    name = "<script>&\"'"
    picture = draw(HeatMap([name], ["column"], {(name, "column"): 1}, {(name, "column")}))
    again = fromstring(tostring(picture, encoding="unicode"))
    svg = "{http://www.w3.org/2000/svg}"
    assert [each.text for each in again.iter(f"{svg}title")] == [f"{name}, column: 1"]
    assert list(again.iter(f"{svg}script")) == []


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (1000, "1.0k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (56_000, "56k"),
        (5_600_000, "5.6M"),
    ],
)
def test_numbers_are_short(count: int, text: str) -> None:
    assert short(count) == text


def test_the_legend_goes_from_one_to_the_greatest() -> None:
    assert decades(1) == [1]
    assert decades(7) == [1, 7]
    assert decades(100) == [1, 10, 100]
    assert decades(120) == [1, 10, 120]
    assert decades(525) == [1, 10, 100, 525]


def test_more_is_darker() -> None:
    shades = [sum(shade(count, 10_000)) for count in (1, 10, 100, 1000, 10_000)]
    assert shades == sorted(shades, reverse=True)
    assert len(set(shades)) == 5
