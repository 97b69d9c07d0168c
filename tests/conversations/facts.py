"""The contents of a frame, as plain values by which two conversations can be compared.

A frame is read with protobuf alone, not with the code under test: the fields that are present, and what a
payload holds once it is unpacked. Values that one side chose freely (ids, ledger numbers, names, times) are
wrapped in `Chosen`. They are matched with what the other side chose for the same thing.
"""

import zlib
from typing import Any, NamedTuple

import cramjam
import lz4.block
import zstandard
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from google.protobuf.message import Message as Proto

from pulsar_sansio.wire import proto
from tests.wire.recorded.recordings import FOLDER

PUBLIC_KEY = FOLDER / "encryption-public-key.pem"
PRIVATE_KEY = FOLDER / "encryption-private-key.pem"
"""The key pair of the recording `java-encryption`, which the stage has, too."""

Facts = dict[str, Any]


class Chosen(NamedTuple):
    """A value that one side picked: it stands for itself, and equals what the other side picked there."""

    kind: str
    value: Any


class Frame(NamedTuple):
    connection: int
    by_client: bool
    name: str
    facts: Facts


IDS = {"request_id": "request", "producer_id": "producer", "consumer_id": "consumer"}
NAMES = {"producer_name", "consumer_name"}
FREE = {
    "client_version",
    "server_version",
    "publish_time",
    "message_publish_time",
    "deliver_at_time",
    "brokerServiceUrl",
    "brokerServiceUrlTls",
    "message",
    "consumerName",
}
"""Fields whose content is the speaker's own affair: only their presence counts. `message` is the text of an
error."""


def frame_facts(connection: int, by_client: bool, whole: bytes) -> Frame:
    """`whole`: one frame with its size."""
    command_size = int.from_bytes(whole[4:8], "big")
    command = proto.BaseCommand.FromString(whole[8 : 8 + command_size])
    name = proto.BaseCommand.Type.Name(command.type)
    [(_, inner)] = [(field, value) for field, value in command.ListFields() if field.name != "type"]
    facts = fields(inner, name)
    if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES" and "message_ids" in facts:
        facts["message_ids"].sort(key=lambda each: each["position"].value)  # they are a set
    headers_and_payload = whole[8 + command_size :]
    if headers_and_payload:
        facts["entry"] = entry_facts(headers_and_payload)
    return Frame(connection, by_client, name, facts)


def fields(message: Proto, where: str) -> Facts:
    """The fields that are present."""
    found: Facts = {}
    for field, value in message.ListFields():
        name = field.name
        if name in FREE and not (where == "MessageMetadata" and name == "message"):
            found[name] = Chosen("free", None)
        elif name in IDS:
            found[name] = Chosen(IDS[name], value)
        elif name == "entryId":
            continue
        elif name == "ledgerId":
            found["position"] = Chosen("position", (value, message.entryId))  # type: ignore[attr-defined]
        elif name == "txnid_least_bits":
            found["transaction"] = Chosen("transaction", (message.txnid_most_bits, value))  # type: ignore[attr-defined]
        elif name == "txnid_most_bits":
            continue
        elif name in NAMES or (
            name == "subscription" and isinstance(value, str) and value.startswith("reader-")
        ):
            found[name] = Chosen("name", value)
        elif name == "value" and getattr(message, "key", "").startswith("ORIGIN_MESSAGE_ID"):
            ledger_id, entry_id, rest = value.split(":", 2)
            found[name] = [Chosen("position", (int(ledger_id), int(entry_id))), rest]
        elif field.message_type is not None:
            values = [
                fields(each, field.message_type.name) for each in (value if field.is_repeated else [value])
            ]
            found[name] = values if field.is_repeated else values[0]
        else:
            found[name] = list(value) if field.is_repeated else value
    return found


def entry_facts(data: bytes) -> Facts:
    """Headers and payload, the payload unpacked as far as it goes."""
    facts: Facts = {}
    if data[:2] == b"\x0e\x02":
        size = int.from_bytes(data[2:6], "big")
        facts["broker entry"] = sorted(
            field.name for field, _ in proto.BrokerEntryMetadata.FromString(data[6 : 6 + size]).ListFields()
        )
        data = data[6 + size :]
    facts["checksum"] = data[:2] == b"\x0e\x01"
    if facts["checksum"]:
        data = data[6:]
    size = int.from_bytes(data[:4], "big")
    metadata = proto.MessageMetadata.FromString(data[4 : 4 + size])
    payload = data[4 + size :]
    facts["metadata"] = fields(metadata, "MessageMetadata")
    if "uuid" in facts["metadata"]:
        name, _, number = metadata.uuid.rpartition("-")
        facts["metadata"]["uuid"] = [Chosen("name", name), number]
    if metadata.encryption_keys:
        facts["metadata"]["encryption_param"] = len(metadata.encryption_param)
        for key in facts["metadata"]["encryption_keys"]:
            key["value"] = len(key["value"])
        payload = decrypted(metadata, payload)
    if metadata.num_chunks_from_msg > 1:
        # A chunk of what was compressed as a whole: its size says how it was cut.
        facts["payload"] = payload if metadata.compression == proto.NONE else len(payload)
        return facts
    payload = decompressed(metadata, payload)
    if metadata.HasField("num_messages_in_batch"):
        facts["payload"] = members(payload, metadata.num_messages_in_batch)
    else:
        facts["payload"] = payload
    return facts


def decrypted(metadata: Any, payload: bytes) -> bytes:
    """The payload, whose data key is wrapped for the key pair of the recordings."""
    private = load_pem_private_key(PRIVATE_KEY.read_bytes(), None)
    assert isinstance(private, RSAPrivateKey)
    padding = OAEP(mgf=MGF1(algorithm=SHA1()), algorithm=SHA1(), label=None)
    data_key = private.decrypt(metadata.encryption_keys[0].value, padding)
    return AESGCM(data_key).decrypt(metadata.encryption_param, payload, None)


def decompressed(metadata: Any, payload: bytes) -> bytes:
    size = metadata.uncompressed_size
    match metadata.compression:
        case proto.LZ4:
            return bytes(lz4.block.decompress(payload, uncompressed_size=size))
        case proto.ZLIB:
            return zlib.decompressobj().decompress(payload)  # the Java client does not end its streams
        case proto.ZSTD:
            return zstandard.ZstdDecompressor().decompress(payload, max_output_size=size)
        case proto.SNAPPY:
            return bytes(cramjam.snappy.decompress_raw(payload))
    return payload


def members(payload: bytes, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        size = int.from_bytes(payload[:4], "big")
        single = proto.SingleMessageMetadata.FromString(payload[4 : 4 + size])
        end = 4 + size + single.payload_size
        found.append([fields(single, "SingleMessageMetadata"), payload[4 + size : end]])
        payload = payload[end:]
    assert not payload
    return found


class Matching:
    """A matching of our values with theirs: one for one, for each kind of thing."""

    def __init__(self) -> None:
        self._ours: dict[tuple[Any, ...], Any] = {}
        self._theirs: dict[tuple[Any, ...], Any] = {}

    def copy(self) -> "Matching":
        other = Matching()
        other._ours = self._ours.copy()
        other._theirs = self._theirs.copy()
        return other

    def same(self, theirs: Chosen, ours: Chosen, connection: int) -> bool:
        if theirs.kind == "free":
            return True
        scope = connection if theirs.kind == "request" else -1
        here = self._ours.setdefault((theirs.kind, scope, theirs.value), ours.value)
        back = self._theirs.setdefault((ours.kind, scope, ours.value), theirs.value)
        return bool(here == ours.value and back == theirs.value)

    def differences(self, theirs: Any, ours: Any, connection: int, where: str = "") -> list[str]:
        """Paths of what differs: `field`, `field.inner`, and `+field` or `-field` for one that only ours or
        only theirs has."""
        if isinstance(theirs, Chosen) and isinstance(ours, Chosen):
            return [] if self.same(theirs, ours, connection) else [where]
        if isinstance(theirs, dict) and isinstance(ours, dict):
            found = []
            for name in theirs.keys() | ours.keys():
                path = f"{where}.{name}" if where else name
                if name not in ours:
                    found.append(f"-{path}")
                elif name not in theirs:
                    found.append(f"+{path}")
                else:
                    found += self.differences(theirs[name], ours[name], connection, path)
            return sorted(found)
        if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
            found = []
            for left, right in zip(theirs, ours, strict=True):
                found += self.differences(left, right, connection, where)
            return sorted(set(found))
        return [] if theirs == ours else [where]
