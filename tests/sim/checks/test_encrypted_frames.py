"""The checks of encrypted frames and of questions for keys: each notices what breaks its invariant."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.outputs import EncryptionKeyWanted
from pulsar_sansio.encryption import EntryCipher
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.encryption import EncryptionKeyInfo, ProducerCryptoFailureAction
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import MessageMetadata, proto
from pulsar_sim.checks.encrypted_frames import EncryptionWatch
from pulsar_sim.engine.clock import SECOND
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.security.encryption_plan import EncryptionPlan
from pulsar_sim.engine.security.key_holder import KeyHolder
from pulsar_sim.engine.security.key_pairs import public_pem
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.topic_record import TopicRecord

TOPIC = TopicRecord("persistent://public/default/t", False)
PLAN = EncryptionPlan(recipients=2, renewal=SECOND)
SEND = ProducerCryptoFailureAction.SEND


def holder(*, private: bool = False) -> KeyHolder:
    return KeyHolder("owner", 0, private=private, dependable=False, several=False)


def record(tag: str = "p0.1", **spec: Any) -> ProducerRecord:
    """A producer that encrypts for all recipients of the plan, and has had its keys from the start."""
    reader = holder()
    reader.complete_at = 0
    options: dict[str, Any] = {"encryption_keys": PLAN.names, "crypto_key_reader": reader, **spec}
    return ProducerRecord(tag, TOPIC, ProducerSpec(TOPIC.name, **options))


def cipher(*names: str, seed: int = 1) -> EntryCipher:
    """A new data key, wrapped for these recipients."""
    infos = [(name, EncryptionKeyInfo(Secret(public_pem(name, 0)))) for name in names or PLAN.names]
    return EntryCipher.new(infos, Random(seed).randbytes)


def opened(
    watch: EncryptionWatch, producer: ProducerRecord, sealer: EntryCipher | None, payload: bytes = b"secret"
) -> StoredEntry:
    """Let a producer write one message. Return the entry."""
    metadata = MessageMetadata("p", 0, 0)
    written = payload if sealer is None else sealer.encrypt(metadata, payload)
    plain, sealed = watch.opened(producer, TOPIC.name, metadata, written, written)
    assert plain == payload
    entry = StoredEntry(written, (Sent(producer, 0, plain, None, {}, 0),))
    entry.sealed = sealed
    return entry


def broken(rule: str) -> Any:
    return pytest.raises(ViolationError, match=rule)


def test_a_producer_that_encrypts_for_all_recipients_is_right() -> None:
    watch, producer, sealer = EncryptionWatch(PLAN), record(), cipher()
    entry = opened(watch, producer, sealer)
    assert entry.sealed is not None
    assert [name for name, _ in entry.sealed.keys] == ["key-0", "key-1"]
    opened(watch, producer, sealer, b"another")
    watch.opens(producer, proto.CommandProducer(encrypted=True))


@pytest.mark.parametrize("sealer", [None, cipher("key-0"), cipher("key-1", "key-0")])
def test_a_message_that_not_every_recipient_can_decrypt_is_noticed(sealer: EntryCipher | None) -> None:
    """Rule INV-E1."""
    with broken("INV-E1"):
        opened(EncryptionWatch(PLAN), record(), sealer)


def test_a_payload_of_another_data_key_is_noticed() -> None:
    one, other = cipher(), cipher(seed=2)
    one.keys = other.keys
    with broken("INV-E1"):
        opened(EncryptionWatch(PLAN), record(), one)


@pytest.mark.parametrize(("sent_at", "right"), [(5, True), (6, False)])
def test_a_producer_that_has_its_keys_sends_nothing_in_clear(sent_at: int, right: bool) -> None:
    watch, producer = EncryptionWatch(PLAN), record(crypto_failure_action=SEND)
    reader = producer.spec.crypto_key_reader
    assert isinstance(reader, KeyHolder)
    reader.complete_at = 5
    entry = opened(watch, producer, None)
    entry.messages[0].sent_at = sent_at
    if right:
        watch.check_time(producer, entry, 10)
    else:
        with broken("INV-E1"):
            watch.check_time(producer, entry, 10)


@pytest.mark.parametrize(("complete_at", "encrypted"), [(None, True), (0, False)])
def test_a_producer_that_opens_too_early_or_in_silence_is_noticed(
    complete_at: int | None, encrypted: bool
) -> None:
    producer = record()
    reader = producer.spec.crypto_key_reader
    assert isinstance(reader, KeyHolder)
    reader.complete_at = complete_at
    with broken("INV-E1"):
        EncryptionWatch(PLAN).opens(producer, proto.CommandProducer(encrypted=encrypted))


def test_a_nonce_that_is_used_twice_is_noticed() -> None:
    """Rule INV-X3."""
    watch, producer, sealer = EncryptionWatch(PLAN), record(), cipher()
    sealer._entropy = bytes
    opened(watch, producer, sealer)
    opened(watch, producer, sealer)  # the bytes are those of the first SEND
    with broken("INV-X3"):
        opened(watch, producer, sealer, b"another")


def test_two_producers_with_one_data_key_are_noticed() -> None:
    """Rule INV-E2."""
    watch, sealer = EncryptionWatch(PLAN), cipher()
    opened(watch, record(), sealer)
    with broken("INV-E2"):
        opened(watch, record("p0.2"), sealer)


@pytest.mark.parametrize(("failed", "right"), [(False, False), (True, True)])
def test_a_data_key_that_is_too_old_is_noticed(failed: bool, right: bool) -> None:
    watch, producer, sealer = EncryptionWatch(PLAN), record(), cipher()
    watch.check_time(producer, opened(watch, producer, sealer), 0)
    late = opened(watch, producer, sealer, b"late")
    late.messages[0].sent_at = 5 * SECOND
    reader = producer.spec.crypto_key_reader
    assert isinstance(reader, KeyHolder)
    if failed:
        reader.open[7] = ("key-0", ())
        reader.failed(7, 3 * SECOND, refused=True)
    if right:
        watch.check_time(producer, late, 6 * SECOND)
    else:
        with broken("INV-E2"):
            watch.check_time(producer, late, 6 * SECOND)


def question(key: str = "key-0", *, private: bool = True, **metadata: str) -> EncryptionKeyWanted:
    return EncryptionKeyWanted(1, None, key, metadata, private)


def asked_before(reader: KeyHolder) -> None:
    reader.open[0] = ("key-0", ())


def refused_just_now(reader: KeyHolder) -> None:
    reader.open[0] = ("key-0", ())
    reader.failed(0, 95 * SECOND, refused=True)


def answered_before(reader: KeyHolder) -> None:
    reader.open[0] = ("key-0", ())
    reader.answered(0, 1, 95 * SECOND)


def never_named(reader: KeyHolder) -> None:
    reader.arrived.clear()


@pytest.mark.parametrize("before", [asked_before, refused_just_now, answered_before, never_named])
def test_a_question_without_need_is_noticed(before: Any) -> None:
    """Rule INV-E4."""
    watch, reader = EncryptionWatch(PLAN), holder(private=True)
    reader.arrived["key-0", ()] = {b"wrapped"}
    watch.asked(reader, question(), 100 * SECOND)
    before(reader)
    with broken("INV-E4"):
        watch.asked(reader, question(), 100 * SECOND)


def test_a_key_is_asked_for_again_after_a_while_and_for_each_data_key() -> None:
    watch, reader = EncryptionWatch(PLAN), holder(private=True)
    reader.arrived["key-0", ()] = {b"wrapped"}
    refused_just_now(reader)
    watch.asked(reader, question(), 105 * SECOND)
    answered_before(reader)
    reader.arrived["key-0", ()].add(b"another")
    watch.asked(reader, question(), 105 * SECOND)


@pytest.mark.parametrize("wrong", [question(), question("stranger", private=False)])
def test_a_producer_that_asks_for_what_it_must_not_have_is_noticed(wrong: EncryptionKeyWanted) -> None:
    with broken("INV-E4"):
        EncryptionWatch(PLAN).asked(holder(), wrong, 0)
