"""Every scene comes to the end that it says."""

import pytest

from tests.triosim.playing import ALL_SCENES, play


@pytest.mark.parametrize("name", ALL_SCENES)
def test_scene(name: str) -> None:
    assert play(name).failure == ""


def test_a_scene_is_the_same_every_time() -> None:
    name = "dates_are_those_of_the_wall_clock"
    assert play(name) == play(name)
