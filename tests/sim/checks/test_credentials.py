"""The watch of credentials: each mistake of a client breaks a rule."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.wire import proto
from pulsar_sim.checks.credentials import MOST_CHALLENGES, CredentialWatch
from pulsar_sim.engine.clock import SECOND
from pulsar_sim.engine.failures import ViolationError

HOSTS = ("broker-0", "broker-1")


class Link:
    """One link of a client to broker-0, with the watch of its credentials."""

    def __init__(self) -> None:
        self.watch = CredentialWatch(HOSTS)
        self.wire: Any = SimpleNamespace(
            number=1,
            client=SimpleNamespace(name="client"),
            client_link=7,
            client_open=True,
            broker=SimpleNamespace(name="broker-0"),
        )

    def ask(self, host: str = "broker-0") -> None:
        self.watch.asked("client", 7, host, self.wire)

    def answer(self, credentials: bytes) -> None:
        self.watch.answered("client", 7, credentials)

    def connect(self, credentials: bytes, *, renews: bool = True) -> None:
        flags = proto.FeatureFlags(supports_auth_refresh=renews)
        command = proto.CommandConnect(client_version="test", auth_data=credentials, feature_flags=flags)
        self.watch.wrote_connect(self.wire, command)

    def respond(self, credentials: bytes) -> None:
        response = proto.CommandAuthResponse(response=proto.AuthData(auth_data=credentials))
        self.watch.wrote_response(self.wire, response)

    def open(self) -> None:
        self.ask()
        self.answer(b"first")
        self.connect(b"first")

    def challenge(self, now: int = 0) -> None:
        self.watch.challenged(self.wire, now)


def broken(rule: str, text: str) -> Any:
    return pytest.raises(ViolationError, match=f"{rule}: .*{text}")


def test_a_handshake_and_a_renewal_break_nothing() -> None:
    link = Link()
    link.open()
    link.challenge()
    link.ask()
    link.watch.settled(link.wire)
    link.answer(b"second")
    link.respond(b"second")
    link.watch.check_sent(link.wire)


def test_a_renewal_that_is_asked_for_during_another_waits() -> None:
    link = Link()
    link.open()
    link.challenge()
    link.ask()
    link.challenge()
    link.watch.settled(link.wire)
    link.answer(b"second")
    link.respond(b"second")
    link.ask()
    link.watch.settled(link.wire)


def test_a_challenge_has_to_lead_to_a_question() -> None:
    link = Link()
    link.open()
    link.challenge()
    with broken("INV-N10", "leads to no question"):
        link.watch.settled(link.wire)


def test_a_client_may_end_a_link_whose_provider_failed() -> None:
    link = Link()
    link.open()
    assert not link.watch.excuses_end(link.wire, 0)
    link.watch.failed("client", 7)
    assert link.watch.excuses_end(link.wire, 0)


def test_a_client_may_end_a_link_with_too_many_challenges() -> None:
    link = Link()
    link.open()
    for now in range(MOST_CHALLENGES):
        link.challenge(now)
    assert not link.watch.excuses_end(link.wire, MOST_CHALLENGES)
    link.challenge(MOST_CHALLENGES)
    assert link.watch.excuses_end(link.wire, MOST_CHALLENGES)
    assert not link.watch.excuses_end(link.wire, SECOND)


def test_an_answer_is_sent_at_once_unless_the_link_has_ended() -> None:
    link = Link()
    link.ask()
    link.answer(b"first")
    with broken("INV-N10", "are not sent"):
        link.watch.check_sent(link.wire)
    link.wire.client_open = False
    link.watch.check_sent(link.wire)


def test_an_answer_is_sent_once_and_unchanged() -> None:
    link = Link()
    link.open()
    with broken("INV-N10", "of no answer"):
        link.respond(b"first")
    link.ask()
    link.answer(b"second")
    with broken("INV-N10", "other credentials than given"):
        link.respond(b"first")


def test_the_text_of_a_violation_shows_no_credentials() -> None:
    link = Link()
    link.ask()
    link.answer(b"right")
    with pytest.raises(ViolationError) as raised:
        link.connect(b"wrong")
    assert "right" not in str(raised.value)
    assert "wrong" not in str(raised.value)


def test_connect_offers_to_renew() -> None:
    link = Link()
    link.ask()
    link.answer(b"first")
    with broken("INV-N10", "offers no renewal"):
        link.connect(b"first", renews=False)


def test_a_question_is_asked_once() -> None:
    link = Link()
    link.ask()
    with broken("INV-N10", "asks twice"):
        link.ask()


def test_credentials_are_for_the_broker_at_the_end_of_the_wire() -> None:
    with broken("INV-X2", "without a wire there"):
        Link().ask("broker-1")
    with broken("INV-X2", "without a wire there"):
        CredentialWatch(HOSTS).asked("client", 7, "broker-0", None)


def test_clients_connect_to_allowed_hosts_and_verify_their_names() -> None:
    watch = CredentialWatch(HOSTS)
    watch.connects("client", "broker-1", "broker-1", tls=True)
    watch.connects("client", "broker-1", None, tls=False)
    with broken("INV-X2", "connects to stranger"):
        watch.connects("client", "stranger", "stranger", tls=True)
    with broken("INV-X2", "verifies the name broker-0"):
        watch.connects("client", "broker-1", "broker-0", tls=True)
    with broken("INV-X2", "verifies the name None"):
        watch.connects("client", "broker-1", None, tls=True)


def test_without_credentials_every_host_is_allowed() -> None:
    watch = CredentialWatch(None)
    watch.connects("client", "stranger", None, tls=False)
    watch.wrote_connect(Link().wire, proto.CommandConnect(client_version="test"))


def test_a_link_that_opens_leads_to_a_question_at_once() -> None:
    link = Link()
    with broken("INV-N15", "leads to no question"):
        link.watch.check_asked(link.wire)
    link.ask()
    link.watch.check_asked(link.wire)
    CredentialWatch(None).check_asked(Link().wire)


def test_a_provider_that_fails_ends_the_link_of_its_question_alone() -> None:
    failed, other = Link(), Link()
    failed.wire.client_open = False
    other.wire.client_link = 8
    CredentialWatch.check_alone(7, [failed.wire, other.wire])
    other.wire.client_open = False
    with broken("INV-N15", "the provider failed for link 7"):
        CredentialWatch.check_alone(7, [failed.wire, other.wire])
