"""The change of a hostile broker: one bit of one part, under a right checksum."""

from random import Random

import pytest

from pulsar_sansio.encryption import EntryCipher
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import MessageMetadata, pack_broker_entry_metadata, unpack_payload
from pulsar_sim.engine.randomness import Stream
from pulsar_sim.engine.security.key_pairs import public_pem
from pulsar_sim.faults.ciphertext import PARTS, changed, is_encrypted
from tests.client.broker_script import entry_bytes

STAMP = pack_broker_entry_metadata(1, 2)


def stored() -> bytes:
    key = EncryptionKeyInfo(Secret(public_pem("key-0", 0)))
    metadata = MessageMetadata("p", 0, 0)
    payload = EntryCipher.new([("key-0", key)], Random(1).randbytes).encrypt(metadata, b"secret")
    keys, nonce = metadata.encryption_keys, metadata.encryption_param
    return entry_bytes(payload, encryption_keys=keys, encryption_param=nonce)


@pytest.mark.parametrize("front", [b"", STAMP])
@pytest.mark.parametrize("part", PARTS)
def test_one_bit_of_one_part_is_another_one(part: str, front: bytes) -> None:
    before = front + stored()
    after = changed(before, part, Stream(1))
    one, other = unpack_payload(before), unpack_payload(after)
    assert other.checksum_ok is not False
    parts = {
        "payload": (one.payload, other.payload),
        "nonce": (one.metadata.encryption_param, other.metadata.encryption_param),
        "wrapped key": (one.metadata.encryption_keys[0].value, other.metadata.encryption_keys[0].value),
    }
    assert [name for name, (was, is_now) in parts.items() if was != is_now] == [part]
    assert len(before) == len(after)


def test_only_encrypted_entries_are_changed() -> None:
    assert is_encrypted(stored())
    assert not is_encrypted(entry_bytes(b"clear"))
