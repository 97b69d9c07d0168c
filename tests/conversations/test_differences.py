"""All recordings of the Java client are repeated, and the table of differences has no row too many."""

from tests.conversations import test_consumers, test_producers, test_schemas, test_topics, test_transactions
from tests.conversations.recorded import allowed
from tests.conversations.scenarios import play
from tests.wire.recorded.recordings import FOLDER

SCENARIOS = {
    name: scenario
    for module in (test_producers, test_consumers, test_topics, test_schemas, test_transactions)
    for name, scenario in module.SCENARIOS.items()
}


def test_every_recording_of_the_java_client_is_repeated() -> None:
    recordings = {file.stem.removeprefix("java-") for file in FOLDER.glob("java-*.jsonl")}
    assert recordings == SCENARIOS.keys()


def test_every_row_of_the_table_is_needed() -> None:
    used = set().union(*(play(name, scenario).used for name, scenario in SCENARIOS.items()))
    assert used == {row.row for row in allowed()}
