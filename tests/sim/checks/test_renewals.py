"""The watch of renewals: a broker cuts only a client that has owed new credentials for long."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.wire import proto
from pulsar_sim.checks.renewals import REFRESH, RenewalWatch
from pulsar_sim.engine.clock import SECOND
from pulsar_sim.engine.failures import ViolationError

T = proto.BaseCommand

EXPIRED = "the credentials expired, and the client cannot renew them"
UNANSWERED = "no answer to AUTH_CHALLENGE in time"


class Cable:
    """One wire, and the watch of its renewals, with five seconds for each."""

    def __init__(self) -> None:
        self.watch = RenewalWatch(5 * SECOND)
        self._clock = SimpleNamespace(now=0)
        self._wire: Any = SimpleNamespace(number=1, network=SimpleNamespace(clock=self._clock))

    def ask(self, data: bytes = REFRESH) -> None:
        challenge = proto.CommandAuthChallenge(challenge=proto.AuthData(auth_data=data))
        self.watch.wrote(self._wire, T.AUTH_CHALLENGE, challenge)

    def answer(self) -> None:
        self.watch.got(self._wire, T.AUTH_RESPONSE)

    def wait(self, seconds: int) -> None:
        self._clock.now += seconds * SECOND

    def end(self, reason: str) -> None:
        self.watch.closes(self._wire, reason)


def test_a_client_without_an_answer_is_cut_after_the_interval() -> None:
    cable = Cable()
    cable.ask()
    cable.wait(5)
    cable.end(UNANSWERED)


def test_the_interval_is_that_of_all_steps_together() -> None:
    cable = Cable()
    cable.ask()
    cable.wait(4)
    cable.answer()
    cable.ask(b"second step")
    cable.wait(1)
    cable.end(UNANSWERED)


@pytest.mark.parametrize("reason", [UNANSWERED, EXPIRED])
def test_a_renewed_connection_is_not_cut(reason: str) -> None:
    cable = Cable()
    cable.ask()
    cable.answer()
    cable.wait(5)
    with pytest.raises(ViolationError, match="owes no credentials"):
        cable.end(reason)


def test_a_client_has_the_whole_interval() -> None:
    cable = Cable()
    cable.ask()
    cable.wait(4)
    with pytest.raises(ViolationError, match="ended after 4000000000 ns"):
        cable.end(UNANSWERED)


def test_a_connection_may_end_for_other_reasons() -> None:
    cable = Cable()
    cable.ask()
    cable.end("no PONG in time")
