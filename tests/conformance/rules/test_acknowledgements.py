"""The rules of `acknowledgements`: a conversation that breaks one is found, and no other rule is reported."""

import pytest

from pulsar_sansio.conformance.rules import acknowledgements
from tests.conformance.cases.breaking import cases_of, check_broken, name_of
from tests.conformance.cases.case import Case


@pytest.mark.parametrize("case", cases_of(acknowledgements), ids=name_of)
def test_a_broken_rule_is_found(case: Case) -> None:
    check_broken(case)
