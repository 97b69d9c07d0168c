"""The application acknowledges dead letters while their copies are under way."""

from tests.client.acknowledging.test_redelivery import EXCLUSIVE
from tests.client.letter_topics.letters_script import LettersScript


def test_acknowledging_up_to_a_message_concerns_no_copy_of_a_later_one() -> None:
    s = LettersScript(EXCLUSIVE)
    for entry, count in (3, 3), (4, 0), (5, 3):
        s.message(entry, redelivery_count=count)
    s.accept_producer()
    s.sends(2)
    s.acknowledge_cumulative(s.receive())
    s.expect("ACK")
    s.confirm(0)
    s.expect()
    s.confirm(1)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 5, None)]
