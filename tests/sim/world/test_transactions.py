"""Worlds with transactions: each end of a transaction happens, whatever disturbs it."""

from copy import deepcopy
from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.transactional_acks import TransactionalAcks
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.model.config import BatchingPolicy, SubscriptionType
from pulsar_sim import Outcome, World
from pulsar_sim.bug_bank import BANK
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.profile import Profile
from pulsar_sim.engine.transactions_plan import TransactionsPlan
from pulsar_sim.faults.catalogue import COORDINATOR_FAULTS, TRANSACTION_FAULTS
from pulsar_sim.model.transactions.transaction_record import TransactionOutcome
from pulsar_sim.runs.scenarios import quiet_profile


def profile_of(*faults: str, **plan: Any) -> Profile:
    """A world with little else than an application with transactions."""
    profile = quiet_profile(messages=1)
    profile.run_time, profile.lingers = 20 * SECOND, False
    profile.transactions = TransactionsPlan(**{"transactions": 20, **plan})
    if faults:
        profile.faults, profile.fault_gap = list(faults), 150 * MILLISECOND
    return profile


def passed(profile: Profile, seed: int = 1) -> World:
    world = World(seed, profile)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    return world


def outcomes(world: World) -> list[TransactionOutcome]:
    assert world.transactions is not None
    return [each.outcome for each in world.transactions.transactions.values()]


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("batching", [None, BatchingPolicy(max_messages=4, max_delay=0.005, by_key=True)])
def test_all_types_of_subscriptions(kind: SubscriptionType, batching: BatchingPolicy | None) -> None:
    """INV-T4, INV-T5, INV-T6: in a world without faults, a transaction ends as the application says."""
    world = passed(profile_of(kinds=[kind, kind], batching=batching, abort_permille=400, at_once=2))
    assert world.transactions is not None
    assert {TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED} == set(outcomes(world))
    assert any(each.committed for each in world.transactions.subscriptions.values())


@pytest.mark.parametrize("fault", TRANSACTION_FAULTS)
def test_each_fault_strikes(fault: str) -> None:
    """INV-T7, INV-T8"""
    world = passed(profile_of(fault, kinds=[SubscriptionType.SHARED, SubscriptionType.FAILOVER]))
    assert world.faults[fault]
    assert TransactionOutcome.COMMITTED in outcomes(world)


def test_an_outcome_is_unknown_where_answers_are_lost() -> None:
    """INV-T3"""
    found = [outcome for seed in range(6) for outcome in _outcomes_without_answers(seed)]
    assert TransactionOutcome.UNKNOWN in found


def _outcomes_without_answers(seed: int) -> list[TransactionOutcome]:
    """Return the outcomes; the check at rest finds the truth of transactions with messages."""
    profile = profile_of(*COORDINATOR_FAULTS, "transacting_client_lost")
    profile.faults, profile.fault_gap = sorted(profile.faults), 20 * MILLISECOND
    return outcomes(passed(profile, seed))


@pytest.mark.parametrize("kind", SubscriptionType)
def test_partitioned_topics(kind: SubscriptionType) -> None:
    """INV-ROUTE, INV-T4, INV-T5: a transaction takes effect in all partitions, or in none."""
    options = {"abort_permille": 300, "cumulative_permille": 500, "at_once": 2}
    world = passed(profile_of("transacting_links_reset", kinds=[kind], topics=1, partitions=3, **options))
    assert world.transactions is not None
    assert all(each.committed for each in world.transactions.subscriptions.values())
    assert {TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED} <= set(outcomes(world))


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("fault", ["transacting_links_reset", "transacting_producer_closed", "broker_killed"])
def test_messages_in_chunks(kind: SubscriptionType, fault: str) -> None:
    """INV-C2, INV-T5: each chunk is in the transaction of its message."""
    options = {"abort_permille": 300, "cumulative_permille": 500, "exactly_once_permille": 300}
    world = passed(profile_of(fault, kinds=[kind], topics=1, chunk_size=20, queue=1, **options))
    assert world.transactions is not None
    received = [
        each for account in world.transactions.subscriptions.values() for each in account.received.values()
    ]
    assert max(each.chunks for each in received) > 2
    assert {TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED} <= set(outcomes(world))


@pytest.mark.parametrize("fault", [*TRANSACTION_FAULTS, "broker_killed"])
def test_exactly_once(fault: str) -> None:
    """INV-T5, INV-T7: each end is over when it is reported, and each message is stored once."""
    options = {"exactly_once_permille": 700, "flush_permille": 500, "at_once": 2, "abort_permille": 200}
    world = passed(profile_of(fault, kinds=[SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE], **options))
    assert world.faults[fault]
    assert world.transactions is not None
    found = [each for each in world.transactions.transactions.values() if each.exactly_once]
    assert any(each.outcome is TransactionOutcome.COMMITTED for each in found)


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("fault", ["transacting_links_reset", "transacting_client_lost", "broker_killed"])
@pytest.mark.parametrize("batching", [None, BatchingPolicy(max_messages=4, max_delay=0.005, by_key=True)])
def test_dead_letters(kind: SubscriptionType, fault: str, batching: BatchingPolicy | None) -> None:
    """INV-C10, INV-T2: messages of aborted transactions become dead letters, which are sent outside."""
    options = {"abort_permille": 500, "letter_permille": 100, "refuse_permille": 100, "at_once": 2}
    world = passed(profile_of(fault, kinds=[kind], topics=1, dead_letters=1, batching=batching, **options))
    assert world.transactions is not None
    (account,) = world.transactions.subscriptions.values()
    assert account.letters is not None
    assert account.letters.stored
    assert {TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED} <= set(outcomes(world))


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        ("a-dead-letter-one-delivery-too-early", "INV-C10"),
        ("dead-letters-lose-their-properties", "INV-C10"),
        ("acknowledged-before-the-copy-is-safe", "INV-T2"),
    ],
)
def test_a_planted_bug_of_dead_letters_is_found(bug: str, rule: str) -> None:
    profile = profile_of(topics=1, dead_letters=1, refuse_permille=500, abort_permille=500)
    profile.latency = 200 * MILLISECOND
    assert World(1, deepcopy(profile)).run().outcome is Outcome.PASSED
    with BANK[bug].planted():
        assert World(1, profile).run().rule == rule


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize("fault", ["transacting_links_reset", "coordinator_answer_lost", "broker_killed"])
@pytest.mark.parametrize("batching", [None, BatchingPolicy(max_messages=4, max_delay=0.005, by_key=True)])
def test_loops(kind: SubscriptionType, fault: str, batching: BatchingPolicy | None) -> None:
    """TXN-02: each message is handled in one committed transaction, whatever disturbs the loops."""
    options = {"abort_permille": 200, "consumers": 2, "batching": batching}
    world = passed(profile_of(fault, kinds=[kind, kind], looped=True, **options))
    assert world.transactions is not None
    handled = [
        each
        for transaction in world.transactions.transactions.values()
        if transaction.outcome is TransactionOutcome.COMMITTED
        for each in transaction.handled
    ]
    assert len(set(handled)) == len(handled) > 10


def dividing(original: Any) -> Any:
    """A queue that gives parts of batches."""

    def take(self: ReceiverQueue, limit: int, whole_batches: bool = False) -> Any:
        return original(self, limit)

    return take


@pytest.mark.parametrize("planted", ["a batch is divided", "acknowledgements are forgotten"])
def test_a_planted_bug_of_loops_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TXN-02, INV-T1"""
    if planted == "a batch is divided":
        monkeypatch.setattr(ReceiverQueue, "take", dividing(ReceiverQueue.take))
    else:
        monkeypatch.setattr(TransactionalAcks, "acknowledge", lambda *_: None)
    batching = BatchingPolicy(max_messages=10, max_delay=0.1)
    report = World(1, profile_of(looped=True, topics=1, batching=batching)).run()
    assert report.rule == {"a batch is divided": "TXN-02"}.get(planted, "INV-T1"), str(report)


def test_a_transaction_that_lingers_is_aborted() -> None:
    world = passed(profile_of(linger_permille=1000, timeout=0.5, transactions=4))
    assert TransactionOutcome.ABORTED in outcomes(world)


def test_a_broker_that_dies_finds_transactions_again() -> None:
    profile = profile_of("broker_killed_while_writing", "broker_killed", at_once=3, timeout=2.0)
    profile.fault_gap = 300 * MILLISECOND
    world = passed(profile)
    assert world.faults["broker_killed"]
    assert TransactionOutcome.COMMITTED in outcomes(world)


def test_two_runs_have_one_trace() -> None:
    traces = {World(3, profile_of(*TRANSACTION_FAULTS)).run().trace_hash for _ in range(2)}
    assert len(traces) == 1
