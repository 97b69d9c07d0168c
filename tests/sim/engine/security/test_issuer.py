"""The issuer alone: which credentials a broker accepts, and for how long."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio import BrokerConfig
from pulsar_sansio.broker.security.provider import Challenge, Identity
from pulsar_sansio.model.errors import AuthenticationError
from pulsar_sim.engine.profile import CredentialsPlan
from pulsar_sim.engine.security.issuer import EXPIRED_FOR, MARK, Issuer

NODE: Any = SimpleNamespace(
    broker=SimpleNamespace(services=SimpleNamespace(wall_time_of=lambda moment: moment))
)


def issuer_of(**plan: Any) -> Issuer:
    world: Any = SimpleNamespace(clock=SimpleNamespace(now=EXPIRED_FOR))
    return Issuer(world, CredentialsPlan(**plan))


def test_no_two_credentials_are_equal_and_all_have_the_mark() -> None:
    issuer = issuer_of()
    issued = [issuer.issue(None), issuer.issue(None), issuer.forge(), issuer.issue(b"challenge 1")]
    assert len({each.reveal() for each in issued}) == len(issued)
    assert all(each.reveal().startswith(MARK.encode()) for each in issued)


def test_credentials_live_as_long_as_the_plan_says() -> None:
    issuer = issuer_of(lifetime=70)
    assert issuer.judge(NODE, issuer.issue(None).reveal(), None) == Identity("client", EXPIRED_FOR + 70)
    assert issuer.judge(NODE, issuer.issue(None, expired=True).reveal(), None) == Identity("client", 0)
    forever = issuer_of()
    assert forever.judge(NODE, forever.issue(None).reveal(), None) == Identity("client", None)


def test_forged_credentials_prove_nothing() -> None:
    issuer = issuer_of()
    with pytest.raises(AuthenticationError, match="not issued"):
        issuer.judge(NODE, issuer.forge().reveal(), None)


def test_the_answer_to_one_challenge_is_none_to_another() -> None:
    issuer = issuer_of()
    answer = issuer.issue(b"challenge 1").reveal()
    with pytest.raises(AuthenticationError, match="not issued"):
        issuer.judge(NODE, answer, b"challenge 2")
    assert issuer.judge(NODE, answer, b"challenge 1").role == "client"


def test_a_method_of_several_steps_asks_so_often() -> None:
    issuer = issuer_of(challenges=2)
    settings = issuer.configured(BrokerConfig(), NODE).authentication
    assert settings is not None
    (provider,) = settings.providers
    outcome = provider.authenticate(issuer.issue(None).reveal(), None)
    asked = []
    while isinstance(outcome, Challenge):
        asked.append(outcome.data)
        outcome = outcome.then(issuer.issue(outcome.data).reveal())
    assert asked == [b"challenge 2", b"challenge 1"]
    assert outcome.role == "client"
