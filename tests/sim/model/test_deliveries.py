"""Deliveries to a consumer, message by message."""

from pulsar_sansio.model.config import ConsumerSpec, DeadLetterPolicy, SubscriptionType
from pulsar_sim.model.deliveries import PATIENCE, ConsumerDeliveries

BATCH, SINGLE = (1, 0), (1, 1)


def given(most: int = 1) -> ConsumerDeliveries:
    policy = DeadLetterPolicy(most)
    return ConsumerDeliveries(ConsumerSpec("t", "s", SubscriptionType.SHARED, dead_letter=policy))


def came(record: ConsumerDeliveries, count: int, mask: int | None = None, now: int = 0) -> int:
    return record.came(BATCH, 3, mask, count, True, now)


def test_what_is_acknowledged_of_a_batch_is_known_until_all_of_it_is() -> None:
    record = given()
    came(record, 0)
    record.acknowledged((*BATCH, 0), 0)
    assert record.is_known((*BATCH, 0))
    assert not record.is_known((*BATCH, 1))
    record.acknowledged((*BATCH, 1), 0)
    record.acknowledged((*BATCH, 2), 0)
    record.acknowledged((*BATCH, 2), 0)
    assert not any(record.is_known((*BATCH, index)) for index in range(3))


def test_what_others_have_acknowledged_and_what_is_copied_completes_it() -> None:
    record = given()
    came(record, 0, 0b011)
    record.acknowledged((*BATCH, 0), 0)
    assert record.is_known((*BATCH, 0))
    record.copied((*BATCH, 1), 0)
    assert not record.is_known((*BATCH, 0))


def test_cumulatively() -> None:
    record = given()
    came(record, 0)
    record.acknowledged_through((*BATCH, 1), 0)
    assert [record.is_known((*BATCH, index)) for index in range(3)] == [True, True, False]
    record.copied_through((*BATCH, 2))
    assert not record.is_known((*BATCH, 0))


def test_after_a_seek_nothing_is_known() -> None:
    record = given()
    came(record, 0)
    record.acknowledged((*BATCH, 0), 0)
    record.moves()
    assert not record.is_known((*BATCH, 0))
    assert record.blocking(BATCH, 0) == set()


def test_what_has_to_be_settled_before_it_is_asked_for() -> None:
    record = given()
    came(record, 0)
    record.settled((*BATCH, 0), 0)
    record.acknowledged((*BATCH, 1), 0)
    assert record.blocking(BATCH, 1) == {2}
    assert record.may_wait(BATCH, 1)
    record.delivered((*BATCH, 2), 0, 10)
    assert record.blocking(BATCH, 10 + 600 * PATIENCE // 60 - 1) == {2}  # ten delays of a minute
    assert record.blocking(BATCH, 10 + 600 * PATIENCE // 60) == set()
    record.settled((*BATCH, 2), 20)
    assert record.blocking(BATCH, 21) == set()
    assert not record.may_wait(BATCH, 21)
    record.subscribes()
    assert record.may_wait(BATCH, 22)
    assert not record.may_wait(SINGLE, 22)


def test_a_delivery_that_was_not_given_is_no_try() -> None:
    record = given()
    assert came(record, 0) == came(record, 1) == 0
    record.delivered((*BATCH, 0), 1, 0)
    assert came(record, 2) == 0
    record.delivered((*BATCH, 0), 2, 0)
    assert came(record, 3) == 0b001
    assert record.is_dead((*BATCH, 0), 3)
    assert not record.is_dead((*BATCH, 0), 2)
    assert not record.is_dead((*BATCH, 1), 3)


def test_of_deliveries_to_others_nothing_is_known() -> None:
    assert came(given(), 2) == 0b111


def test_the_broker_counts_anew() -> None:
    record = given()
    came(record, 0)
    came(record, 0)
    for index in range(3):
        record.delivered((*BATCH, index), 0, 0)
    came(record, 1)
    for index in range(3):
        record.delivered((*BATCH, index), 1, 0)
    assert came(record, 2) == 0b111


def test_what_is_acknowledged_is_not_dead() -> None:
    record = given()
    came(record, 0)
    record.acknowledged((*BATCH, 1), 0)
    assert came(record, 2) & 0b010 == 0


def test_of_chunks_and_of_what_was_acknowledged_it_is_not_clear() -> None:
    record = given()
    record.came(SINGLE, 1, None, 0, False, 0)
    assert record.came(SINGLE, 1, None, 2, False, 0) == 1
    assert not record.is_dead((*SINGLE, 0), 2)
    other = given()
    other.came(SINGLE, 1, None, 0, True, 0)
    other.acknowledged((*SINGLE, 0), 0)
    assert other.came(SINGLE, 1, None, 2, True, 0) == 1


def test_without_a_policy_nothing_is_dead() -> None:
    record = ConsumerDeliveries(ConsumerSpec("t", "s"))
    assert came(record, 9) == 0
    assert not record.is_dead((*BATCH, 0), 9)


def test_what_is_copied_need_not_be_acknowledged_when_it_is_redelivered() -> None:
    record = given()
    came(record, 0)
    record.copied((*BATCH, 0), 0)
    came(record, 1)
    assert record.blocking(BATCH, 1) == {1, 2}
