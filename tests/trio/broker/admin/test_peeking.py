"""A stored entry as an answer: each field of its metadata is one HTTP header with a Java broker's name."""

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest

from pulsar_sansio import MessageId, StoredMessage
from pulsar_sansio.wire import EncryptionKey, MessageMetadata
from pulsar_trio.broker.admin.peeking import date, entry_answer

WRITTEN = 1_700_000_000_120
ALWAYS = {
    "X-Pulsar-Message-ID": "3:7",
    "X-Pulsar-PROPERTY": "{}",
    "X-Pulsar-producer-name": "p",
    "X-Pulsar-sequence-id": "5",
    "X-Pulsar-publish-time": "2023-11-14T22:13:20.12Z",
    "X-Pulsar-Is-Encrypted": "false",
    "X-Pulsar-txn-uncommitted": "false",
}


def headers(stored_size: int = 4, **metadata: Any) -> dict[str, str]:
    entry = StoredMessage(MessageId(3, 7), MessageMetadata("p", 5, WRITTEN, **metadata), b"body", stored_size)
    return dict(entry_answer(entry).headers)


def test_an_entry_without_options() -> None:
    entry = StoredMessage(MessageId(3, 7), MessageMetadata("p", 5, WRITTEN), b"body", 4)
    answer = entry_answer(entry)
    assert (answer.status, answer.body, answer.content_type) == (200, b"body", "application/octet-stream")
    assert dict(answer.headers) == ALWAYS


@pytest.mark.parametrize(
    ("metadata", "more"),
    [
        ({"replicated_from": "east"}, {"replicated-from": "east"}),
        ({"partition_key": "k"}, {"partition-key": "k"}),
        (
            {"partition_key": "aw==", "partition_key_b64_encoded": True},
            {"partition-key": "aw==", "partition-key-b64-encoded": "true"},
        ),
        ({"partition_key_b64_encoded": False}, {"partition-key-b64-encoded": "false"}),
        ({"null_value": True}, {"null-value": "true"}),
        ({"null_partition_key": True}, {"null-partition-key": "true"}),
        ({"encryption_algo": "AES"}, {"encryption-algo": "AES"}),
        ({"encryption_param": b"\x00\xff"}, {"Base64-encryption-param": "AP8="}),
        ({"schema_version": b"\x01"}, {"Base64-schema-version": "AQ=="}),
        ({"ordering_key": b"o"}, {"Base64-ordering-key": "bw=="}),
        ({"event_time": 1_500}, {"event-time": "1970-01-01T00:00:01.5Z"}),
        ({"deliver_at_time": 2_000}, {"deliver-at-time": "1970-01-01T00:00:02Z"}),
        ({"marker_type": 21}, {"marker-type": "21"}),
        ({"txnid_least_bits": 1, "txnid_most_bits": 0}, {"txnid-least-bits": "1", "txnid-most-bits": "0"}),
        ({"highest_sequence_id": 9}, {"highest-sequence-id": "9"}),
        (
            {"uuid": "p-5", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 10},
            {"uuid": "p-5", "chunk-id": "0", "num-chunks-from-msg": "2", "total-chunk-msg-size": "10"},
        ),
        ({"compression": 0, "uncompressed_size": 0}, {"uncompressed-size": "0"}),
        ({"compression": 1, "uncompressed_size": 4}, {"compression": "LZ4", "uncompressed-size": "4"}),
        ({"compression": 4}, {"compression": "SNAPPY"}),
        ({"num_messages_in_batch": 1}, {"num-batch-message": "1", "batch-size": "14"}),
        ({"replicate_to": ["east", "west"]}, {"replicated-to": "east,west"}),
        ({"properties": [("a", "b"), ("c", "ü")]}, {"PROPERTY": r'{"a":"b","c":"\u00fc"}'}),
    ],
    ids=lambda value: ",".join(value),
)
def test_a_field_is_a_header(metadata: dict[str, Any], more: dict[str, str]) -> None:
    """A field that the producer did not write has none."""
    assert headers(**metadata) == ALWAYS | {f"X-Pulsar-{name}": value for name, value in more.items()}


def test_an_entry_of_a_transaction() -> None:
    """A Java client leaves entries out by these headers."""
    for aborted, uncommitted in ((False, True), (True, False)):
        metadata = MessageMetadata("p", 5, WRITTEN)
        answer = entry_answer(StoredMessage(MessageId(3, 7), metadata, b"", 0, uncommitted, aborted))
        found = dict(answer.headers)
        assert found["X-Pulsar-txn-uncommitted"] == str(uncommitted).lower()
        assert found["X-Pulsar-txn-aborted"] == str(aborted).lower()


def test_the_size_of_a_batch_is_the_one_it_is_stored_with() -> None:
    """A Java broker counts ten bytes more."""
    assert headers(stored_size=100, num_messages_in_batch=3)["X-Pulsar-batch-size"] == "110"


def test_keys_of_an_encrypted_entry() -> None:
    found = headers(encryption_keys=[EncryptionKey("mine", b"\x01\x02"), EncryptionKey("yours", b"")])
    assert found["X-Pulsar-Is-Encrypted"] == "true"
    assert json.loads(b64decode(found["X-Pulsar-Base64-encryption-keys"])) == [
        {"key": "mine", "value": b64encode(b"\x01\x02").decode()},
        {"key": "yours", "value": ""},
    ]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("plain", "plain"),
        ("ключ", r"\u043a\u043b\u044e\u0447"),
        ("a\r\nX-Evil: 1", r"a\r\nX-Evil: 1"),
        ("\x00", r"\x00"),
    ],
)
def test_a_header_has_one_line_whatever_the_producer_wrote(key: str, shown: str) -> None:
    assert headers(partition_key=key)["X-Pulsar-partition-key"] == shown


@pytest.mark.parametrize(
    ("wall_time", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_120, "2023-11-14T22:13:20.12Z"),
        (2**63, "9223372036854775808"),
        (-1, "-1"),
    ],
)
def test_dates(wall_time: int, text: str) -> None:
    assert date(wall_time) == text
