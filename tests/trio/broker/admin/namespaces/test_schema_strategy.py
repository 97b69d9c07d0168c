"""The strategy of schemas by its older names: what is no name."""

import pytest

from tests.trio.broker.admin.asking import Administrator

PATH = "/namespaces/public/default/schemaAutoUpdateCompatibilityStrategy"


@pytest.mark.parametrize("given", [[], {}, ["Full"], 1, True, "Best"])
def test_what_is_no_strategy_is_refused(given: object) -> None:
    status, reason = Administrator().ask("PUT", PATH, given)
    assert (status, "strategy: one of" in reason) == (400, True)
