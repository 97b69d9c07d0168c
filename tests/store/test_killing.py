"""A broker that is killed loses nothing that it confirmed; `python -m tests.store` runs many rounds."""

from pathlib import Path

import pytest

from tests.store.killing import faults_of, run_rounds
from tests.store.reading import reloaded


@pytest.mark.slow
def test_nothing_that_a_killed_broker_confirmed_is_lost(tmp_path: Path) -> None:
    confirmed = run_rounds(4, 1, tmp_path / "data")
    assert confirmed.faults == []
    assert all(confirmed.messages.values())
    assert any(confirmed.acknowledged.values())
    state = reloaded(tmp_path / "data")
    assert state.incarnation == 4
    assert list(faults_of(state, confirmed)) == []
    for stored in state.topics.values():
        stored.cursors.clear()
        stored.sequences.clear()
        stored.ledgers[max(stored.ledgers)].entries[0].data = b""
    lost = "\n".join(faults_of(state, confirmed))
    for what in ("is lost", "lost its acknowledgement", "cumulative is behind", "is behind sequence id"):
        assert what in lost
