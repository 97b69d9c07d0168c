"""All scenes by name, and one of them played."""

from tests.triosim.handle_scenes import HANDLE_SCENES
from tests.triosim.scenes import SCENES, Stage
from tests.triosim.world import Report

ALL_SCENES = {**SCENES, **HANDLE_SCENES}


def play(name: str, keep: bool = False) -> Report:
    """One scene, once."""
    return Stage(ALL_SCENES[name], keep).run()
