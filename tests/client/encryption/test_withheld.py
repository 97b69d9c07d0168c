"""Messages that a consumer withholds because it cannot decrypt them: their redelivery, and their counts."""

from collections.abc import Callable

import pytest

from pulsar_sansio.model.config import DeadLetterPolicy, SubscriptionType
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction
from tests.client.broker_script import SECOND, ConsumerScript

from .decrypting import Sealer, asked, decrypting, payloads, provide, refuse

CONSUME = ConsumerCryptoFailureAction.CONSUME
REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


def changed(stored: bytes) -> bytes:
    """Return an entry without its checksum, of which the last byte is another one."""
    return stored[6:-1] + bytes([stored[-1] ^ 1])


def asked_for(s: ConsumerScript) -> list[int]:
    """The entries that are requested again."""
    return [each.entryId for command in s.expect(REDELIVER) for each in command.message_ids]


def test_a_batch_is_asked_for_again_that_was_refused_before_it_could_not_be_decrypted() -> None:
    """Rule CRYPTO-05: the negative acknowledgement was of an earlier delivery, and counts no more."""
    s = decrypting(
        subscription_type=SubscriptionType.SHARED,
        acknowledgement_timeout=2.0,
        acknowledgement_group_time=0.0,
        negative_acknowledgement_delay=1.0,
    )
    batch = Sealer().batch(b"one", b"two")
    s.deliver(0, batch)
    [wanted] = asked(s)
    provide(s, wanted)
    one, two = s.take()
    s.acknowledge(one)
    s.negative_acknowledge(two)
    s.frames()
    s.pass_time(2 * SECOND)
    assert asked_for(s) == [0]
    s.deliver(0, changed(batch), redelivery_count=1)
    assert payloads(s) == []
    s.pass_time(4 * SECOND)
    assert asked_for(s) == [0]
    s.deliver(0, batch, redelivery_count=2)
    assert payloads(s) == [b"two"]


def refused(s: ConsumerScript, sealer: Sealer) -> None:
    s.deliver(0, sealer.batch(b"one", b"two"))
    for wanted in asked(s):
        refuse(s, wanted)


def dropped_with_its_connection(s: ConsumerScript, sealer: Sealer) -> None:
    s.deliver(0, sealer.batch(b"one", b"two"))
    s.reconnect()


def dropped_for_a_redelivery(s: ConsumerScript, sealer: Sealer) -> None:
    s.deliver(0, sealer.batch(b"one", b"two"))
    s.redeliver()


@pytest.mark.parametrize("withhold", [refused, dropped_with_its_connection, dropped_for_a_redelivery])
def test_a_message_that_was_withheld_is_no_dead_letter(
    withhold: Callable[[ConsumerScript, Sealer], None],
) -> None:
    """Rule DLQ-03: only a delivery to the application counts."""
    s = decrypting(
        subscription_type=SubscriptionType.SHARED,
        dead_letter=DeadLetterPolicy(1, "t-dead"),
        negative_acknowledgement_delay=0.0,
    )
    sealer = Sealer()
    withhold(s, sealer)
    s.pass_time(11 * SECOND)
    s.deliver(0, sealer.batch(b"one", b"two"), redelivery_count=2)
    for wanted in asked(s):
        provide(s, wanted)
    assert payloads(s) == [b"one", b"two"]
    assert s.client.arrival_counters(s.consumer).dead_letters == 0


def test_a_batch_that_is_one_message_counts_by_its_messages() -> None:
    """One message of the first delivery never reached the application, nor did the entry as a whole."""
    s = decrypting(
        subscription_type=SubscriptionType.SHARED,
        dead_letter=DeadLetterPolicy(1, "t-dead"),
        crypto_failure_action=CONSUME,
    )
    batch = Sealer().batch(b"one", b"two")
    s.deliver(0, batch)
    [wanted] = asked(s)
    provide(s, wanted)
    assert [message.data for message in s.take(1)] == [b"one"]
    s.reconnect()
    s.deliver(0, changed(batch), redelivery_count=2)
    assert [message.encryption_context.decryption_failed for message in s.take()] == [True]
