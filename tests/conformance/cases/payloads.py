"""Breaking the rules of what stands behind SEND."""

from typing import Any

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import EncryptionKey, SingleMessageMetadata, compress, encode_single, proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import Script, batch, members, stored

LZ4 = 1


def _ready(s: Script, **fields: Any) -> None:
    s.connect()
    s.producer(**fields)


# --- headers ---------------------------------------------------------------------------------------


@breaks("GAP-02")
def a_wrong_checksum(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0)[:-1] + b"y")


@breaks("GAP-02")
def a_wrong_checksum_delivered(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, stored(0)[:-1] + b"y")


@breaks("CHECK-38")
def headers_that_end_early(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, checksum=False)[:6])


@breaks("CHECK-38")
def metadata_without_its_fields(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, b"\x00\x00\x00\x02\x10\x00x")


@breaks("CHECK-39")
def broker_entry_metadata_from_a_client(s: Script) -> None:
    _ready(s)
    s.send(0, b"\x0e\x02\x00\x00\x00\x02\x08\x01" + stored())


@breaks("CHECK-40", also=("CHECK-42",))
def a_highest_id_below_the_lowest(s: Script) -> None:
    _ready(s)
    s.send(5, batch(5, 2), num_messages=2, highest_sequence_id=4)


@breaks("CHECK-41")
def a_batch_counted_wrong(s: Script) -> None:
    _ready(s)
    s.send(0, batch(0, 3), num_messages=2, highest_sequence_id=2)


@breaks("CHECK-41")
def a_message_counted_twice(s: Script) -> None:
    _ready(s)
    s.send(0, num_messages=2)


@breaks("CHECK-42")
def two_sequence_ids(s: Script) -> None:
    _ready(s)
    s.send(0, stored(1))


@breaks("CHECK-43")
def anothers_name(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, name="q"))


@breaks("CHECK-44")
def a_marker_in_disguise(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, marker_type=1))


@breaks("PROD-35")
def a_message_too_large(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.connected(max_message_size=1000)
    s.producer()
    s.send(0, stored(0, b"x" * 1001))


@breaks("PROD-37")
def a_schema_version_from_nowhere(s: Script) -> None:
    s.connect()
    schema = {"name": "", "schema_data": b"", "type": proto.Schema.String}
    s.producer_success(s.open_producer(schema=schema), schema_version=bytes(8))
    s.send(0, stored(0, schema_version=bytes(8)))
    s.send(1, stored(1, schema_version=bytes(7) + b"\1"))


# --- batches ---------------------------------------------------------------------------------------


@breaks("BATCH-06")
def an_empty_batch(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, b"", num_messages_in_batch=0))


@breaks("CHECK-45")
def a_batch_of_fewer(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, members(0, 2), num_messages_in_batch=3), num_messages=3)


@breaks("CHECK-45")
def a_batch_of_more(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, members(0, 4), num_messages_in_batch=3), num_messages=3)


@breaks("CHECK-46")
def members_of_another_batch(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, members(7, 3), num_messages_in_batch=3), num_messages=3)


@breaks("CHECK-46")
def members_out_of_order(s: Script) -> None:
    _ready(s)
    singles = [encode_single(SingleMessageMetadata(sequence_id=number), b"x") for number in (0, 2, 1)]
    s.send(0, stored(0, b"".join(singles), num_messages_in_batch=3), num_messages=3)


@breaks("CHECK-46")
def a_highest_id_of_no_message(s: Script) -> None:
    _ready(s)
    entry = stored(0, members(0, 3), num_messages_in_batch=3, highest_sequence_id=9)
    s.send(0, entry, num_messages=3, highest_sequence_id=9)


@breaks("BATCH-11")
def properties_of_a_batch(s: Script) -> None:
    _ready(s)
    s.send_batch(0, 2, properties=[("a", "b")])


@breaks("BATCH-11")
def the_event_time_of_a_batch(s: Script) -> None:
    _ready(s)
    s.send_batch(0, 2, event_time=1)


@breaks("DELAY-03")
def a_delayed_batch(s: Script) -> None:
    _ready(s)
    s.send_batch(0, 2, deliver_at_time=1)


# --- compression, null values ----------------------------------------------------------------------


@breaks("CHECK-47")
def an_unknown_codec(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, compression=9, uncompressed_size=1))


@breaks("CHECK-48")
def another_size(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, compress(LZ4, b"12345"), compression=LZ4, uncompressed_size=5))
    s.send(1, stored(1, compress(LZ4, b"12345"), compression=LZ4, uncompressed_size=6))


@breaks("CHECK-48")
def another_size_without_codec(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, b"12345", uncompressed_size=4))


@breaks("CHECK-49")
def null_with_a_payload(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, b"12345", null_value=True))


@breaks("CHECK-49")
def null_with_a_payload_in_a_batch(s: Script) -> None:
    _ready(s)
    single = encode_single(SingleMessageMetadata(sequence_id=0, null_value=True), b"x")
    s.send(0, stored(0, single, num_messages_in_batch=1))


# --- encryption ------------------------------------------------------------------------------------

_KEYS = [EncryptionKey("k", b"wrapped")]


@breaks("CHECK-50")
def a_short_nonce(s: Script) -> None:
    _ready(s, encrypted=True)
    s.send(0, stored(0, bytes(20), encryption_keys=_KEYS, encryption_param=bytes(11)))


@breaks("CHECK-50")
def no_room_for_the_tag(s: Script) -> None:
    _ready(s, encrypted=True)
    s.send(0, stored(0, bytes(15), encryption_keys=_KEYS, encryption_param=bytes(12)))


@breaks("CHECK-51")
def encryption_without_announcement(s: Script) -> None:
    _ready(s)
    s.send(0, stored(0, bytes(20), encryption_keys=_KEYS, encryption_param=bytes(12)))


@breaks("INV-X3")
def a_nonce_used_twice(s: Script) -> None:
    _ready(s, encrypted=True)
    s.send(0, stored(0, bytes(20), encryption_keys=_KEYS, encryption_param=bytes(12)))
    s.send(1, stored(1, bytes(20), encryption_keys=_KEYS, encryption_param=bytes(12)))


# --- chunks ----------------------------------------------------------------------------------------


def _chunk(s: Script, chunk: int, count: int = 3, *, sequence_id: int = 0, **fields: Any) -> None:
    fields = {
        "uuid": f"p-{sequence_id}",
        "chunk_id": chunk,
        "num_chunks_from_msg": count,
        "total_chunk_msg_size": 2 * count,
        **fields,
    }
    s.send(sequence_id, stored(sequence_id, b"xx", **fields), is_chunk=True)


@breaks("CHECK-52")
def a_chunk_beyond_the_last(s: Script) -> None:
    _ready(s)
    for chunk in range(3):
        _chunk(s, chunk)
    _chunk(s, 3)


@breaks("CHECK-52")
def a_chunk_without_uuid(s: Script) -> None:
    _ready(s)
    _chunk(s, 0, uuid=None)


@breaks("CHECK-53")
def a_chunk_that_is_not_marked(s: Script) -> None:
    _ready(s)
    fields: dict[str, Any] = {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
    s.send(0, stored(0, b"xx", **fields))


@breaks("CHECK-53")
def a_message_marked_as_chunk(s: Script) -> None:
    _ready(s)
    s.send(0, is_chunk=True)


@breaks("CHUNK-01")
def a_chunk_that_is_a_batch(s: Script) -> None:
    _ready(s)
    _chunk(s, 0, num_messages_in_batch=1)


@breaks("GAP-11")
def a_chunk_left_out(s: Script) -> None:
    _ready(s)
    _chunk(s, 0)
    _chunk(s, 2)


@breaks("GAP-11")
def a_message_without_its_first_chunk(s: Script) -> None:
    _ready(s)
    _chunk(s, 1)


@breaks("GAP-11")
def a_count_that_changes(s: Script) -> None:
    _ready(s)
    _chunk(s, 0)
    _chunk(s, 1, 4)


@breaks("CHECK-54")
def chunks_that_do_not_add_up(s: Script) -> None:
    _ready(s)
    _chunk(s, 0, 2, total_chunk_msg_size=5)
    _chunk(s, 1, 2, total_chunk_msg_size=5)
