"""The corpus is replayed, and each target is searched a little from there."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import corpus
from fuzz.engines import strategy
from fuzz.targets import MACHINES, TARGETS


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_replay(target: str) -> None:
    paths = corpus.inputs(target)
    assert paths
    for path in paths:
        TARGETS[target](path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_short_search(target: str) -> None:
    @settings(max_examples=3 if target in MACHINES else 60, database=None)
    @given(strategy(target))
    def search(data: bytes) -> None:
        TARGETS[target](data)

    search()


def test_the_corpus_is_small() -> None:
    paths = [path for target in TARGETS for path in corpus.inputs(target)]
    assert sum(path.stat().st_size for path in paths) < 500_000
    assert {path.name for path in corpus.FOLDER.iterdir()} == set(TARGETS)


def test_an_input_is_kept_once_and_not_if_it_is_large(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    assert corpus.keep("frame", b"abc")
    assert not corpus.keep("frame", b"abc")
    assert not corpus.keep("frame", bytes(corpus.LARGEST + 1))
    assert [path.read_bytes() for path in corpus.inputs("frame")] == [b"abc"]


def test_the_seeds_of_the_corpus_are_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The seeds stay there, so that the corpus can be made again."""
    committed = {target: {path.name for path in corpus.inputs(target)} for target in TARGETS}
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    corpus.make()
    for target in TARGETS:
        assert {path.name for path in corpus.inputs(target)} <= committed[target]


@settings(max_examples=50)
@given(st.binary(max_size=20), st.integers(0, 30), st.integers(0, 9), st.binary(max_size=3))
def test_a_search_goes_on_from_what_is_kept(data: bytes, place: int, length: int, by: bytes) -> None:
    from fuzz.engines import _replaced, _spliced

    changed = _replaced(data, place, length, by)
    assert len(data) - length + len(by) <= len(changed) <= len(data) + len(by)
    assert len(_spliced(data, by, place, length)) <= len(data) + len(by)
