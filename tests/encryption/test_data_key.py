"""`DataKey`: AES-GCM of payloads, and what a key refuses."""

import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.encryption import DATA_KEY_SIZE, NONCE_SIZE, TAG_SIZE, DataKey
from pulsar_sansio.model.errors import CryptoError

VECTORS = json.loads((Path(__file__).resolve().parent.parent / "data" / "vectors.json").read_text())["crypto"]

KEY = DataKey(bytes(range(32)))


def test_a_payload_is_the_ciphertext_with_the_tag_behind_it() -> None:
    vector = VECTORS[0]
    key, nonce = DataKey(bytes.fromhex(vector["data_key"])), bytes.fromhex(vector["iv"])
    assert key.encrypt(nonce, vector["plaintext"].encode()).hex() == vector["payload"]
    assert key.decrypt(nonce, bytes.fromhex(vector["payload"])) == vector["plaintext"].encode()


@given(payload=st.binary(), nonce=st.binary(min_size=NONCE_SIZE, max_size=NONCE_SIZE))
def test_what_a_key_encrypts_it_decrypts(payload: bytes, nonce: bytes) -> None:
    encrypted = KEY.encrypt(nonce, payload)
    assert len(encrypted) == len(payload) + TAG_SIZE
    assert KEY.decrypt(nonce, encrypted) == payload


@given(
    data=st.data(), payload=st.binary(min_size=1), nonce=st.binary(min_size=NONCE_SIZE, max_size=NONCE_SIZE)
)
def test_one_changed_bit_is_noticed(data: st.DataObject, payload: bytes, nonce: bytes) -> None:
    encrypted = bytearray(KEY.encrypt(nonce, payload))
    bit = data.draw(st.integers(0, 8 * len(encrypted) - 1))
    encrypted[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CryptoError, match="changed, or encrypted with another data key"):
        KEY.decrypt(nonce, bytes(encrypted))


@pytest.mark.parametrize(
    ("nonce", "payload", "words"),
    [
        (bytes(NONCE_SIZE), b"", "changed"),
        (bytes(NONCE_SIZE), bytes(TAG_SIZE - 1), "changed"),
        (b"", bytes(40), "0 bytes, and not 12"),
        (bytes(8), bytes(40), "8 bytes, and not 12"),
        (bytes(200), bytes(40), "200 bytes, and not 12"),
    ],
)
def test_impossible_payloads_and_nonces_are_refused(nonce: bytes, payload: bytes, words: str) -> None:
    with pytest.raises(CryptoError, match=words):
        KEY.decrypt(nonce, payload)


@pytest.mark.parametrize("size", [0, 1, 15, 31, 33, 4096])
def test_a_key_of_another_size_is_none(size: int) -> None:
    with pytest.raises(CryptoError, match=f"and not {size}"):
        DataKey(bytes(size))


def test_a_new_key_takes_the_randomness_that_it_is_given() -> None:
    asked = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    assert DataKey.new(entropy).reveal() == bytes(DATA_KEY_SIZE)
    assert asked == [DATA_KEY_SIZE]


def test_a_key_is_in_no_repr_and_no_pickle() -> None:
    key = DataKey(os.urandom(32))
    assert repr(key) == "DataKey(***)"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(key)
