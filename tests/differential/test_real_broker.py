"""A real Pulsar still answers as recorded: one conversation in eight, and all of them by `LONG=1`."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.differential import recorded
from tests.differential.comparison import Difference, differences
from tests.real_pulsar import RealPulsar

TOGETHER = 4
"""Conversations at a time."""

pytestmark = pytest.mark.real


@pytest.fixture
def pulsar() -> Iterator[RealPulsar]:
    """A Pulsar of the test's own, which has had no conversation before."""
    with RealPulsar() as pulsar:
        recorded.warm_up(pulsar)
        yield pulsar


def found(pulsar: RealPulsar, names: Iterable[str]) -> dict[str, list[Difference]]:
    """Play conversations, and return what is answered otherwise than recorded."""

    def play(name: str) -> list[Difference]:
        conversation, answers = recorded.conversations()[name], recorded.answers()[name]
        return differences(conversation, answers, recorded.of_pulsar(pulsar, conversation, answers))

    names = [*names]
    with ThreadPoolExecutor(TOGETHER) as pool:
        return {name: each for name, each in zip(names, pool.map(play, names), strict=True) if each}


def test_a_real_pulsar_answers_as_recorded(pulsar: RealPulsar) -> None:
    assert not found(pulsar, [*recorded.conversations()][::8])


@pytest.mark.long
def test_a_real_pulsar_answers_all_conversations_as_recorded(pulsar: RealPulsar) -> None:
    assert not found(pulsar, recorded.conversations())
