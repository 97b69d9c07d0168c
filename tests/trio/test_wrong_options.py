"""A wrong option or argument raises one error, which names the right one."""

import re
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_trio import Client, InvalidConfiguration, LocalProtocolError, WrongArguments, open_client
from tests.trio.reading import first_value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda client: client.create_producer("t", producer_name="p"),
            "create_producer: there is no option 'producer_name'; did you mean 'name'?",
        ),
        (
            lambda client: client.create_producer("t", send_timeout_millis=5),
            "create_producer: there is no option 'send_timeout_millis'; did you mean 'send_timeout', "
            "in seconds "
            "here?",
        ),
        (
            lambda client: client.create_producer("t", block_if_queue_full=True),
            "create_producer: there is no option 'block_if_queue_full'; when_full='wait' is the default, "
            "when_full='fail' raises ProducerQueueIsFull",
        ),
        (
            lambda client: client.create_producer("t", batching_enabled=True),
            "create_producer: there is no option 'batching_enabled'; it batches by default, "
            "batching=None sends "
            "every message by itself",
        ),
        (
            lambda client: client.create_producer("t", sned_timeout=5),
            "create_producer: there is no option 'sned_timeout'; did you mean 'send_timeout'?",
        ),
        (
            lambda client: client.create_producer("t", compression="LZ4"),
            "compression: one of 'none', 'lz4', 'zlib', 'zstd', 'snappy', not 'LZ4'; did you mean 'lz4'?",
        ),
        (
            lambda client: client.create_producer("t", when_full="waits"),
            "when_full: one of 'wait', 'fail', not 'waits'; did you mean 'wait'?",
        ),
        (
            lambda client: client.subscribe("t", "s", consumer_type="Shared"),
            "subscribe: there is no option 'consumer_type'; did you mean kind='shared', "
            "'key_shared', 'exclusive' "
            "or 'failover'?",
        ),
        (
            lambda client: client.subscribe("t", "s", negative_ack_redelivery_delay_ms=100),
            "subscribe: there is no option 'negative_ack_redelivery_delay_ms'; did you mean "
            "'negative_acknowledgement_delay', in seconds here?",
        ),
        (
            lambda client: client.subscribe("t", "s", kidn="shared"),
            "subscribe: there is no option 'kidn'; did you mean 'kind'?",
        ),
        (
            lambda client: client.subscribe("t", "s", initial_position="First"),
            "initial_position: one of 'latest', 'earliest', not 'First'",
        ),
        (
            lambda client: client.create_reader("t", "earliest", reader_name="r"),
            "create_reader: there is no option 'reader_name'; did you mean 'name'?",
        ),
        (
            lambda client: client.create_reader("t", "earlyest"),
            "position: 'earliest' or 'latest', a message id or a time, not 'earlyest'; did you mean "
            "'earliest'?",
        ),
        (
            lambda client: client.create_reader("t", None),
            "start: 'earliest', 'latest', a message or its id, a datetime, a timedelta (so long ago) or a "
            "checkpoint, not None",
        ),
        (
            lambda client: client.create_reader("t", datetime(2026, 1, 1)),
            "position: a datetime with a time zone, such as datetime(2026, 1, 31, tzinfo=timezone.utc), not "
            "datetime.datetime(2026, 1, 1, 0, 0)",
        ),
        (
            lambda client: client.create_table_view("t", schema="Order"),
            "schema: a Schema, bytes, str, bool, int, float, datetime, date, time, a dataclass, a pydantic "
            "model, a msgspec Struct or a protobuf class, not 'Order'",
        ),
    ],
)
async def test_a_wrong_option_of_the_client_names_the_right_one(
    client: Client, call: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(InvalidConfiguration if "position:" not in words else LocalProtocolError) as raised:
        await call(client).__aenter__()
    assert str(raised.value) == words


async def test_members_of_another_clients_enumerations_are_understood(client: Client) -> None:
    """Their names are read, whatever they are members of."""
    subscribe: Any = client.subscribe
    for name, word in (("KeyShared", "key_shared"), ("Shared", "shared"), ("Failover", "failover")):
        with pytest.raises(InvalidConfiguration, match=f"kind: one of .*; did you mean '{word}'"):
            await subscribe("t", "s", SimpleNamespace(name=name)).__aenter__()
    with pytest.raises(InvalidConfiguration, match="did you mean 'single_partition'"):
        routing: Any = SimpleNamespace(name="UseSinglePartition")
        await client.create_producer("t", routing=routing).__aenter__()


async def test_another_clients_message_id_says_how_to_make_one_of_ours(client: Client) -> None:
    foreign = type("MessageId", (), {})()
    with pytest.raises(LocalProtocolError, match=re.escape("decode_message_id(message_id.serialize())")):
        await client.create_reader("t", foreign).__aenter__()


_client_of: Any = Client


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: open_client(service_url="pulsar://a"), "the URL is the first argument, 'url'"),  # type: ignore[call-arg]
        (lambda: open_client(), "open_client: missing a required argument: 'url'"),  # type: ignore[call-arg]
        (lambda: _client_of("pulsar://localhost"), "write: async with open_client(url) as client:"),
    ],
)
async def test_a_call_that_lacks_an_argument_names_it(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(WrongArguments, match=re.escape(words)):
        call()


async def test_a_call_of_the_client_that_lacks_an_argument_names_it(client: Client) -> None:
    wrong: Any = client
    with pytest.raises(WrongArguments) as raised:
        wrong.subscribe("t", subscription_name="s")
    assert str(raised.value) == (
        "subscribe: missing a required argument: 'subscription'; there is no option "
        "'subscription_name'; did you "
        "mean 'subscription'?"
    )
    with pytest.raises(WrongArguments, match=r"create_reader: .*'start_message_id'; did you mean 'start'"):
        wrong.create_reader("t", start_message_id="earliest")


def test_a_wrong_argument_is_a_type_error_and_an_invalid_configuration() -> None:
    assert issubclass(WrongArguments, TypeError)
    assert issubclass(WrongArguments, InvalidConfiguration)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"partition_key": "k"}, "send: there is no option 'partition_key'; did you mean 'key'?"),
        ({"event_timestamp": 5}, "send: there is no option 'event_timestamp'; did you mean 'event_time'?"),
        ({"propertys": {}}, "send: there is no option 'propertys'; did you mean 'properties'?"),
        (
            {"zzz": 1},
            "send: there is no option 'zzz'; there are deliver_after, deliver_at, event_time, key, "
            "ordering_key, "
            "properties, replicate_to, sequence_id, transaction",
        ),
    ],
)
async def test_a_wrong_keyword_of_send_names_the_right_one(
    client: Client, fields: dict[str, Any], words: str
) -> None:
    async with client.create_producer("t") as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(WrongArguments) as raised:
                await call(b"x", **fields)
            assert str(raised.value) == words
        with pytest.raises(WrongArguments):
            producer.enqueue_nowait(b"x", **fields)
        await producer.send(b"right", key="k")
        assert (await first_value(client)).value == b"right", "nothing else was sent"
