"""`EntryEncryption`: a producer reads its public keys, encrypts what it sends, and renews its data key."""

import sys
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.connecting.services import DATA_KEY_RENEWAL
from pulsar_sansio.client.outputs import (
    Connect,
    EncryptionKeysFailed,
    ProducerFailed,
    ProducerReady,
    SendFailed,
)
from pulsar_sansio.encryption import TAG_SIZE
from pulsar_sansio.model.config import (
    BatchingPolicy,
    ClientConfig,
    CompressionType,
    ConsumerSpec,
    DeadLetterPolicy,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.encryption import EncryptionKeyInfo, ProducerCryptoFailureAction
from pulsar_sansio.model.errors import CryptoError, InvalidConfiguration, MessageTooLarge
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import SHORT_SEND_LIMIT, split_batch
from tests.client.script import (
    SECOND,
    WALL,
    Command,
    Script,
    frame_producer_success,
    frame_success,
)

from .encrypted import (
    READER,
    attach,
    is_connecting,
    metadata_of,
    opened,
    provide,
    ready,
    refuse,
    spec_of,
    wanted,
)

SEND_ACTION = ProducerCryptoFailureAction.SEND


def send(script: Script, producer: int, message: Any) -> int:
    return script.client.send(script.now, producer, message, WALL)


# --- opening ---


def test_a_producer_opens_when_it_has_its_public_keys() -> None:
    """Rules CRYPTO-01 and CFG-112."""
    script = Script()
    producer = script.client.open_producer(script.now, spec_of("a", "b"))
    first, second = wanted(script)
    assert (first.reader, first.key, first.metadata, first.private) == (READER, "a", {}, False)
    assert second.key == "b"
    assert send(script, producer, b"early") == 0
    provide(script, second)
    assert not is_connecting(script)
    assert "waiting for the key reader to return encryption key 'a'" in script.client.explain(
        script.now, producer
    )
    provide(script, first)
    link = attach(script)
    command = script.sent(link, Command.SEND)
    assert [opened(command, key) for key in ("a", "b")] == [b"early"] * 2


def test_without_a_public_key_a_producer_fails_to_open_and_says_which() -> None:
    """Rules ERR-12 and PROD-05."""
    script = Script()
    producer = script.client.open_producer(script.now, spec_of("a", "b"))
    ticket = send(script, producer, b"early")
    first, second = wanted(script)
    refuse(script, second)
    failed, ended = script.said()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (ticket, 1)
    assert isinstance(ended, ProducerFailed)
    assert isinstance(ended.error, CryptoError)
    assert str(ended.error) == "encryption key 'b': no such file"
    provide(script, first)  # too late
    assert script.said() == []
    assert script.client.next_deadline() is None


def test_a_key_that_is_none_fails_the_opening() -> None:
    script = Script()
    script.client.open_producer(script.now, spec_of())
    [asked] = wanted(script)
    script.client.provide_encryption_key(script.now, asked.request, EncryptionKeyInfo(Secret("no key")))
    failed = script.expect_one(ProducerFailed)
    assert str(failed.error) == "encryption key 'a': it is no public key in PEM"


def test_a_key_reader_has_the_operation_timeout() -> None:
    script = Script(operation_timeout=7.0)
    script.client.open_producer(script.now, spec_of())
    [asked] = wanted(script)
    script.advance(6.9)
    assert script.said() == []
    script.advance(0.2)
    failed = script.expect_one(ProducerFailed)
    assert str(failed.error) == "encryption key 'a': the key reader did not answer within 7 s"
    provide(script, asked)
    assert script.said() == []


def test_a_producer_that_is_closed_while_it_waits_for_a_key_wants_it_no_more() -> None:
    script = Script()
    producer = script.client.open_producer(script.now, spec_of())
    [asked] = wanted(script)
    script.client.abandon(script.now, producer)
    assert [type(output) for output in script.said()] == [ProducerFailed]
    provide(script, asked)
    assert script.said() == []
    assert script.client.next_deadline() is None


def test_one_slow_key_reader_holds_up_its_own_producer_only() -> None:
    script = Script()
    script.client.open_producer(script.now, spec_of())
    wanted(script)
    other, link = script.ready_producer(ProducerSpec("other", batching=None))
    send(script, other, b"in clear")
    assert script.sent(link, Command.SEND).payload.endswith(b"in clear")


def test_each_partition_encrypts_with_a_data_key_of_its_own() -> None:
    script = Script(keepalive_interval=86_400.0)
    spec = spec_of(partitions_update_interval=None)
    producer = script.client.open_producer(script.now, spec)
    provide(script, *wanted(script))
    link = script.ready_link()
    script.check_partitions(link, 2)
    for _ in range(2):
        provide(script, *wanted(script))
        script.find_topic(link)
        asked = script.sent(link, Command.PRODUCER)
        script.feed(link, frame_producer_success(asked.request_id))
    assert isinstance(script.said()[-1], ProducerReady)
    wrapped = []
    for _ in range(2):
        send(script, producer, b"x")
        wrapped.append(metadata_of(script.sent(link, Command.SEND)).encryption_keys[0].value)
    assert wrapped[0] != wrapped[1]
    script.advance(DATA_KEY_RENEWAL / SECOND)
    assert len(wanted(script)) == 2


def test_a_partition_without_its_key_fails_the_whole_producer() -> None:
    script = Script()
    producer = script.client.open_producer(script.now, spec_of())
    provide(script, *wanted(script))
    link = script.ready_link()
    script.check_partitions(link, 3)
    provide(script, *wanted(script))
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    first, second = wanted(script)
    refuse(script, first)
    closing = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_success(closing.request_id))
    failed = script.expect_one(ProducerFailed)
    assert (failed.producer, str(failed.error)) == (producer, "encryption key 'a': no such file")
    provide(script, second)
    assert script.said() == []


# --- sending ---


def test_messages_are_compressed_then_encrypted() -> None:
    script, producer, link = ready(spec_of(compression=CompressionType.ZLIB))
    send(script, producer, OutgoingMessage(b"z" * 1000, key="k", properties={"p": "q"}))
    command = script.sent(link, Command.SEND)
    assert opened(command) == b"z" * 1000
    metadata = metadata_of(command)
    assert (metadata.partition_key, metadata.properties) == ("k", [("p", "q")])
    assert metadata.uncompressed_size == 1000
    assert metadata.encryption_algo is None
    assert len(command.payload) < 600


def test_a_batch_is_encrypted_as_a_whole() -> None:
    script, producer, link = ready(spec_of(batching=BatchingPolicy(max_messages=2)))
    send(script, producer, b"one")
    send(script, producer, b"two")
    command = script.sent(link, Command.SEND)
    assert metadata_of(command).num_messages_in_batch == 2
    assert list(split_batch(opened(command), 2, 0).payloads) == [b"one", b"two"]


def test_chunks_are_encrypted_one_by_one_and_fit() -> None:
    script, producer, link = ready(spec_of(chunking=True), max_message_size=2000)
    payload = bytes(range(256)) * 20
    send(script, producer, payload)
    commands = script.sent(link, *[Command.SEND] * 4)
    assert b"".join(map(opened, commands)) == payload
    metadatas = [metadata_of(command) for command in commands]
    assert {metadata.total_chunk_msg_size for metadata in metadatas} == {len(payload)}
    assert len({metadata.encryption_param for metadata in metadatas}) == 4
    assert all(len(command.payload) < 2000 + 16 for command in commands)


@pytest.mark.parametrize("batching", [None, BatchingPolicy(max_messages=1000)], ids=["single", "batch"])
def test_the_limit_of_the_broker_is_for_encrypted_payloads(batching: BatchingPolicy | None) -> None:
    script, producer, link = ready(spec_of(batching=batching), max_message_size=1000)
    with pytest.raises(MessageTooLarge, match="985 bytes"):
        send(script, producer, bytes(985))
    for _ in range(20):
        send(script, producer, bytes(300))
    send(script, producer, bytes(984))
    script.advance(1.0)
    commands = [command for _, command in script.commands(link)]
    assert len(commands) >= 7
    assert script.said() == []


@pytest.mark.parametrize("size", range(390, 450, 3))
def test_an_encrypted_batch_always_fits(size: int) -> None:
    policy = BatchingPolicy(max_messages=2)
    script, producer, link = ready(spec_of(batching=policy), max_message_size=1000)
    for _ in range(2):
        send(script, producer, OutgoingMessage(bytes(size), key="k" * 50))
    script.advance(1.0)
    assert script.said() == []
    assert sum(metadata_of(each).num_messages_in_batch or 1 for _, each in script.commands(link)) == 2


def test_what_is_sent_again_has_unchanged_bytes() -> None:
    script, producer, link = ready(spec_of())
    send(script, producer, b"x")
    before = script.sent(link, Command.SEND)
    script.lose(link)
    script.advance(0.2)
    script.outputs = [output for output in script.outputs if isinstance(output, Connect)]
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    assert asked.encrypted
    script.feed(link, frame_producer_success(asked.request_id))
    assert script.sent(link, Command.SEND).payload == before.payload


# --- renewal ---


def test_after_four_hours_a_new_data_key_encrypts() -> None:
    script, producer, link = ready(spec_of())
    send(script, producer, b"old")
    old = script.sent(link, Command.SEND)
    script.advance(DATA_KEY_RENEWAL / SECOND - 1)
    assert script.said() == []
    script.advance(2)
    [asked] = wanted(script)
    send(script, producer, b"meanwhile")
    meanwhile = script.sent(link, Command.SEND)
    assert metadata_of(meanwhile).encryption_keys == metadata_of(old).encryption_keys
    provide(script, asked, version="2")
    send(script, producer, b"new")
    new = script.sent(link, Command.SEND)
    assert metadata_of(new).encryption_keys[0].value != metadata_of(old).encryption_keys[0].value
    assert metadata_of(new).encryption_keys[0].metadata == (("version", "2"),)
    assert [opened(each) for each in (old, meanwhile, new)] == [b"old", b"meanwhile", b"new"]


def test_a_failed_renewal_is_told_and_repeated_and_the_last_data_key_stays() -> None:
    """Rule PROD-05."""
    script, producer, link = ready(spec_of("a", "b"))
    script.advance(DATA_KEY_RENEWAL / SECOND)
    first, _ = wanted(script)
    refuse(script, first)
    [told] = [notice for notice in script.notices if isinstance(notice, EncryptionKeysFailed)]
    assert (told.producer, str(told.error), told.in_clear) == (
        producer,
        "encryption key 'a': no such file",
        False,
    )
    send(script, producer, b"still")
    assert opened(script.sent(link, Command.SEND)) == b"still"
    script.advance(told.retry_in / SECOND)
    first, second = wanted(script)
    refuse(script, second)
    assert script.notices[-1].retry_in > 1.5 * told.retry_in  # type: ignore[union-attr]
    assert script.client.producer_statistics(producer).key_failures == 2
    assert (
        "messages are encrypted with the last data key: 2 readings of the encryption keys have failed, "
        "the latest: encryption key 'b': no such file"
    ) in script.client.explain(script.now, producer)
    script.advance(1)
    provide(script, *wanted(script))
    assert "encryption key" not in script.client.explain(script.now, producer)
    script.advance(DATA_KEY_RENEWAL / SECOND)
    refuse(script, wanted(script)[0])
    assert script.client.producer_statistics(producer).key_failures == 3
    assert script.notices[-1].retry_in < 1.5 * told.retry_in  # type: ignore[union-attr]


# --- in clear ---


def test_with_send_messages_go_in_clear_until_the_keys_are_there() -> None:
    """Rule CRYPTO-03."""
    script = Script()
    producer = script.client.open_producer(script.now, spec_of(crypto_failure_action=SEND_ACTION))
    [asked] = wanted(script)
    refuse(script, asked)
    link = attach(script)
    [told] = [notice for notice in script.notices if isinstance(notice, EncryptionKeysFailed)]
    assert (str(told.error), told.in_clear) == ("encryption key 'a': no such file", True)
    send(script, producer, b"in clear")
    clear = script.sent(link, Command.SEND)
    assert clear.payload.endswith(b"in clear")
    assert metadata_of(clear).encryption_keys == ()
    assert "messages go unencrypted: 1 " in script.client.explain(script.now, producer)
    script.advance(told.retry_in / SECOND)
    provide(script, *wanted(script))
    send(script, producer, b"secret")
    assert opened(script.sent(link, Command.SEND)) == b"secret"


def test_with_send_a_producer_that_has_encrypted_goes_on_encrypting() -> None:
    script, producer, link = ready(spec_of(crypto_failure_action=SEND_ACTION))
    script.advance(DATA_KEY_RENEWAL / SECOND)
    [asked] = wanted(script)
    refuse(script, asked)
    send(script, producer, b"secret")
    assert opened(script.sent(link, Command.SEND)) == b"secret"


# --- wrong use ---


def test_a_client_without_entropy_opens_no_producer_that_encrypts() -> None:
    client = Client(0, ClientConfig("pulsar://broker"), seed=1)
    with pytest.raises(InvalidConfiguration, match="entropy"):
        client.open_producer(0, spec_of())
    policy = DeadLetterPolicy(1, encryption_keys=("a",), crypto_key_reader=READER)
    with pytest.raises(InvalidConfiguration, match="entropy"):
        client.subscribe(0, ConsumerSpec("t", "s", dead_letter=policy))
    assert client.next_output() is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encryption_keys": "a"}, "a tuple of names of keys"),
        ({"encryption_keys": ("",)}, "not blank"),
        ({"encryption_keys": ("a", "a")}, "each once"),
        ({"encryption_keys": tuple(f"k{number}" for number in range(65))}, "up to 64"),
        ({"encryption_keys": ()}, "have neither"),
        ({"crypto_key_reader": None}, "has both"),
        ({"crypto_failure_action": "send"}, "a ProducerCryptoFailureAction"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    """Rules CFG-113 and CFG-114."""
    with pytest.raises(InvalidConfiguration, match=words):
        spec_of(**options)


def test_without_the_library_the_option_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InvalidConfiguration, match=r"pulsar-trio\[encryption\]"):
        spec_of()


def test_a_short_message_and_one_just_too_long_for_a_short_frame_are_encrypted_alike() -> None:
    script = Script()
    producer = script.client.open_producer(script.now, spec_of("a"))
    provide(script, *wanted(script))
    link = attach(script)
    sizes = (0, 1, SHORT_SEND_LIMIT - TAG_SIZE, SHORT_SEND_LIMIT - TAG_SIZE + 1)
    for size in sizes:
        send(script, producer, bytes(size))
        command = script.sent(link, Command.SEND)
        assert opened(command, "a") == bytes(size)
        assert metadata_of(command).uncompressed_size == size
