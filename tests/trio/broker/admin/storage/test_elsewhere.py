"""Copies of topics elsewhere: reading says that there are none, and asking for one is refused by name."""

import pytest

from tests.trio.broker.admin.asking import Administrator

PATH = "/persistent/public/default/t"


@pytest.mark.parametrize(
    ("method", "call", "body", "name"),
    [
        ("POST", "subscription/s/replicatedSubscriptionStatus", True, "replicatedSubscriptionStatus"),
        ("PUT", "offload", {"ledgerId": 1, "entryId": 1}, "offload"),
        ("PUT", "shadowTopics", ["persistent://public/default/shadow"], "shadowTopics"),
    ],
)
def test_what_is_refused(method: str, call: str, body: object, name: str) -> None:
    broker = Administrator()
    assert broker.ask("PUT", f"{PATH}/subscription/s") == (204, None)
    status, reason = broker.ask(method, f"{PATH}/{call}", body)
    assert status == 501
    assert name in reason
    absent = PATH.replace("/t", "/none")
    assert broker.ask(method, f"{absent}/{call}", body)[0] == 404
    volatile = f"/non-{PATH[1:]}/{call}"
    assert broker.ask(method, volatile, body)[0] == 405


def test_every_partition_says_that_it_is_not_replicated() -> None:
    broker = Administrator()
    assert broker.ask("PUT", f"{PATH}/partitions", 2) == (204, None)
    assert broker.ask("PUT", f"{PATH}/subscription/s") == (204, None)
    names = [f"persistent://public/default/t-partition-{index}" for index in range(2)]
    answer = broker.ask("GET", f"{PATH}/subscription/s/replicatedSubscriptionStatus")
    assert answer == (200, dict.fromkeys(names, False))
