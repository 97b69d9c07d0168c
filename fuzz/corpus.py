"""The corpus: for each target a folder of inputs worth keeping, replayed by the tests.

Some inputs were made from the mutations of this package. A fuzzer found the others: they reached code that no
other input reached, or showed a bug once. A file's name is a digest of its content, so that the same input is
there once.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from fuzz.ciphers import HIDDEN, KINDS, PRIVATE, WRAPPED, private_key, private_pem, public_pem
from fuzz.credentials import sign
from fuzz.draws import Draws
from fuzz.mischief import BROKER_SAYS, CLIENT_SAYS
from fuzz.mutations import FRAME_MUTATIONS, FieldCase, cases_of, frame, legal_command, mutate
from fuzz.payloads import (
    CODECS,
    LIES,
    METADATA,
    RARE,
    SINGLE,
    encode_frame,
    honest,
    run_of_messages,
)
from fuzz.targets import LIMIT, MACHINES, TARGETS
from fuzz.trees import Descriptor, Tree, descriptor_of, encode, make_tree, wrap
from fuzz.values import AVRO, JSON, NULLS, OTHER_ORDER, PAIRS, Checked, Color, Line, Node, Order, Packed
from pulsar_sansio.schemas import KeyValue, KeyValueEncoding
from pulsar_sansio.schemas.shapes.shape import avro_text
from pulsar_sansio.wire import EncryptionKey, MessageMetadata, compress, encode_message_metadata, proto

FOLDER = Path(__file__).parent / "corpus"

LARGEST = 4096
"""Bytes of one input; the whole corpus is to stay below half a megabyte."""

HOT = (6, 7, 9, 10, 11)


def inputs(target: str) -> list[Path]:
    """The inputs that are kept for a target."""
    return sorted(path for path in (FOLDER / target).glob("*") if path.is_file())


def keep(target: str, data: bytes) -> bool:
    """Keep an input if it is new and small enough. Returns True if so."""
    if len(data) > LARGEST:
        return False
    path = FOLDER / target / blake2b(data, digest_size=8).hexdigest()
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def make() -> str:
    """Inputs made from the mutations, a few of each kind; says how much the corpus holds then."""
    for target in TARGETS:
        draws = Draws.of_seed(1)
        for data in _SEEDS[target](draws):
            keep(target, data)
    paths = [path for target in TARGETS for path in inputs(target)]
    size = sum(path.stat().st_size for path in paths)
    return f"{len(paths)} inputs, {size} bytes, for {len(TARGETS)} targets"


# --- seeds ---------------------------------------------------------------------------------------------


def _mutants(draws: Draws, descriptor: Descriptor, count: int) -> Iterator[Tree]:
    """Legal messages and mutated ones, the mutations spread over all there are."""
    every: tuple[FieldCase, ...] = cases_of(descriptor)
    for number in range(count):
        tree = make_tree(descriptor, draws, {"payload_size": (3, 3, 0)})
        if number % 4:
            path, mutation = every[number * len(every) // count]
            mutate(tree, path, mutation, draws, {})
        yield tree


def _commands(draws: Draws) -> Iterator[bytes]:
    for number in sorted({*BROKER_SAYS, *CLIENT_SAYS}):
        yield encode(legal_command(number, draws, {}))
    for number in HOT:
        for tree in _mutants(draws, descriptor_of(number), 24):
            yield encode(wrap(number, tree))


def _frames(draws: Draws) -> Iterator[bytes]:
    whole = [frame(encode(legal_command(number, draws, {}))) for number in HOT]
    yield b"\x07" + b"".join(whole)
    for mutation in FRAME_MUTATIONS.values():
        for number in range(2):
            yield draws.blob(1) + whole[number] + mutation(whole[2 + number], draws) + whole[4]


def _runs(draws: Draws) -> Iterator[bytes]:
    """Uniform MESSAGE frames with one among them that is a little different."""
    for lie in ("honest", *LIES):
        if lie in RARE:
            continue
        for first in (0, 126, 16382):
            frames = run_of_messages(draws, 0, first, 6)
            odd = honest(draws) if lie == "honest" else LIES[lie](draws, 500)
            frames.insert(draws.below(5), encode_frame(0, first + 3, odd))
            yield b"".join(frames)
    for mutation in FRAME_MUTATIONS.values():
        frames = run_of_messages(draws, 3, 300, 4)
        yield frames[0] + frames[1] + mutation(frames[2], draws) + frames[3]


def _headers(descriptor: Descriptor, count: int) -> Callable[[Draws], Iterator[bytes]]:
    return lambda draws: (encode(tree) for tree in _mutants(draws, descriptor, count))


def _payloads(draws: Draws) -> Iterator[bytes]:
    for _ in range(8):
        yield honest(draws)
    for name, lie in LIES.items():
        if name not in ("bomb", "tiny messages"):
            for _ in range(5):
                yield lie(draws, 1000)


def _batches(draws: Draws) -> Iterator[bytes]:
    for count in (1, 2, 3, 40):
        for single in _mutants(draws, SINGLE, 12):
            data = encode(single)
            member = len(data).to_bytes(4, "big") + data + b"abc"
            if len(member) * count < LARGEST:
                yield count.to_bytes(2, "little") + member * count
                yield (count + 1).to_bytes(2, "little") + member * count
    yield (300).to_bytes(2, "little") + b"".join(
        b"\0\0\0\5\x18\1\x40" + bytes([0x80 | index & 0x7F, index >> 7]) + b"x" for index in range(300)
    )


def _compressed(draws: Draws) -> Iterator[bytes]:
    for codec in (0, *CODECS, 5):
        for size in (0, 1, 10, 1000, LIMIT, LIMIT + 1, 1 << 22):
            data = bytes(min(size, 1 << 16)) if size % 2 else b"ab" * (min(size, 1 << 16) // 2)
            body = compress(codec, data) if codec <= 4 else data[:50]
            said = bytes([codec]) + size.to_bytes(3, "little")
            for content in (body, body[:-1], body + b"\0", body[:3]):
                if len(content) < 600:
                    yield said + content


def _sets(draws: Draws) -> Iterator[bytes]:
    for size in (0, 1, 7, 8, 9, 16, 17, 64):
        yield bytes(size)
        yield b"\xff" * size
        yield draws.blob(size)
        yield draws.blob(size) + bytes(8)


_NAMES = (
    "t",
    "tenant/namespace/topic",
    "persistent://public/default/t-partition-7",
    "non-persistent://a/b/c",
    "persistent://public/default/t-partition-" + "9" * 30,
    "persistent://a/b/c-partition-0\n",
    "persistent://a/b/",
    "persistent://a/b/c/d",
    "kafka://a/b/c",
    "a/b",
    "",
    "  ",
    "\x00",
    "persistent://ä/b/ü-partition-01",
    "pulsar://host:6650",
    "pulsar+ssl://h1,h2:6651,[::1]:1",
    "pulsar://[fe80::1%eth0]:6650",
    "PULSAR://UPPER",
    "pulsar://host:0",
    "pulsar://host:65536",
    "pulsar://host:",
    "pulsar://user:secret@host",
    "pulsar://host/path",
    "pulsar://host?x",
    "pulsar://a b",
    "pulsar://,",
    "pulsar://[::1",
    "pulsar://٣:٣",
    "pulsar://xn--nxasmq6b:1",
    "http://host",
    "https://host:8443/path?a=b#c",
    "//other/path",
    "../../up",
    "/a b",
)


_BODIES = (
    b'{"partitions": 3, "deleted": false}',
    b'{"partitions": 1000000}',
    b'{"partitions": -1}',
    b'["persistent://public/default/t-partition-0", "x", "kafka://a/b/c"]',
    b'{"reason": "no"}',
    b"[" * 200,
    b"",
    b"\xff\xfe",
)


def _http_answers(draws: Draws) -> Iterator[bytes]:
    for body in _BODIES:
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        for rest in (length + body, b"\r\n" + body, chunks):
            for kind in (b"\0", b"\1"):
                yield draws.blob(1) + kind + b"HTTP/1.1 200 OK\r\n" + rest
    for status in (204, 307, 401, 404, 429, 503, 999):
        for location in (b"/x", b"http://other/", b"https://web/", b"http://[", b"\xff"):
            head = b"HTTP/1.1 %d x\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, location)
            yield draws.blob(1) + b"\0" + head
    yield b"\7\0HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 200 OK\r\n\r\n" + _BODIES[0]
    yield b"\7\0SSH-2.0\r\n\r\n"
    yield b"\7\0HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n"


def _texts(draws: Draws) -> Iterator[bytes]:
    for name in _NAMES:
        yield name.encode()
    yield b"persistent://a/b/\xff\xfe"


_CLAIMS = (
    b'{"sub": "ada"}',
    b'{"sub": ["ada", "bob"]}',
    b'{"sub": ""}',
    b'{"sub": "ada", "exp": 2000000000.5, "nbf": 5}',
    b'{"sub": "ada", "exp": 1e400}',
    b'{"sub": "ada", "exp": 1%b}' % (b"0" * 400),
    b'{"sub": "ada", "exp": NaN}',
    b'{"sub": "\\ud800"}',
    b'{"sub": {"a": 1}}',
    b"[]",
    b"[" * 300,
    b"",
    b"\xff",
)


def _tokens(draws: Draws) -> Iterator[bytes]:
    """Claims to be signed; tokens as they are signed, and with parts exchanged."""
    for claims in _CLAIMS:
        yield b"s" + claims
        for kind in (b"\0", b"\1"):
            yield kind + sign(claims)
    header, claims, signature = sign(_CLAIMS[0]).split(b".")
    for parts in (
        (header, claims, b""),
        (b"eyJhbGciOiJub25lIn0", claims, b""),
        (b"eyJhbGciOiJFUzI1NiJ9", claims, signature),
        (header, b"eyJzdWIiOiJyb290In0", signature),
        (header, claims, signature, b"x"),
        (header, claims, signature + b"="),
        (header, claims),
    ):
        yield b"\0" + b".".join(parts)
        yield b"\1" + b".".join(parts)


_ORDER = Order("o", 7, 1.5, Color.BLUE, Decimal("1.25"), [Line("a", 2)], {"w": b"\0\xff"}, Line("b"))
_OTHER = {
    "rate": 1.5,
    "count": 7,
    "id": "o",
    "color": "GREEN",
    "price": b"\1",
    "more": None,
    "lines": [{"item": "a"}],
    "weights": {"w": b"x"},
}
_NULLS = {"nothing": None, "items": [None, 1, None], "map": {"a": None, "b": None}}
_VALUES = (_ORDER, Node(1, Node(2)), Checked(id=1, tags=["a"]), Packed(1, [b"a"]), _OTHER, _NULLS)

_TYPES = (
    "int",
    '"string"',
    '["null","string"]',
    '{"type":"array","items":"null"}',
    '{"type":"map","values":["null","long"]}',
    '{"type":"enum","name":"E","symbols":["A","B"],"default":"B"}',
    '{"type":"fixed","name":"F","size":0}',
    '{"type":"bytes","logicalType":"decimal","precision":4,"scale":9}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":["null","R"]}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"R"}]}',
    "[" * 250,
    '{"type":' * 250,
    "{",
)


def _definitions(draws: Draws) -> Iterator[bytes]:
    texts = [*_TYPES, avro_text(OTHER_ORDER), AVRO[0].info.data.decode(), avro_text(NULLS)]
    for number, text in enumerate(texts):
        yield text.encode()
        yield text.encode() + b"\0" + texts[number - 1].encode()
    yield texts[-2].encode() + b"\0" + texts[-3].encode()


def _avro(draws: Draws) -> Iterator[bytes]:
    for number, (schema, value) in enumerate(zip(AVRO, _VALUES, strict=True)):
        payload = schema.encode(value)
        yield bytes([number + number * len(AVRO)]) + payload
        yield bytes([number + number * len(AVRO)]) + payload[: len(payload) // 2]
        yield b"\xff" + schema.info.data + b"\0" + payload
    yield bytes([4 * len(AVRO)]) + AVRO[4].encode(_OTHER)
    yield bytes([5 + 5 * len(AVRO)]) + b"\xfe\xff\xff\xff\x0f" * 3
    yield bytes([1 + len(AVRO)]) + b"\x02\x02" * 1500
    for text in _TYPES:
        yield b"\xff" + text.encode() + b"\0" + b"\x04\2\0\x80\x80\x80\x80\x80\x01"


def _json(draws: Draws) -> Iterator[bytes]:
    for number, (schema, value) in enumerate(zip(JSON, _VALUES, strict=True)):
        yield bytes([number]) + schema.encode(value)
        for text in (b"", b"null", b"[]", b"{}", b"NaN", b"1e999", b'"\\ud800"', b"[" * 2000, b"1" * 999):
            if number < 2 or len(text) < 10:
                yield bytes([number]) + text
            yield bytes([number]) + schema.encode(value)[:-1] + b',"id":' + text + b"}"
    yield b"\0" + JSON[0].encode(_ORDER).replace(b"1.5", b"1e999")
    yield b"\1" + b'{"value":1,"next":' * 200 + b"null" + b"}" * 200


def _pairs(draws: Draws) -> Iterator[bytes]:
    halves = (("k", 7), ("k", _ORDER), (_VALUES[1], _VALUES[2]))
    for number, schema in enumerate(PAIRS):
        pair = KeyValue(*halves[number % len(halves)])
        inline = schema.encoding is KeyValueEncoding.INLINE
        key = b"" if inline else (schema.encode_key(pair) or b"") + b"\0"
        yield bytes([number]) + key + schema.encode(pair)
        properties = json.dumps(dict(schema.info.properties)).encode()
        yield b"\xff" + properties + b"\0" + schema.info.data
        yield b"\xff" + properties.replace(b"AVRO", b"KEY_VALUE") + b"\0" + schema.info.data
        yield bytes([number]) + b"\xff\xff\xff\xff" * 2
        yield bytes([number]) + b"\x7f\xff\xff\xff"
    for text in (
        '{"key":"","value":""}',
        '{"key":null,"value":{"type":"int"}}',
        '{"key":"int","value":""}',
        "[]",
    ):
        yield b"\xfe" + text.encode()


def _encryption_keys(draws: Draws) -> Iterator[bytes]:
    for number, kind in enumerate(KINDS):
        wrapped = WRAPPED[kind]
        for data in (
            wrapped,
            wrapped[:-1],
            wrapped + b"\0",
            b"",
            bytes(len(wrapped)),
            b"\xff" * len(wrapped),
        ):
            yield bytes([number]) + data
        for place in (0, 1, 64, 65, len(wrapped) - 20, len(wrapped) - 1):
            yield bytes([number]) + wrapped[:place] + bytes([wrapped[place] ^ 1]) + wrapped[place + 1 :]
    every = [EncryptionKey(kind, WRAPPED[kind], (("version", "1"),)) for kind in KINDS]
    for keys in (every, every[:1], [EncryptionKey("", b"", ())] * 70, [EncryptionKey("k" * 4000, b"", ())]):
        metadata = MessageMetadata(
            "p", 1, 1_700_000_000_000, encryption_keys=keys, encryption_param=bytes(12)
        )
        yield b"\xff" + encode_message_metadata(metadata)


def _key_files(draws: Draws) -> Iterator[bytes]:
    pems = [
        private_pem(kind, form)
        for kind in KINDS
        for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL)
    ]
    pems += [public_pem(kind) for kind in KINDS]
    others = (
        ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)),
        x25519.X25519PrivateKey.from_private_bytes(bytes(32)),
        ec.derive_private_key(5, ec.SECP256K1()),
    )
    for other in others:
        pems.append(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        pems.append(other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    rsa = private_key("rsa").public_key()
    pems.append(rsa.public_bytes(Encoding.PEM, PublicFormat.PKCS1))
    locked = b"RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,%b\n\n" % (b"0" * 32)
    pems.append(
        private_pem("rsa", PrivateFormat.TraditionalOpenSSL).replace(b"RSA PRIVATE KEY-----\n", locked, 1)
    )
    for number, pem in enumerate(each.replace(PRIVATE, HIDDEN) for each in pems):
        for which in range(4):
            yield bytes([which]) + pem
        lines = pem.splitlines(keepends=True)
        yield bytes([number % 4]) + b"".join(lines[:-1])
        yield bytes([number % 4]) + b"".join([lines[0], lines[1][:20] + b"\n", *lines[2:]])
        yield bytes([number % 4]) + pem + pem
    yield b"\0"
    yield b"\1-----BEGIN PRIVATE+KEY-----\n-----END PRIVATE+KEY-----\n"


def _decisions(draws: Draws) -> Iterator[bytes]:
    for size in (0, 1, 20, 100, 400, 800, 800, 800, 1200, 1200, 1600, 1600):
        yield draws.blob(size)


_SEEDS: dict[str, Callable[[Draws], Iterator[bytes]]] = {
    "frame": _frames,
    "command": _commands,
    "uniform": _runs,
    "metadata": _headers(METADATA, 60),
    "single_metadata": _headers(SINGLE, 60),
    "payload": _payloads,
    "batch": _batches,
    "decompression": _compressed,
    "ack_sets": _sets,
    "message_id": _headers(proto.MessageIdData.DESCRIPTOR, 40),
    "names": _texts,
    "http_answer": _http_answers,
    "challenges": _decisions,
    "tokens": _tokens,
    "certificate_names": _decisions,
    "definitions": _definitions,
    "avro_data": _avro,
    "json_data": _json,
    "key_value": _pairs,
    "encryption_keys": _encryption_keys,
    "key_files": _key_files,
    "encrypted": _decisions,
    **dict.fromkeys(MACHINES, _decisions),
}
