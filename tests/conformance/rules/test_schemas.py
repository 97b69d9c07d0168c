"""The rules of `schemas`: a conversation that breaks one is found, and no other rule is reported."""

import pytest

from pulsar_sansio.conformance.rules import schemas
from tests.conformance.cases.breaking import cases_of, check_broken, name_of
from tests.conformance.cases.case import Case


@pytest.mark.parametrize("case", cases_of(schemas), ids=name_of)
def test_a_broken_rule_is_found(case: Case) -> None:
    check_broken(case)
