"""`RoamingAccount`: what two clusters may hold of the messages of one producer."""

from collections.abc import Callable

import pytest

from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.profile import FAR_LEDGERS
from pulsar_sim.model.roaming_account import DUPLICATE, Position, RoamingAccount

FAR = FAR_LEDGERS


def sent(count: int) -> tuple[RoamingAccount, list[bytes]]:
    account = RoamingAccount("t")
    return account, [account.sends(1) for _ in range(count)]


def log(*entries: tuple[Position, bytes]) -> list[tuple[Position, bytes]]:
    """Return a log as the store has it: metadata stands before each payload."""
    return [(position, b"metadata" + payload) for position, payload in entries]


def test_a_message_that_was_pending_at_a_change_may_be_in_both_clusters() -> None:
    """INV-F4: the message that was sent again counts for the cluster that confirmed it."""
    account, (first, second, third) = sent(3)
    account.confirms((1, 0), first)
    account.confirms((FAR, 0), second)
    account.confirms((1, 2), third)
    account.receives((1, 1), second)
    account.check_log(False, log(((1, 0), first), ((1, 1), second), ((1, 2), third)))
    account.check_log(True, log(((FAR, 0), second)))


def test_the_first_copies_are_in_order_and_others_may_follow() -> None:
    account, (first, second) = sent(2)
    account.check_log(False, log(((1, 0), first), ((1, 1), second), ((1, 2), first), ((1, 3), second)))


def test_producers_of_two_processes_have_an_order_each() -> None:
    account, (first,) = sent(1)
    second = account.sends(2)
    account.check_log(False, log(((1, 0), second), ((1, 1), first)))


def lost(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.confirms((1, 0), first)
    account.check_log(False, [])


def lost_in_the_cluster_that_confirmed_it(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.confirms((FAR, 0), first)
    account.check_log(False, log(((1, 0), first)))
    account.check_log(True, [])


def changed(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.confirms((1, 0), first)
    account.check_log(False, log(((1, 0), second)))


def never_sent(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.check_log(False, log(((1, 0), b"<1:77>")))


def out_of_order(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.check_log(False, log(((1, 0), second), ((1, 1), first)))


def received_and_not_stored(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.receives((1, 0), first)
    account.check_log(False, [])


def received_with_other_bytes(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.receives((1, 0), first)
    account.receives((1, 0), second)


def one_position_for_two(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.confirms((1, 0), first)
    account.confirms((1, 0), second)


def a_duplicate_of_nothing(account: RoamingAccount, first: bytes, second: bytes) -> None:
    account.confirms(DUPLICATE, first)
    account.check_duplicates([log(((1, 0), second)), []])


@pytest.mark.parametrize(
    "broken",
    [
        lost,
        lost_in_the_cluster_that_confirmed_it,
        changed,
        never_sent,
        out_of_order,
        received_and_not_stored,
        received_with_other_bytes,
        one_position_for_two,
        a_duplicate_of_nothing,
    ],
)
def test_a_broken_account_is_noticed(broken: Callable[[RoamingAccount, bytes, bytes], None]) -> None:
    account, (first, second) = sent(2)
    with pytest.raises(ViolationError, match="INV-F4"):
        broken(account, first, second)


def test_a_duplicate_is_in_some_cluster() -> None:
    account, (first,) = sent(1)
    account.confirms(DUPLICATE, first)
    account.check_duplicates([[], log(((FAR, 0), first))])
    assert account.confirmed == {}
