"""Brokers whose options have other bounds."""

from typing import Any

import pytest

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.policies import MessageRate, Policies
from pulsar_sansio.broker.security import broker_authentication
from pulsar_sim.conversations.broker_options import check_broker_options
from pulsar_sim.engine.failures import ViolationError


def test_all_bounds_hold() -> None:
    """INV-A1"""
    check_broker_options()


_CHECK = BrokerConfig._check


def _one_more(name: str, value: object, minimum: float, maximum: float) -> None:
    _CHECK(name, value, minimum, maximum + 1)


WRONG: dict[str, tuple[Any, str, Any]] = {
    "greater options": (BrokerConfig, "_check", staticmethod(_one_more)),
    "a limit of 0": (MessageRate, "limits", property(lambda self: self.messages >= 0 or self.size >= 0)),
    "a subscription too many": (Policies, "allows_subscription", lambda self, present: True),
    "a blank role": (broker_authentication, "_is_role", lambda role: isinstance(role, str)),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_bounds_are_noticed(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """INV-A1"""
    owner, name, wrong = WRONG[what]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(ViolationError):
        check_broker_options()
