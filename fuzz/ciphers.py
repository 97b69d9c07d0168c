"""Encryption keys and encrypted entries of strangers: wrapped data keys, PEM files, and changed entries.

The key pairs of this module are the same in every process, and so are the data keys that were wrapped for
them. What is decrypted was encrypted: one changed bit makes an entry undecryptable.
"""

import os
from functools import cache
from itertools import count
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fuzz.answers import answer
from fuzz.draws import Draws
from pulsar_sansio import (
    Client,
    ClientConfig,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerSpec,
    CryptoError,
    EncryptionKeyInfo,
    Message,
    Secret,
    client_outputs,
)
from pulsar_sansio.encryption import DataKey, EntryCipher, unwrap_data_key, wrap_data_key, wrapped_keys
from pulsar_sansio.model.encryption import MAX_RECIPIENTS
from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import (
    EncryptionKey,
    FrameDecoder,
    MessageMetadata,
    MetadataDecoder,
    compress,
    encode_batch_payloads,
    encode_message,
    encode_message_metadata,
    max_frame_size,
    pack_payload,
)

DATA_KEY = DataKey(bytes(range(32)))

_P = int(
    "ff1f87285da7db07ab15f0b06fbdfddb99d88487bb29dcdcd07c2598458397c0"
    "431177cc8e3eda83dcce64bbf907abfaa44514bff10e310d6e782f1b563eee5f",
    16,
)
_Q = int(
    "ca53f9f6f1fd406318a38395eef83169458c227fb118c8158488fd10dba1bf6e"
    "199457e19c3c6160c6604037cebb95e59ce2716754f7a3793f277caacb0db08f",
    16,
)
_EXPONENT = 65537
_SCALAR = 0x1234567
"""The secret number of the key pairs on elliptic curves."""

WRAPPED = {
    "rsa": bytes.fromhex(
        "b3707c6a0df2ad090e900cc2d5bc5ba78f5e25105979fdf12729eaa72b8d25ca4858912c368ca2c3c004937afe9af214"
        "1588294354b11c1dde61897c4aca4abdef9c68b60c1bc733d932621ce806d34f3e2d8d9c50ed0746b8ffd70a3b9ec673"
        "10e7495c1f51b0c4881ba0c469693afb9a01fd9be26c62f662128a880e5459f6"
    ),
    "p256": bytes.fromhex(
        "049cebc571f47a37e30bed22748d03a69c19fad15d988e8eec2d3c25793dc43c6935f739d56b711e42b04c58715e6cc6"
        "00b8f6a9a050f8b7010630ab759c6a86c51f5394ccdbcad59110bb0d2a0fbe47c760412476ff25ea4e5f09b958ce74a7"
        "212833b438dac248935bc3ab72b50afef10ffbd94b"
    ),
    "p521": bytes.fromhex(
        "04012fbde037317dc411be1ad2852fa65f51f9bcc2884544dbef8a787bd5cac482f07060fbbfe2a4e4f133744fef3602"
        "92ac452235f9a09f6bb974808495347c2055de00dda0cbe50495eda4e1aaf08dc7251bce43c7147f3b88afa9ad74f0cc"
        "25838849e33ee88c465f43f6f96f1a0dd193427b6be5fb6b24af95f233473727551404ef79d46b7cc23aab37ec9923b3"
        "dcc3624f0ad6da96a0a63bf4140c8019a92a0f41f4bad83710797fe7d15649865a1ac8ea0736c49c13"
    ),
}
"""`DATA_KEY`, wrapped once for each key pair."""

KINDS = tuple(WRAPPED)

PRIVATE, HIDDEN = b"PRIVATE KEY", b"PRIVATE+KEY"
"""Words of a PEM file, and what stands for them in the corpus."""

LOST = "lost"
"""The name of a key that no application has."""

ENTRIES = 12
"""Entries of one topic."""

LIMIT = 64 * 1024
"""Bytes of one message."""

URL = "pulsar://home"

_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def private_key(kind: str) -> _Key:
    if kind == "rsa":
        d = rsa.rsa_recover_private_exponent(_EXPONENT, _P, _Q)
        public = rsa.RSAPublicNumbers(_EXPONENT, _P * _Q)
        parts = rsa.rsa_crt_dmp1(d, _P), rsa.rsa_crt_dmq1(d, _Q), rsa.rsa_crt_iqmp(_P, _Q)
        return rsa.RSAPrivateNumbers(_P, _Q, d, *parts, public).private_key()
    return ec.derive_private_key(_SCALAR, ec.SECP256R1() if kind == "p256" else ec.SECP521R1())


@cache
def private_pem(kind: str, form: PrivateFormat = PrivateFormat.PKCS8) -> bytes:
    return private_key(kind).private_bytes(Encoding.PEM, form, NoEncryption())


@cache
def public_pem(kind: str) -> bytes:
    return private_key(kind).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


# --- keys ----------------------------------------------------------------------------------------------


def encryption_keys(data: bytes) -> None:
    """A byte that names a key pair, and a data key wrapped for it; or another byte, and the header of an
    entry with its keys."""
    if not data:
        return
    if data[0] < len(KINDS):
        kind, wrapped = KINDS[data[0]], data[1:]
        try:
            found = unwrap_data_key(private_pem(kind), wrapped)
        except CryptoError:
            assert wrapped != WRAPPED[kind]
            return
        assert (found.reveal(), wrapped) == (DATA_KEY.reveal(), WRAPPED[kind])
        return
    try:
        metadata = MetadataDecoder().decode(data[1:])
        keys = wrapped_keys(metadata.encryption_keys)
    except (FrameError, CryptoError):
        return
    assert len(keys) <= MAX_RECIPIENTS
    for key in keys[:2]:
        for kind in KINDS:
            try:
                unwrap_data_key(private_pem(kind), key.value)
            except CryptoError:
                continue
            assert key.value == WRAPPED[kind]


def key_files(data: bytes) -> None:
    """A byte that says which key is wanted, and its file. A file that unwraps gives the data key. The corpus
    has `HIDDEN` for what a search for
    secrets would find."""
    if not data:
        return
    pem = data[1:].replace(HIDDEN, PRIVATE)
    kind = (None, *KINDS)[data[0] % (1 + len(KINDS))]
    try:
        if kind is None:
            wrap_data_key(pem, DATA_KEY, os.urandom)
        else:
            assert unwrap_data_key(pem, WRAPPED[kind]).reveal() == DATA_KEY.reveal()
    except CryptoError as error:
        text = str(error)
        if len(text) > 200 or "PRIVATE" in text:
            raise AssertionError("an error that may show the key") from error


# --- entries -------------------------------------------------------------------------------------------


def encrypted(data: bytes) -> None:
    """A topic of encrypted entries, some of them changed by a stranger, and a consumer with a key reader.

    Each message that is delivered as decrypted was sent, in this order, and none is delivered twice. Where
    the key reader has every key but one, all unchanged messages are delivered.
    """
    topic = _Topic(Draws.of_bytes(data))
    topic.send()
    consumer = _Consumer(topic.draws)
    for entry, stored in enumerate(topic.stored):
        consumer.feed(b"".join(encode_message(0, 1, entry, stored=stored)))
    delivered = [message.data for message in consumer.received if not _is_ciphertext(message)]
    sent = iter(topic.sent)
    assert all(payload in sent for payload in delivered), "not sent, not in order, or twice"
    if consumer.has_keys:
        assert set(topic.readable) <= set(delivered), "not delivered"
    consumer.end()


def _is_ciphertext(message: Message[Any]) -> bool:
    context = message.encryption_context
    return context is not None and context.decryption_failed


class _Topic:
    """Entries of one producer. `sent`: the payloads in their order. `readable`: those of unchanged entries
    that were encrypted for a key that the consumer can have."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.stored: list[bytes] = []
        self.sent: list[bytes] = []
        self.readable: list[bytes] = []
        self._nonces = count(1)

    def send(self) -> None:
        draws = self.draws
        for number in range(1 + draws.below(ENTRIES)):
            payloads = [
                b"%d-%d" % (number, part) + bytes(draws.below(40)) for part in range(1 + draws.below(3))
            ]
            recipients = [draws.choice((*KINDS, LOST)) for _ in range(1 + draws.below(3))]
            match draws.below(4):
                case 0:
                    entries = [self._entry(number, payloads[0], recipients)]
                    payloads = payloads[:1]
                case 1:
                    plain = encode_batch_payloads(payloads, number)
                    entries = [self._entry(number, plain, recipients, num_messages_in_batch=len(payloads))]
                case 2:
                    plain = compress(CompressionType.ZLIB, payloads[0])
                    fields = {"compression": CompressionType.ZLIB, "uncompressed_size": len(payloads[0])}
                    entries = [self._entry(number, plain, recipients, **fields)]
                    payloads = payloads[:1]
                case _:
                    entries, payloads = self._chunks(number, b"".join(payloads), recipients)
            changed = draws.chance(50)
            if changed:
                place = draws.below(len(entries))
                entries[place] = self._changed(*entries[place])
            self.sent += payloads
            if not changed and set(recipients) != {LOST}:
                self.readable += payloads
            self.stored += [
                b"".join(pack_payload(encode_message_metadata(metadata), payload))
                for metadata, payload in entries
            ]

    def _entry(
        self, number: int, payload: bytes, recipients: list[str], **fields: Any
    ) -> tuple[MessageMetadata, bytes]:
        keys = [EncryptionKey(name, WRAPPED.get(name, b"w" * 40), ()) for name in recipients]
        metadata = MessageMetadata("p", number, 1_700_000_000_000, **fields)
        cipher = EntryCipher(DATA_KEY, keys, lambda size: next(self._nonces).to_bytes(size, "big"))
        return metadata, cipher.encrypt(metadata, payload)

    def _chunks(
        self, number: int, whole: bytes, recipients: list[str]
    ) -> tuple[list[tuple[MessageMetadata, bytes]], list[bytes]]:
        middle = len(whole) // 2
        entries = [
            self._entry(
                number,
                part,
                recipients,
                uuid=f"p-{number}",
                num_chunks_from_msg=2,
                total_chunk_msg_size=len(whole),
                chunk_id=chunk_id,
            )
            for chunk_id, part in enumerate((whole[:middle], whole[middle:]))
        ]
        return entries, [whole]

    def _changed(self, metadata: MessageMetadata, payload: bytes) -> tuple[MessageMetadata, bytes]:
        """Change what encryption protects, or what it needs. Other fields of the header are not protected."""
        draws = self.draws
        keys = list(metadata.encryption_keys)
        place = draws.below(len(keys))
        match draws.below(6):
            case 0 | 1:
                payload = _flipped(payload, draws)
            case 2:
                payload = payload[: draws.below(len(payload))]
            case 3:
                metadata.encryption_param = _flipped(metadata.encryption_param or b"", draws)
            case 4:
                keys[place] = keys[place]._replace(value=_flipped(keys[place].value, draws))
            case _:
                keys[place] = keys[place]._replace(key=draws.choice((*KINDS, LOST, "", "\0")))
        metadata.encryption_keys = keys
        return metadata, payload


def _flipped(data: bytes, draws: Draws) -> bytes:
    """Return the bytes with one bit changed."""
    place = draws.below(len(data))
    return data[:place] + bytes([data[place] ^ 1 << draws.below(8)]) + data[place + 1 :]


class _Consumer:
    """A client with one consumer at an honest broker. Its application answers each question for a key at
    once, and takes each message."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.has_keys = draws.chance(60)
        action = draws.choice(tuple(ConsumerCryptoFailureAction))
        self.received: list[Message[Any]] = []
        self._client = Client(0, ClientConfig(URL, max_message_size=LIMIT), seed=1)
        self._link = 0
        spec = ConsumerSpec("t", "s", crypto_key_reader="reader", crypto_failure_action=action)
        self._consumer = self._client.subscribe(0, spec)
        self._pump()

    def feed(self, frame: bytes) -> None:
        self._client.receive_data(0, self._link, frame)
        self._pump()

    def end(self) -> None:
        self._client.disconnected(0, self._link, "the end")
        self._pump()

    def _pump(self) -> None:
        while (output := self._client.next_output()) is not None:
            match output:
                case client_outputs.Connect(link):
                    self._link = link
                    self._client.connected(0, link)
                case client_outputs.Transmit(link) if link == self._link:
                    self._answer(b"".join(self._client.data_to_send(link)))
                case client_outputs.EncryptionKeyWanted(request, "reader", name):
                    self._answer_question(request, name)
                case client_outputs.Disconnect():
                    raise AssertionError("the link of an honest broker was killed")
            while (message := self._client.receive(0, self._consumer)) is not None:
                self.received.append(message)

    def _answer(self, said: bytes) -> None:
        position, decoder = 0, FrameDecoder()
        while (decoded := decoder.decode(said, position, max_frame_size(LIMIT))) is not None:
            kind, command, position = decoded
            if reply := answer(kind, command, URL, LIMIT):
                self._client.receive_data(0, self._link, reply)

    def _answer_question(self, request: int, name: str) -> None:
        draws = self._draws
        key = private_pem(name) if name in KINDS else None
        if not self.has_keys:
            key = draws.choice(
                (key, None, private_pem(draws.choice(KINDS)), public_pem("rsa"), b"", b"-----BEGIN")
            )
        if key is None:
            self._client.refuse_encryption_key(0, request, CryptoError("no such key"))
        else:
            self._client.provide_encryption_key(0, request, EncryptionKeyInfo(Secret(key)))
