"""Names of other clients raise an error with ours, and cost nothing where they are not used."""

import pytest

from pulsar_sansio import UnknownName, did_you_mean, unknown_names


@unknown_names({"shut": "close", "spin": "there is nothing to spin"})
class Thing:
    def close(self) -> None: ...


class Special(Thing):
    def spin(self) -> str:
        return "spun"


def test_the_error_names_ours() -> None:
    with pytest.raises(UnknownName, match=r"^Thing has no 'shut'; did you mean 'close'\?$"):
        Thing().shut  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(UnknownName, match=r"^Special has no 'shut'; did you mean 'close'\?$"):
        Special().shut  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(UnknownName, match=r"^Thing has no 'spin'; there is nothing to spin$"):
        Thing().spin  # type: ignore[attr-defined]  # noqa: B018


def test_a_subclass_may_have_it() -> None:
    assert Special().spin() == "spun"


def test_it_is_missing_like_any_other() -> None:
    assert not hasattr(Thing(), "shut")
    assert getattr(Thing(), "shut", None) is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        Thing().nothing  # type: ignore[attr-defined]  # noqa: B018


def test_it_is_not_listed() -> None:
    assert {"close", "shut", "spin"} & set(dir(Thing())) == {"close"}
    assert {"close", "shut", "spin"} & set(dir(Special())) == {"close", "spin"}


def test_attributes_that_are_there_are_found_the_short_way() -> None:
    """A class with `__getattr__` would pay for it at every attribute."""
    assert not hasattr(Thing, "__getattr__")


def test_the_end_of_a_sentence() -> None:
    assert did_you_mean("name") == "did you mean 'name'?"
    assert did_you_mean("use something else") == "use something else"
