"""The entries that end a transaction in a topic."""

import pytest

from pulsar_sansio.broker.topics.transactions.marker import marker
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import proto, unpack_payload


@pytest.mark.parametrize(("commits", "kind"), [(True, proto.TXN_COMMIT), (False, proto.TXN_ABORT)])
def test_a_marker_names_its_transaction(commits: bool, kind: int) -> None:
    entry = unpack_payload(marker(TransactionId(3, 2**64 - 1), commits, 77))
    metadata = entry.metadata
    assert (metadata.marker_type, metadata.txnid_most_bits, metadata.txnid_least_bits) == (kind, 3, 2**64 - 1)
    assert (metadata.publish_time, entry.payload) == (77, b"")
