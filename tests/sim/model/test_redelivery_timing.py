"""The moments from which a consumer may ask for messages again."""

from pulsar_sansio.model.config import ConsumerSpec, RedeliveryBackoff, SubscriptionType
from pulsar_sim.model.redelivery_timing import RedeliveryTiming

SECOND = 10**9
GROWING = RedeliveryBackoff(1.0, 8.0, 2.0)
FIRST, SECOND_ENTRY = (1, 0), (1, 1)


def redelivery_timing(**options: object) -> RedeliveryTiming:
    options = {"acknowledgement_timeout": 2.0, "negative_acknowledgement_delay": 3.0, **options}
    return RedeliveryTiming(ConsumerSpec("t", "s", **options))  # type: ignore[arg-type]


def test_never_before_its_timeout_and_once() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 1, 0, 0, 10)
    assert not record.is_due(FIRST, 10 + 2 * SECOND - 1)
    assert not record.any_due(10 + 2 * SECOND - 1)
    assert record.is_due(FIRST, 10 + 2 * SECOND)
    record.asked_for(FIRST)
    assert not record.is_due(FIRST, 10 + 3 * SECOND)


def test_a_batch_is_judged_when_all_of_it_is() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 2, 0, 0, 0)
    record.delivered([FIRST], 2, 1, 0, 0)
    record.acknowledged([FIRST], 0)
    assert record.any_due(2 * SECOND)
    record.delivered([FIRST], 2, 0, 0, 0)
    record.delivered([FIRST], 2, 1, 0, 0)
    record.acknowledged([FIRST], 0)
    record.acknowledged([FIRST], 1)
    assert not record.any_due(9 * SECOND)


def test_a_batch_of_which_the_application_has_nothing_that_it_has_not_judged() -> None:
    """The other messages wait in the queue, and are delivered later."""
    record = redelivery_timing()
    record.delivered([FIRST], 3, 0, 0, 0)
    record.acknowledged([FIRST], 0)
    assert not record.any_due(9 * SECOND)
    record.delivered([FIRST], 3, 1, 0, 0)
    assert record.is_due(FIRST, 2 * SECOND)
    record.copied([FIRST], 1)
    assert not record.is_due(FIRST, 2 * SECOND)
    record.delivered([FIRST], 3, 2, 0, 0)
    record.refused([FIRST], 2, 0, 0)
    assert not record.is_due(FIRST, 2 * SECOND)


def test_of_several_that_are_refused_the_last_delay_counts() -> None:
    record = redelivery_timing(subscription_type=SubscriptionType.SHARED)
    record.refused([FIRST], 0, 0, 0)
    record.refused([FIRST], 1, 0, SECOND)
    record.refused([FIRST], 1, 0, 2 * SECOND)
    assert not record.refusal_is_due(FIRST, 4 * SECOND - 1)
    assert record.refusal_is_due(FIRST, 4 * SECOND)
    record.acknowledged([FIRST], 1)
    assert record.refusal_is_due(FIRST, 3 * SECOND)
    assert record.any_refusal_is_due(3 * SECOND)


def test_what_was_redelivered_unasked_need_not_be_asked_for() -> None:
    record = redelivery_timing(subscription_type=SubscriptionType.SHARED)
    record.refused([FIRST], 0, 0, 0)
    record.arrived(FIRST)
    assert record.forgotten(99 * SECOND) == []
    in_order = redelivery_timing(subscription_type=SubscriptionType.EXCLUSIVE)
    in_order.refused([FIRST], 0, 0, 0)
    in_order.arrived(FIRST)
    assert in_order.any_refusal_is_due(9 * SECOND)


def test_what_is_covered_by_a_later_one_is_judged() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 1, 0, 0, 0)
    for index in range(2):
        record.delivered([SECOND_ENTRY], 2, index, 0, 0)
    record.acknowledged_through(SECOND_ENTRY, 0)
    assert not record.is_due(FIRST, 9 * SECOND)
    assert record.is_due(SECOND_ENTRY, 9 * SECOND)
    record.asked_for(SECOND_ENTRY)
    for index in range(2):
        record.delivered([SECOND_ENTRY], 2, index, 0, 0)
    record.acknowledged_through(SECOND_ENTRY, 1)
    assert not record.any_due(9 * SECOND)


def test_what_is_reconsumed_later_is_judged() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 1, 0, 0, 0)
    record.delivered([SECOND_ENTRY], 2, 0, 0, 0)
    record.reconsume_later([SECOND_ENTRY], True, False)
    assert record.forgotten(99 * SECOND) == [FIRST, SECOND_ENTRY]
    record.reconsume_later([SECOND_ENTRY], True, True)
    assert record.forgotten(99 * SECOND) == [SECOND_ENTRY]
    record.reconsume_later([SECOND_ENTRY], False, False)
    assert record.forgotten(99 * SECOND) == []


def test_what_is_refused_waits_for_its_delay_alone() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 1, 0, 0, 0)
    record.refused([FIRST], 0, 0, SECOND)
    assert not record.is_due(FIRST, 9 * SECOND)
    assert not record.refusal_is_due(FIRST, 4 * SECOND - 1)
    assert not record.any_refusal_is_due(4 * SECOND - 1)
    assert record.refusal_is_due(FIRST, 4 * SECOND)
    assert record.any_refusal_is_due(4 * SECOND)
    record.asked_for(FIRST)
    assert not record.any_refusal_is_due(9 * SECOND)


def test_delays_grow() -> None:
    record = redelivery_timing(
        acknowledgement_timeout_backoff=GROWING, negative_acknowledgement_backoff=GROWING
    )
    record.delivered([FIRST], 1, 0, 2, 0)
    assert not record.is_due(FIRST, 6 * SECOND - 1)
    assert record.is_due(FIRST, 6 * SECOND)
    record.refused([FIRST], 0, 99, 0)
    assert not record.refusal_is_due(FIRST, 8 * SECOND - 1)
    assert record.refusal_is_due(FIRST, 8 * SECOND)


def test_nothing_outlives_an_attachment() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 1, 0, 0, 0)
    record.refused([SECOND_ENTRY], 0, 0, 0)
    record.clear()
    assert not record.any_due(9 * SECOND)
    assert not record.any_refusal_is_due(9 * SECOND)


def test_without_a_timeout_nothing_is_asked_for() -> None:
    record = redelivery_timing(acknowledgement_timeout=0.0)
    record.delivered([FIRST], 1, 0, 0, 0)
    assert not record.any_due(9 * SECOND)


def test_what_was_asked_for_need_not_be_asked_for_because_of_something_else() -> None:
    record = redelivery_timing()
    record.delivered([FIRST], 2, 0, 0, 0)
    record.asked_for(FIRST)
    assert record.forgotten(99 * SECOND) == []
    record.refused([FIRST], 0, 0, SECOND)
    assert record.forgotten(99 * SECOND) == [FIRST]
    record.asked_for(FIRST)
    record.delivered([FIRST], 2, 0, 1, 0)
    assert record.forgotten(99 * SECOND) == [FIRST]
