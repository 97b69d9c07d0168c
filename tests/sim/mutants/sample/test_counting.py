"""The unit test of the sample: it knows what was refused, and not that `halve` makes it less."""

from tests.sim.mutants.sample.counting import Sum


def test_what_was_refused_is_counted() -> None:
    found = Sum(1)
    found.add(2)
    assert found.refused == 1
