"""The table of differences in docs/conversations.md has no row too many."""

from tests.conversations import test_consumers, test_producers, test_schemas, test_topics
from tests.conversations.recorded import allowed
from tests.conversations.scenarios import play


def test_every_row_of_the_table_is_needed() -> None:
    scenarios = (
        test_producers.SCENARIOS | test_consumers.SCENARIOS | test_topics.SCENARIOS | test_schemas.SCENARIOS
    )
    used = set().union(*(play(name, scenario).used for name, scenario in scenarios.items()))
    assert used == {row.row for row in allowed()}
