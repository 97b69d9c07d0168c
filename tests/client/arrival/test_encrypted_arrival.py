"""`EncryptedArrival`: entries wait for a private key in their order, and in front of one consumer only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.arrival import encrypted_arrival
from pulsar_sansio.client.delivery.permits import MAX_ENTRIES_BEYOND_GRANT
from pulsar_sansio.client.outputs import Deliverable, Disconnect, EncryptionKeyWanted
from pulsar_sansio.encryption import TAG_SIZE
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction
from pulsar_sansio.model.message_id import LATEST
from pulsar_sansio.wire import MessageCommand, pack_payload, proto, unpack_payload
from tests.client.broker_script import ConsumerScript, batch_bytes, entry_bytes
from tests.client.encryption.decrypting import Sealer, asked, decrypting, payloads, provide, refuse
from tests.client.positions.seeking_script import seek, sought, success


def test_later_entries_wait_behind_the_one_whose_key_is_wanted() -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, entry_bytes(b"0"))
    s.deliver(1, sealer.entry(b"1"))
    s.deliver(2, entry_bytes(b"2"))
    s.deliver(3, sealer.batch(b"3", b"4"))
    assert payloads(s) == [b"0"]
    [wanted] = asked(s)
    assert "messages wait for encryption key 'a' of the key reader" in s.client.explain(s.now, s.consumer)
    provide(s, wanted)
    assert [type(output) for output in s.outputs()] == [Deliverable]
    assert payloads(s) == [b"1", b"2", b"3", b"4"]


def test_a_run_of_uniform_messages_waits_too() -> None:
    s = decrypting()
    s.deliver(0, Sealer().entry(b"0"))
    stored = [entry_bytes(b"%d" % entry) for entry in range(40)]
    frames = [MessageCommand(0, 1, entry, payload=stored[entry]).encode() for entry in range(1, 40)]
    s.bytes(b"".join(frames))
    s.pump()
    assert payloads(s) == []
    provide(s, *asked(s))
    assert payloads(s) == [b"%d" % entry for entry in range(40)]


def run_of(stored: list[bytes], first: int = 0) -> bytes:
    return b"".join(
        MessageCommand(0, 1, entry, payload=each).encode() for entry, each in enumerate(stored, first)
    )


def uniform(sealer: Sealer, count: int, first: int = 0, **fields: Any) -> list[bytes]:
    return [sealer.entry(b"%05d" % number, **fields) for number in range(first, first + count)]


def test_a_run_of_encrypted_messages_is_decrypted_at_once() -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, uniform(sealer, 1)[0])
    provide(s, *asked(s))
    before = s.machine._arrival.bytes_arrived
    stored = uniform(sealer, 40, 1, schema_version=b"\x01")
    s.bytes(run_of(stored, 1))
    s.pump()
    messages = s.take()
    assert [message.data for message in messages] == [b"%05d" % entry for entry in range(41)]
    assert {message.schema_version for message in messages[1:]} == {b"\x01"}
    context = messages[9].encryption_context
    assert (context.keys[0].key, context.decryption_failed) == ("a", False)
    assert s.machine._arrival.bytes_arrived - before == 40 * (5 + TAG_SIZE)
    assert s.machine.permits.at_broker + s.machine.permits.unreported == s.spec.receiver_queue_size


def test_of_a_run_of_encrypted_messages_a_changed_one_alone_is_not_delivered() -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, uniform(sealer, 1)[0])
    provide(s, *asked(s))
    stored = uniform(sealer, 9, 1)
    stored[4] = _with_changed_nonce(stored[4])
    s.bytes(run_of(stored, 1))
    s.pump()
    assert payloads(s) == [b"%05d" % entry for entry in range(10) if entry != 5]
    assert s.client.arrival_counters(s.consumer).undecryptable == 1


def test_a_run_of_encrypted_messages_of_an_unknown_key_waits_for_it() -> None:
    s = decrypting()
    sealer, other = Sealer(), Sealer("b")
    s.deliver(0, uniform(sealer, 1)[0])
    provide(s, *asked(s))
    s.bytes(run_of(uniform(other, 5, 1), 1))
    s.pump()
    assert payloads(s) == [b"00000"]
    [wanted] = asked(s)
    s.bytes(run_of(uniform(sealer, 5, 6), 6))
    s.pump()
    assert payloads(s) == []
    provide(s, wanted)
    assert payloads(s) == [b"%05d" % entry for entry in range(1, 11)]


@pytest.mark.parametrize("action", ConsumerCryptoFailureAction)
def test_a_consumer_without_a_key_reader_takes_a_run_of_encrypted_messages_one_by_one(
    action: ConsumerCryptoFailureAction,
) -> None:
    s = decrypting(crypto_key_reader=None, crypto_failure_action=action)
    s.bytes(run_of(uniform(Sealer(), 5)))
    s.pump()
    messages = s.take()
    delivered = 5 if action is ConsumerCryptoFailureAction.CONSUME else 0
    assert [message.encryption_context.decryption_failed for message in messages] == [True] * delivered
    assert s.client.arrival_counters(s.consumer).undecryptable == 5 - delivered


def test_a_run_whose_entry_names_too_many_keys_is_not_decrypted() -> None:
    s = decrypting()
    sealer = Sealer()
    stored = uniform(sealer, 1)
    s.deliver(0, stored[0])
    provide(s, *asked(s))
    keys = unpack_payload(stored[0]).metadata.encryption_keys
    s.bytes(run_of(uniform(sealer, 3, 1, encryption_keys=[*keys] * 65), 1))
    s.pump()
    assert payloads(s) == [b"00000"]
    assert s.client.arrival_counters(s.consumer).undecryptable == 3


def _with_changed_nonce(stored: bytes) -> bytes:
    unpacked = unpack_payload(stored)
    nonce = unpacked.metadata.encryption_param
    assert nonce is not None
    unpacked.metadata.encryption_param = bytes([nonce[0] ^ 1]) + nonce[1:]
    return b"".join(pack_payload(unpacked.metadata.encode(), unpacked.payload))


def test_an_entry_that_waits_for_another_key_stops_the_release() -> None:
    s = decrypting()
    s.deliver(0, Sealer("b").entry(b"0"))
    s.deliver(1, Sealer("c").entry(b"1"))
    [first] = asked(s)
    provide(s, first)
    assert payloads(s) == [b"0"]
    [second] = asked(s)
    assert (first.key, second.key) == ("b", "c")
    refuse(s, second)
    assert payloads(s) == []
    assert s.client.arrival_counters(s.consumer).undecryptable == 1


def test_a_slow_key_reader_holds_up_no_other_consumer() -> None:
    s = decrypting()
    other = s.client.subscribe(s.now, s.spec)
    s.accept()
    s.deliver(0, Sealer().entry(b"0"))
    s.bytes(MessageCommand(1, 1, 0, payload=entry_bytes(b"0")).encode())
    s.pump()
    assert [message.data for message in s.client.take(s.now, other, 10)] == [b"0"]
    assert payloads(s) == []


def test_what_waits_is_dropped_with_its_connection_and_redelivered() -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, sealer.entry(b"0"))
    [wanted] = asked(s)
    s.reconnect()
    provide(s, wanted)
    assert payloads(s) == []
    s.deliver(0, sealer.entry(b"0"), redelivery_count=1)
    assert payloads(s) == [b"0"]
    assert asked(s) == []


def test_a_question_of_the_last_connection_is_not_asked_twice() -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, sealer.entry(b"0"))
    [wanted] = asked(s)
    s.reconnect()
    s.deliver(0, sealer.entry(b"0"), redelivery_count=1)
    assert asked(s) == []
    provide(s, wanted)
    assert payloads(s) == [b"0"]


def test_a_closed_consumer_wants_no_key_any_more() -> None:
    s = decrypting()
    s.deliver(0, Sealer().entry(b"0"))
    [wanted] = asked(s)
    s.close()
    [command] = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    s.lose()
    assert s.client.next_deadline() is None
    s.outputs()
    provide(s, wanted)
    assert s.outputs() == []


def test_what_was_sent_before_a_redelivery_of_everything_is_outdated() -> None:
    s = decrypting()
    s.deliver(0, Sealer().entry(b"0"), consumer_epoch=0)
    [wanted] = asked(s)
    s.redeliver()
    provide(s, wanted)
    assert payloads(s) == []
    assert s.client.arrival_counters(s.consumer).outdated == 1


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
def test_what_waits_is_dropped_when_everything_is_requested_without_an_epoch(kind: SubscriptionType) -> None:
    """The broker may redeliver the entries to another consumer."""
    s = decrypting(subscription_type=kind, receiver_queue_size=8)
    sealer = Sealer()
    s.deliver(0, sealer.batch(b"0", b"1"))
    s.deliver(1, entry_bytes(b"2"))
    [wanted] = asked(s)
    s.redeliver()
    assert s.machine.permits.at_broker + s.machine.permits.unreported == 8
    assert s.client.arrival_counters(s.consumer).outdated == 3
    provide(s, wanted)
    assert payloads(s) == []
    s.deliver(1, entry_bytes(b"2"), redelivery_count=1)
    assert payloads(s) == [b"2"]


def test_what_waits_during_a_seek_is_not_delivered_after_it() -> None:
    """Some brokers close no consumer, and others close it after the answer."""
    s = decrypting(receiver_queue_size=8)
    s.deliver(0, Sealer().entry(b"before"))
    [wanted] = asked(s)
    s.frames()
    seek(s, LATEST)
    success(s, sought(s).request_id)
    provide(s, wanted)
    assert payloads(s) == []
    assert s.machine.permits.at_broker + s.machine.permits.unreported == 8


def test_a_consumer_without_a_queue_waits_for_the_key_of_its_one_message() -> None:
    s = decrypting(receiver_queue_size=0)
    assert s.receive() is None
    [flow] = s.expect("FLOW")
    assert flow.message_permits == 1
    s.deliver(0, Sealer().entry(b"0"))
    assert s.receive() is None
    provide(s, *asked(s))
    assert s.receive().data == b"0"
    assert s.receive() is None
    s.expect("FLOW")


def test_a_damaged_entry_waits_for_no_key() -> None:
    s = decrypting()
    stored = bytearray(Sealer().entry(b"0"))
    stored[-1] ^= 1
    s.deliver(0, bytes(stored))
    s.deliver(1, b"\x0e\x01")
    assert asked(s) == []
    assert s.client.arrival_counters(s.consumer).discarded == 2


def test_a_broker_that_ignores_permits_loses_the_link_while_entries_wait() -> None:
    s = decrypting(receiver_queue_size=1)
    sealer = Sealer()
    for entry in range(1 + MAX_ENTRIES_BEYOND_GRANT):
        s.deliver(entry, sealer.entry(b"x"))
    assert [type(output) for output in s.outputs()] == [EncryptionKeyWanted]
    s.deliver(9999, sealer.entry(b"x"))
    lost = [output for output in s.outputs() if isinstance(output, Disconnect)]
    assert "the first waits for encryption key 'a'" in lost[0].reason


def test_bytes_count_too_while_entries_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encrypted_arrival, "MAX_BYTES_BEYOND_GRANT", 2000)
    s = decrypting(receiver_queue_size=1)
    for sealer in (Sealer(), Sealer()):
        s.deliver(0, sealer.entry(bytes(5000)))
        s.deliver(1, sealer.entry(bytes(1000)))
        provide(s, *asked(s))
        assert len(s.take()) == 2
    sealer = Sealer()
    for entry in range(3):
        s.deliver(entry, sealer.entry(bytes(1000)))
    assert [output for output in s.outputs() if isinstance(output, Disconnect)]


def test_a_broker_that_ignored_permits_loses_the_link_when_the_key_comes() -> None:
    s = decrypting(receiver_queue_size=1)
    sealer = Sealer()
    for entry in range(1 + MAX_ENTRIES_BEYOND_GRANT):
        s.deliver(entry, sealer.batch(b"x", b"y"))
    [wanted] = asked(s)
    s.machine.permits.at_broker = -1  # as if the broker had no permit at the beginning
    provide(s, wanted)
    lost = [output for output in s.outputs() if isinstance(output, Disconnect)]
    assert "after its permits were used up" in lost[0].reason


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["clear", "batch", "a", "b", "ab", "answer", "refuse", "reconnect", "redeliver", "take"]
        ),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(
    events=EVENTS,
    kind=st.sampled_from([SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED]),
    action=st.sampled_from(ConsumerCryptoFailureAction),
)
def test_order_is_kept_and_no_permit_is_lost(
    events: list[tuple[str, int]], kind: SubscriptionType, action: ConsumerCryptoFailureAction
) -> None:
    s = decrypting(receiver_queue_size=8, subscription_type=kind, crypto_failure_action=action)
    sealers = {name: [Sealer(*name) for _ in range(3)] for name in ("a", "b", "ab")}
    received: list[int] = []
    questions: list[EncryptionKeyWanted] = []
    entry = 0
    for event, which in [*events, *[("answer", 0)] * 50, ("take", 0)]:
        questions += asked(s)
        if event in ("clear", "batch") or event in sealers:
            if s.machine.permits.at_broker <= 0:
                continue
            payload = b"%06d" % entry
            s.deliver(entry, _stored(event, which, payload, sealers), **_epoch(s, kind))
            entry += 1
        elif event in ("answer", "refuse") and questions:
            (provide if event == "answer" else refuse)(s, questions.pop(0))
        elif event == "reconnect":
            s.reconnect()
        elif event == "redeliver":
            s.redeliver()
        elif event == "take":
            received += [message.message_id[1] for message in s.take()]
    assert received == sorted(received)
    assert len(set(received)) == len(received)
    permits = s.machine.permits
    assert permits.at_broker + permits.unreported == 8
    encrypted = s.machine._encrypted
    assert encrypted is not None
    assert len(encrypted) == 0


def _stored(event: str, which: int, payload: bytes, sealers: dict[str, list[Sealer]]) -> bytes:
    if event == "clear":
        return entry_bytes(payload)
    if event == "batch":
        return batch_bytes([payload])
    return sealers[event][which].entry(payload)


def _epoch(s: ConsumerScript, kind: SubscriptionType) -> dict[str, Any]:
    return {} if kind is SubscriptionType.SHARED else {"consumer_epoch": s.machine._redelivery.epoch}


@pytest.mark.parametrize("detaches", [True, False])
def test_a_failure_is_forgotten_in_its_time_though_the_waiting_entry_was_dropped(detaches: bool) -> None:
    s = decrypting()
    sealer = Sealer()
    s.deliver(0, sealer.entry(b"0"))
    [wanted] = asked(s)
    if detaches:
        s.close_by_broker()
        s.pass_time(1_000_000_000)
        s.accept()
    else:
        s.client.redeliver_unacknowledged(s.now, s.consumer)
        s.pump()
    refuse(s, wanted)
    s.pass_time(11_000_000_000)
    s.deliver(0, sealer.entry(b"0"))
    provide(s, *asked(s))
    assert payloads(s) == [b"0"]
