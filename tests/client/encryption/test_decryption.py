"""`Decryption`: a consumer asks for private keys, keeps data keys, and carries out its failure action."""

import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pulsar_sansio.client.encryption.decryption import (
    DATA_KEY_TIME,
    FAILURE_TIME,
    MAX_DATA_KEYS,
    MAX_FAILURES,
)
from pulsar_sansio.client.outputs import Undecryptable
from pulsar_sansio.encryption import wrap_data_key
from pulsar_sansio.encryption.data_key import DataKey
from pulsar_sansio.model.config import (
    CompressionType,
    ConsumerSpec,
    ReaderSpec,
    SubscriptionType,
    TableViewSpec,
)
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction
from pulsar_sansio.model.encryption_context import EncryptionKey
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import compress, encode_batch_payloads, proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes
from tests.encryption.keys import key_pair

from .decrypting import Sealer, asked, decrypting, payloads, provide, refuse
from .encrypted import READER

FAIL, DISCARD, CONSUME = ConsumerCryptoFailureAction
SHARED = SubscriptionType.SHARED


def reasons(s: ConsumerScript) -> list[str]:
    return [str(output.error) for output in s.outputs() if isinstance(output, Undecryptable)]


# --- keys ---


def test_one_private_key_decrypts_all_that_its_data_key_encrypted() -> None:
    """Rules CRYPTO-08 and CFG-219."""
    s = decrypting()
    sealer = Sealer("a", version="3")
    s.deliver(0, sealer.entry(b"one"))
    [wanted] = asked(s)
    assert (wanted.key, wanted.metadata) == ("a", {"version": "3"})
    assert payloads(s) == []
    provide(s, wanted)
    s.deliver(1, sealer.entry(b"two"))
    assert payloads(s) == [b"one", b"two"]
    assert asked(s) == []


def test_an_entry_is_decrypted_then_decompressed_then_split() -> None:
    """Rule CRYPTO-02."""
    s = decrypting()
    plain = encode_batch_payloads([b"x", b"y"], 0)
    fields = {"compression": CompressionType.ZSTD, "uncompressed_size": len(plain)}
    packed = compress(CompressionType.ZSTD, plain)
    s.deliver(0, Sealer().entry(packed, num_messages_in_batch=2, **fields))
    provide(s, *asked(s))
    first, second = s.take()
    assert (first.data, second.data) == (b"x", b"y")
    assert second.message_id == MessageId(1, 0, -1, 1, 2)
    context = second.encryption_context
    assert (context.batch_size, context.decryption_failed) == (2, False)


def test_of_several_recipients_one_private_key_is_enough() -> None:
    s = decrypting()
    s.deliver(0, Sealer("x", "y", "z").entry(b"secret"))
    [first] = asked(s)
    refuse(s, first)
    [second] = asked(s)
    assert (first.key, second.key) == ("x", "y")
    provide(s, second)
    assert payloads(s) == [b"secret"]
    assert asked(s) == []


def test_a_rotated_key_is_asked_for_once_for_each_data_key() -> None:
    s = decrypting()
    s.deliver(0, Sealer().entry(b"old"))
    provide(s, *asked(s))
    s.deliver(1, Sealer().entry(b"new"))
    [wanted] = asked(s)
    provide(s, wanted)
    assert payloads(s) == [b"old", b"new"]


def test_a_refused_key_is_not_asked_for_again_at_once() -> None:
    s = decrypting()
    s.deliver(0, Sealer().entry(b"one"))
    refuse(s, *asked(s))
    s.deliver(1, Sealer().entry(b"two"))
    assert asked(s) == []
    s.pass_time(FAILURE_TIME)
    s.deliver(2, Sealer().entry(b"three"))
    provide(s, *asked(s))
    assert payloads(s) == [b"three"]


def test_a_slow_refusal_of_each_key_holds_up_no_entry_for_ever() -> None:
    """The last key is refused when the refusal of the first would have been forgotten."""
    s = decrypting()
    for entry in (0, 1):
        s.deliver(entry, Sealer("b", "c").entry(b"secret"))
    s.deliver(2, entry_bytes(b"plain"))
    for key in "bc":
        [wanted] = asked(s)
        assert wanted.key == key
        s.pass_time(FAILURE_TIME)
        refuse(s, wanted)
    assert asked(s) == []
    assert payloads(s) == [b"plain"]
    s.pass_time(FAILURE_TIME)
    s.deliver(3, Sealer("b").entry(b"secret"))
    provide(s, *asked(s))
    assert payloads(s) == [b"secret"]


def test_chunks_behind_one_that_could_not_be_decrypted_stay_unacknowledged() -> None:
    """The key comes between the chunks of a message. All chunks are redelivered together."""
    s = decrypting(acknowledgement_timeout=30.0, subscription_type=SHARED)
    sealer = Sealer("b")

    def deliver(chunk: int) -> None:
        fields = {"uuid": "u", "chunk_id": chunk, "num_chunks_from_msg": 3, "total_chunk_msg_size": 3}
        s.deliver(chunk, sealer.entry(b"%d" % chunk, **fields))

    deliver(0)
    refuse(s, *asked(s))
    s.pass_time(FAILURE_TIME)
    deliver(1)
    provide(s, *asked(s))
    deliver(2)
    s.frames()
    s.pass_time(40 * SECOND)
    requested = [
        each.entryId
        for name, command in s.frames()
        if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES"
        for each in command.message_ids
    ]
    assert sorted(requested) == [0, 1, 2]
    for chunk in range(3):
        deliver(chunk)
    assert payloads(s) == [b"012"]


def test_one_data_key_that_cannot_be_unwrapped_says_nothing_of_others() -> None:
    s = decrypting()
    sealer = Sealer("b")
    [good] = sealer.cipher.keys
    s.deliver(0, entry_bytes(b"x" * 16, encryption_keys=[good._replace(value=b"w" * 117)]))
    provide(s, *asked(s))
    s.deliver(1, sealer.entry(b"one"))
    provide(s, *asked(s))
    assert payloads(s) == [b"one"]


def test_a_data_key_that_was_not_used_for_hours_is_forgotten() -> None:
    s = decrypting(receiver_queue_size=5)
    used, unused = Sealer(), Sealer()
    for entry, sealer in enumerate((used, unused)):
        s.deliver(entry, sealer.entry(b"x"))
        provide(s, *asked(s))
    machine = s.machine._decryption
    assert machine is not None
    s.now += DATA_KEY_TIME // 2
    s.deliver(2, used.entry(b"x"))
    s.now += DATA_KEY_TIME // 2
    s.deliver(3, used.entry(b"x"))
    assert asked(s) == []
    s.deliver(4, unused.entry(b"x"))
    assert len(asked(s)) == 1


def test_what_producers_write_fills_no_memory() -> None:
    """Data keys, and failures by the names of keys, are limited."""
    s = decrypting(receiver_queue_size=10)
    decryption = s.machine._decryption
    assert decryption is not None
    public = key_pair("p256", ord("b"))[0]
    for number in range(MAX_DATA_KEYS + 10):
        wrapped = wrap_data_key(public, DataKey(number.to_bytes(32)), os.urandom)
        s.deliver(0, entry_bytes(b"x" * 16, encryption_keys=[EncryptionKey("b", wrapped)]))
        for wanted in asked(s):
            provide(s, wanted)
    for number in range(MAX_FAILURES + 10):
        s.deliver(0, entry_bytes(b"x" * 16, encryption_keys=[EncryptionKey(f"{number}", b"")]))
        for wanted in asked(s):
            refuse(s, wanted)
    assert (len(decryption._keys), len(decryption._failures)) == (MAX_DATA_KEYS, MAX_FAILURES)


def test_few_messages_with_a_chunk_that_stayed_unacknowledged_are_remembered() -> None:
    """Names of messages come from any producer. Of three messages only the first is an ordinary orphan."""
    s = decrypting(max_pending_chunked_messages=2)
    sealer = Sealer("b")

    def deliver(uuid: str, chunk: int) -> None:
        fields = {"uuid": uuid, "chunk_id": chunk, "num_chunks_from_msg": 2, "total_chunk_msg_size": 2}
        s.deliver(0, sealer.entry(b"0", **fields))

    for uuid in "xyz":
        deliver(uuid, 0)
        for wanted in asked(s):
            refuse(s, wanted)
    s.pass_time(FAILURE_TIME)
    for uuid in "xyz":
        deliver(uuid, 1)
        for wanted in asked(s):
            provide(s, wanted)
    counters = s.client.arrival_counters(s.consumer)
    assert (counters.undecryptable, counters.chunk_orphans) == (5, 1)


# --- what cannot be decrypted ---


def wrong_key(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").entry(b"secret"))
    [wanted] = asked(s)
    provide(s, wanted, key="c")


def no_key(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").entry(b"secret"))
    refuse(s, *asked(s))


def no_answer(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").entry(b"secret"))
    s.pass_time(31 * SECOND)


def tampered(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").entry(b"secret", encryption_param=bytes(12)))
    for wanted in asked(s):
        provide(s, wanted)


def no_nonce(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").entry(b"secret", encryption_param=None))
    for wanted in asked(s):
        provide(s, wanted)


def too_many(s: ConsumerScript) -> None:
    keys = [EncryptionKey(f"{number}", b"w") for number in range(65)]
    s.deliver(0, entry_bytes(b"secret", encryption_keys=keys))


def none_of_them(s: ConsumerScript) -> None:
    s.deliver(0, Sealer(*"bcdef").entry(b"secret"))
    while wanted := asked(s):
        refuse(s, *wanted)


@pytest.mark.parametrize(
    ("arrive", "words"),
    [
        (wrong_key, "encryption key 'b': the data key was wrapped for another key pair"),
        (no_key, "encryption key 'b': no such file"),
        (no_answer, "encryption key 'b': the key reader did not answer within 30 s"),
        (tampered, "encryption key 'b': the payload was changed, or encrypted with another data key"),
        (no_nonce, "encryption key 'b': the nonce has 0 bytes, and not 12"),
        (too_many, "the entry has 65 encryption keys, allowed are 64"),
        (
            none_of_them,
            "encryption key 'b': no such file; encryption key 'c': no such file; "
            "encryption key 'd': no such file (and 2 more)",
        ),
    ],
)
def test_the_first_undecryptable_message_is_told_with_the_key_that_was_wanted(
    arrive: Callable[[ConsumerScript], None], words: str
) -> None:
    """Rule ERR-12."""
    s = decrypting()
    told: list[str] = []
    asked_before = s.outputs

    def outputs() -> Any:
        found = asked_before()
        told.extend(str(output.error) for output in found if isinstance(output, Undecryptable))
        return found

    s.outputs = outputs  # type: ignore[method-assign]
    arrive(s)
    s.outputs()
    assert told == [words]
    assert s.take() == []
    assert s.client.arrival_counters(s.consumer).undecryptable == 1


def permits_are_back(s: ConsumerScript) -> bool:
    permits = s.machine.permits
    return permits.at_broker + permits.unreported == permits.queue_size


def undecryptable_batch(s: ConsumerScript) -> None:
    s.deliver(0, Sealer("b").batch(b"one", b"two", b"three"))
    for wanted in asked(s):
        refuse(s, wanted)


def test_fail_neither_delivers_nor_acknowledges() -> None:
    """Rules CRYPTO-05 and CFG-220."""
    s = decrypting(acknowledgement_group_time=0.0)
    undecryptable_batch(s)
    assert s.take() == []
    assert s.frames() == []
    assert permits_are_back(s)
    counters = s.client.arrival_counters(s.consumer)
    assert (counters.undecryptable, counters.unreadable) == (3, ((1, 0), (1, 0)))
    assert s.machine._arrival.undelivered.reached == (1, 0)


@pytest.mark.parametrize("reader", [READER, None])
def test_fail_is_redelivered_after_the_acknowledgement_timeout(reader: str | None) -> None:
    s = decrypting(subscription_type=SHARED, acknowledgement_timeout=2.0, crypto_key_reader=reader)
    undecryptable_batch(s)
    s.pass_time(4 * SECOND)
    [again] = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [(each.ledgerId, each.entryId) for each in again.message_ids] == [(1, 0)]


def test_discard_acknowledges_with_the_reason() -> None:
    """Rule WIRE-18."""
    s = decrypting(crypto_failure_action=DISCARD, acknowledgement_group_time=0.0)
    s.deliver(0, Sealer("b").batch(b"one", b"two", b"three"))
    refuse(s, *asked(s))
    [told] = [output for output in s.outputs() if isinstance(output, Undecryptable)]
    assert told.discarded
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]
    assert ack.validation_error == proto.CommandAck.DecryptionError
    assert s.take() == []
    assert permits_are_back(s)
    counters = s.client.arrival_counters(s.consumer)
    assert (counters.undecryptable, counters.discarded) == (3, 0)


@pytest.mark.parametrize("reader", [READER, None])
def test_consume_delivers_a_batch_as_one_message_with_all_that_decrypts_it(reader: str | None) -> None:
    """Rule CRYPTO-06."""
    s = decrypting(crypto_failure_action=CONSUME, crypto_key_reader=reader, acknowledgement_group_time=0.0)
    stored = Sealer("b", version="3").batch(b"one", b"two", compression=CompressionType.ZLIB)
    s.deliver(0, stored, redelivery_count=1)
    for wanted in asked(s):
        refuse(s, wanted)
    [message] = s.take()
    assert stored.endswith(message.data)
    assert message.message_id == MessageId(1, 0)
    assert message.redelivery_count == 1
    context = message.encryption_context
    assert [(key.key, key.metadata) for key in context.keys] == [("b", (("version", "3"),))]
    assert len(context.param) == 12
    assert (context.compression, context.batch_size) == (CompressionType.ZLIB, 2)
    assert context.decryption_failed
    assert permits_are_back(s)
    assert reasons(s) == []
    s.acknowledge(message)
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]
    assert pickle.loads(pickle.dumps(message)).encryption_context == context


def test_consume_delivers_each_chunk_by_itself() -> None:
    s = decrypting(crypto_failure_action=CONSUME, crypto_key_reader=None)
    sealer = Sealer("b")
    for chunk in range(2):
        fields = {"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": chunk, "total_chunk_msg_size": 2}
        s.deliver(chunk, sealer.entry(b"x", **fields))
    contexts = [message.encryption_context for message in s.take()]
    assert [(each.uuid, each.chunk_id, each.chunks) for each in contexts] == [("u", 0, 2), ("u", 1, 2)]
    assert contexts[0].param != contexts[1].param


def test_consume_leaves_out_what_is_before_the_start() -> None:
    s = decrypting(
        crypto_failure_action=CONSUME,
        crypto_key_reader=None,
        durable=False,
        start_message_id=MessageId(1, 1),
    )
    for entry in range(3):
        s.deliver(entry + 1, Sealer("b").batch(b"x", b"y"))
    assert [message.message_id[1] for message in s.take()] == [2, 3]
    assert permits_are_back(s)


def test_chunks_are_decrypted_on_arrival_and_joined() -> None:
    s = decrypting()
    sealer = Sealer("b")
    for chunk, part in enumerate((b"first", b"-last")):
        fields = {"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": chunk, "total_chunk_msg_size": 10}
        s.deliver(chunk, sealer.entry(part, **fields))
        for wanted in asked(s):
            provide(s, wanted)
    [message] = s.take()
    assert message.data == b"first-last"
    assert (message.encryption_context.chunks, message.encryption_context.decryption_failed) == (2, False)


def test_a_message_that_was_sent_in_clear_has_no_encryption_context() -> None:
    s = decrypting()
    s.message(0)
    [message] = s.take()
    assert message.encryption_context is None


# --- options ---


@pytest.mark.parametrize(
    "make", [partial(ConsumerSpec, "t", "s"), partial(ReaderSpec, "t", 0), partial(TableViewSpec, "t")]
)
def test_wrong_options_are_refused(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConfiguration, match="a ConsumerCryptoFailureAction, not 'fail'"):
        make(crypto_failure_action="fail")
    assert make(crypto_failure_action=DISCARD)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InvalidConfiguration, match=r"crypto_key_reader: .*pulsar-trio\[encryption\]"):
        make(crypto_key_reader=object())


def test_a_table_view_has_no_use_for_encrypted_values() -> None:
    with pytest.raises(InvalidConfiguration, match="FAIL or DISCARD"):
        TableViewSpec("t", crypto_failure_action=CONSUME)
