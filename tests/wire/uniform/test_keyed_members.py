"""Members of a batch that have keys and nothing else: runs against protobuf, member by member."""

from pulsar_sansio.wire import SingleMessageMetadata, encode_batch_payloads, encode_single, split_batch
from pulsar_sansio.wire.uniform.keyed_members import keys_of, take_keyed
from pulsar_sansio.wire.varint import encode_varint
from tests.wire.messages.test_batch import check_batch, keyed


def test_keys_with_every_character() -> None:
    keys = ["a\0b", "", "\0", "c", "\U0001f600", "a\0"]
    assert split_batch(keyed(2, *keys), len(keys)).keys() == keys


def test_keys_of_some_members() -> None:
    plain = encode_batch_payloads([b"plain"] * 40, 0)
    one = encode_single(SingleMessageMetadata(partition_key="of bytes", partition_key_b64_encoded=True), b"1")
    batch = split_batch(plain + keyed(3, "a", "b") + one + plain + keyed(3, "c"), 84)
    assert batch.keys() == [None] * 40 + ["a", "b", "of bytes"] + [None] * 40 + ["c"]
    assert split_batch(plain, 40).keys() == [None] * 40


def test_a_key_that_is_no_text() -> None:
    batch = split_batch(keyed(1, "k", "\udcff"), 2)
    assert batch.keys() == ["k", "\udcff"]
    assert batch.single(1).partition_key == "\udcff"


def keyed_member(key: bytes, sequence_id: int, payload: bytes) -> bytes:
    header = b"\x12" + bytes([len(key)]) + key + b"\x18" + encode_varint(len(payload))
    header += b"\x40" + encode_varint(sequence_id)
    return len(header).to_bytes(4, "big") + header + payload


def test_batches_of_one_key() -> None:
    """A producer with a batch for each key: sequence ids that are not neighbours."""
    for first, step in ((5, 1), (5, 100), (16_000, 100), (1 << 27, 1 << 22)):
        members = [keyed_member(b"key", first + step * n, b"%04d" % n) for n in range(45)]
        check_batch(b"".join(members), 45)
        check_batch(b"".join([*members, keyed_member(b"kex", 20_000, b"0045")]), 46)
        check_batch(b"".join([*members, keyed_member(b"key", 20_000, b"045")]), 46)


def test_a_payload_of_a_batch_of_one_key_that_looks_like_a_header() -> None:
    like = keyed_member(b"k", 300, b"p" * 40)[:12]
    for payload in (like.ljust(40, b"p"), (like * 3).ljust(40, b"p")):
        members = [keyed_member(b"k", 300, b"p" * 40), keyed_member(b"k", 301, payload)]
        check_batch(b"".join(members), 2)
        check_batch(b"".join(members[::-1]), 2)
        check_batch(members[1] * 40, 40)


def test_runs_of_keyed_members_end_where_anything_differs() -> None:
    one = keyed_member(b"key", 300, b"payload")
    for count in (1, 3, 33):
        for position in range(len(one)):
            for flip in (1, 0x80):
                other = bytearray(one)
                other[position] ^= flip
                check_batch(one * count + bytes(other) + one, count + 2)


def test_keyed_members_that_look_simpler_than_they_are() -> None:
    simple = keyed(3, "a")
    for header in (
        b"\x12\x01a\x18\x03\x40\x07\x12\x01b",  # another key: the last counts
        b"\x12\x01a\x12\x01b\x18\x03\x40\x07",
        b"\x12\x01a\x18\x83\x00\x40\x07",  # a size in more bytes than it needs
        b"\x12\x01a\x18\x03\x40\x87\x80\x00",
        b"\x12\x81\x00a\x18\x03\x40\x07",
        b"\x12\x01a\x18\x03",
        b"\x12\x01a\x18\x03\x48\x01",  # a null value
        b"\x12\x03\x18\x03\x40\x18\x03",
        b"\x12\x05\x18\x03\x40\x18\x03",  # the key goes beyond the header
        b"\x12\x01a\x40\x07",
        b"\x12\x01a\x18\x03\x30\x81\x00\x40\x07",
        b"\x12\x01a\x18\x03\x30\x01\x30\x00\x40\x07",
        b"\x12\x01a\x18\x03\x30\x02\x40\x07",
        b"\x12\x01a\x18\x03\x30\x00",
    ):
        check_batch(simple + len(header).to_bytes(4, "big") + header + b"abc" + simple, 3)


def test_a_run_is_taken_at_once_up_to_the_limit() -> None:
    data = b"".join(keyed_member(b"k%d" % (n % 10), 300 + n, b"p%03d" % n) for n in range(100))
    taken = take_keyed(data, 0, 60)
    assert taken is not None
    members, payloads, position = taken
    assert payloads == [b"p%03d" % n for n in range(60)]
    assert keys_of(data, members) == [f"k{n % 10}" for n in range(60)]
    assert position == members[-1] + len(data) // 100


def test_members_of_other_forms_are_left_to_the_caller() -> None:
    keyed_one = keyed_member(b"k", 300, b"x")
    plain = encode_batch_payloads([b"plain"], 0)
    assert take_keyed(plain + keyed_one, 0, 2) is None
    taken = take_keyed(keyed_one + plain, 0, 2)
    assert taken is not None
    assert (taken[0], taken[1], taken[2]) == ([0], [b"x"], len(keyed_one))
    assert take_keyed(keyed_one[:-1], 0, 1) is None, "it is incomplete"
