"""The calls that an application finds at a client, a producer and a consumer."""

import pytest

from pulsar_trio import Client, Consumer, Producer

CLIENT = (
    "create_producer subscribe create_reader create_table_view partitions topics update_service_url aclose"
)
PRODUCER = "topic producer_name connected last_sequence_id send send_many enqueue enqueue_nowait flush aclose"
CONSUMER = (
    "receive receive_many receive_nowait acknowledge negative_acknowledge redeliver_unacknowledged seek "
    "pause resume unsubscribe aclose"
)


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (Client, CLIENT),  # CLIENT-06
        (Producer, PRODUCER),  # PROD-54
        (Consumer, CONSUMER),  # CONS-53
    ],
)
def test_every_call_is_there(kind: type, calls: str) -> None:
    assert set(calls.split()) <= set(vars(kind)) | {name for base in kind.__mro__ for name in vars(base)}
