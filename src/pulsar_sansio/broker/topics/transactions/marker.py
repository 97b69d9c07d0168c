"""The entries with which a broker ends a transaction in a topic."""

from ....model.transaction_id import TransactionId
from ....wire import MessageMetadata, encode_message_metadata, pack_payload, proto

_PRODUCER = "pulsar.txn.marker"
"""The name of the producer in markers, as with a Java broker."""


def marker(transaction: TransactionId, commits: bool, wall_time: int) -> bytes:
    """Return the entry that commits or aborts a transaction. `wall_time`: milliseconds since 1970."""
    kind = proto.TXN_COMMIT if commits else proto.TXN_ABORT
    metadata = MessageMetadata(
        _PRODUCER,
        0,
        wall_time,
        marker_type=kind,
        txnid_most_bits=transaction.coordinator,
        txnid_least_bits=transaction.number,
    )
    return b"".join(pack_payload(encode_message_metadata(metadata), b""))
