"""Programs in their first hour: each mistake raises one error with the right name, or the line to write."""

import asyncio
import gc
import re
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
import trio

import pulsar_trio
from pulsar_trio import (
    Client,
    EmbeddedBroker,
    InvalidConfiguration,
    InvalidMessage,
    InvalidServiceUrl,
    LocalProtocolError,
    Message,
    NotAwaitable,
    NotEntered,
    NotInTrio,
    OutgoingMessage,
    Producer,
    PulsarError,
    ResourceClosed,
    UnknownName,
    WrongArguments,
    open_broker,
    open_client,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def first_value(client: Client, topic: str = "t") -> Message:
    async with client.create_reader(topic, "earliest") as reader:
        return await reader.receive()


# --- a wrong option ---------------------------------------------------------------------------------------


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
            lambda client: client.create_table_view("t", schema=None),
            "create_table_view: there is no option 'schema'; schemas are not supported yet, values are bytes",
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
            "properties, replicate_to, sequence_id",
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


# --- names of the official client -------------------------------------------------------------------------


async def test_attributes_of_the_official_client_name_ours(client: Client, broker: EmbeddedBroker) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", initial_position="earliest") as consumer,
        client.create_reader("t", "earliest") as reader,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        for thing, name, words in (
            (
                client,
                "close",
                "Client has no 'close'; leave the 'async with' block, or await client.aclose()",
            ),
            (client, "transaction", "Client has no 'transaction'; transactions are not supported yet"),
            (
                producer,
                "send_async",
                "write: receipt = await producer.enqueue(…), and later await receipt.wait()",
            ),
            (producer, "producer_name", "Producer has no 'producer_name'; did you mean 'name'?"),
            (consumer, "acknowledge_cumulative", "only consumers of kind 'exclusive' and 'failover' have it"),
            (consumer, "close", "SharedConsumer has no 'close'; leave the 'async with' block"),
            (consumer, "batch_receive", "did you mean await consumer.receive_many()?"),
            (reader, "read_next", "did you mean await reader.receive(), or 'async for message in reader'?"),
            (message, "partition_key", "Message has no 'partition_key'; did you mean 'key'?"),
            (message, "publish_timestamp", "did you mean 'publish_time'?"),
            (pulsar_trio, "ConsumerType", "did you mean the words 'shared', 'key_shared'"),
            (pulsar_trio, "ConsumerDeadLetterPolicy", "did you mean 'DeadLetterPolicy'?"),
        ):
            with pytest.raises(UnknownName, match=re.escape(words)):
                getattr(thing, name)
            assert not hasattr(thing, name), "it is an AttributeError"
            assert thing is pulsar_trio or name not in dir(thing), "it is not offered for completion"
        assert "send" in dir(producer)
        assert "key" in dir(message)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            pulsar_trio.nonsense  # type: ignore[attr-defined]  # noqa: B018


async def test_receive_has_no_timeout(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, client.create_reader("t", "latest") as reader:
        calls: list[Any] = [consumer.receive, reader.receive]
        for receive in calls:
            with pytest.raises(WrongArguments, match=re.escape("with trio.move_on_after(seconds): …")):
                await receive(timeout_millis=1000)
            with pytest.raises(WrongArguments, match="not even of 1000"):
                await receive(1000)


# --- async with -------------------------------------------------------------------------------------------


async def test_without_async_with_an_error_shows_the_line(client: Client, broker: EmbeddedBroker) -> None:
    wrong: Any = client
    for use, words in (
        (
            lambda: open_client(broker.url).subscribe("t", "s"),  # type: ignore[attr-defined]
            "open_client(…) has no 'subscribe' before it is entered; write: async with "
            "open_client(url) as client:",
        ),
        (
            lambda: wrong.create_producer("t").send(b"x"),
            "client.create_producer(…) has no 'send' before it is entered; write: async with "
            "client.create_producer(topic) as producer:",
        ),
        (
            lambda: wrong.subscribe("t", "s").__enter__(),
            "client.subscribe(…) is entered with 'async with', not with 'with'; write: async with "
            "client.subscribe(topic, subscription) as consumer:",
        ),
        (
            lambda: wrong.create_reader("t", "earliest").__aiter__(),
            "client.create_reader(…) is not iterated over; write: async with client.create_reader(topic, "
            "'earliest') as reader:",
        ),
        (
            lambda: open_broker().url,  # type: ignore[attr-defined]
            "open_broker(…) has no 'url' before it is entered; write: async with open_broker() as broker:",
        ),
    ):
        with pytest.raises(NotEntered) as raised:
            use()  # type: ignore[no-untyped-call]
        assert str(raised.value) == words
    with pytest.raises(
        NotEntered, match=re.escape("client.create_producer(…) is not awaited; write: async with")
    ):
        await wrong.create_producer("t")
    assert issubclass(NotEntered, AttributeError)
    assert issubclass(NotEntered, TypeError)


async def test_what_is_never_entered_warns(client: Client) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.create_producer("t")
        gc.collect()
    assert [str(each.message) for each in caught] == [
        "client.create_producer(…) was never entered; write: async with "
        "client.create_producer(topic) as producer:"
    ]
    assert caught[0].category is RuntimeWarning


async def test_what_is_to_be_entered_says_so(client: Client) -> None:
    opening = client.create_producer("t")
    assert repr(opening) == (
        "<client.create_producer(…), to be entered: async with client.create_producer(topic) as producer:>"
    )
    async with opening as producer:
        assert type(producer) is Producer


def test_asyncio_gets_one_clear_sentence() -> None:
    async def program(opening: Any) -> None:
        async with opening:
            raise AssertionError("it was entered")

    for opening in (open_client("pulsar://localhost"), open_broker()):
        with pytest.raises(NotInTrio) as raised:
            asyncio.run(program(opening))
        assert str(raised.value) == (
            "pulsar_trio needs trio: start the program with trio.run(main). For asyncio see docs/embedding.md"
        )
    assert issubclass(NotInTrio, RuntimeError)
    assert issubclass(NotInTrio, PulsarError)


# --- await ------------------------------------------------------------------------------------------------


async def test_awaiting_a_plain_call_says_what_waits(client: Client) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", kind="exclusive", initial_position="earliest") as consumer,
    ):
        await producer.send_many([b"1", b"2"])
        plain: Any = consumer
        message = await consumer.receive()
        with pytest.raises(NotAwaitable) as raised:
            await plain.acknowledge(message)
        assert str(raised.value) == (
            "acknowledge is a plain call, without await: write consumer.acknowledge(…); await "
            "consumer.flush() waits for the broker"
        )
        other = await consumer.receive()
        for name, arguments in (
            ("acknowledge_cumulative", (other,)),
            ("negative_acknowledge", (other,)),
            ("redeliver_unacknowledged", ()),
            ("pause", ()),
            ("resume", ()),
        ):
            with pytest.raises(NotAwaitable, match=rf"^{name} is a plain call, without await: write"):
                await getattr(plain, name)(*arguments)
            assert not getattr(plain, name)(*arguments), "it stands for None"
        with pytest.raises(NotAwaitable, match=re.escape("write: message_id = await receipt.wait()")):
            await producer.enqueue_nowait(b"3")  # type: ignore[misc]
        await consumer.flush()
    assert issubclass(NotAwaitable, TypeError)


# --- values and times -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [b"value", bytearray(b"value"), memoryview(b"a value")[2:]])
async def test_payloads_of_every_kind(client: Client, given: bytes | bytearray | memoryview) -> None:
    """Rule SCHEMA-01."""
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(given)
        receipt = await producer.enqueue(given, key="k")
        producer.enqueue_nowait(given)
        await producer.send_many([given, b"other", OutgoingMessage(given), given])
        await receipt.wait()
        received = [(await consumer.receive()).value for _ in range(7)]
        assert received == [b"value"] * 4 + [b"other", b"value", b"value"]


async def test_what_can_be_changed_is_copied(client: Client) -> None:
    """Also where one buffer is used for all messages of `send_many`, and behind other messages."""
    buffer = bytearray(2)

    def messages() -> Any:
        for number in range(200):
            buffer[:] = b"%02d" % (number % 100)
            yield buffer

    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send_many(messages())
        received = [(await consumer.receive()).value for _ in range(200)]
        assert received == [b"%02d" % (number % 100) for number in range(200)]
        await producer.send_many([b"first", buffer])
        receipt = await producer.enqueue(buffer)
        buffer[:] = b"!!"
        await receipt.wait()
        assert [(await consumer.receive()).value for _ in range(3)] == [b"first", b"99", b"99"]


async def test_tombstones(client: Client) -> None:
    """Rule CFG-402."""
    async with (
        client.create_producer("t") as producer,
        client.create_table_view("t") as view,
        client.subscribe("t", "s", initial_position="earliest") as consumer,
    ):
        await producer.send(b"value", key="k")
        await view.refresh()
        assert view["k"] == b"value"
        await producer.send(None, key="k")
        await view.refresh()
        assert dict(view) == {}
        await producer.send(None)
        await producer.send_many([None, b""])
        values = [(await consumer.receive()).value for _ in range(5)]
        assert values == [b"value", None, None, None, b""]


async def test_a_wrong_payload_is_refused(client: Client) -> None:
    wrong: Any = "text"
    async with client.create_producer("t") as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(InvalidMessage, match="not str"):
                await call(wrong)
        with pytest.raises(InvalidMessage, match="not str"):
            await producer.send_many([bytearray(b"right"), wrong])


async def test_times_are_datetimes_in_and_out(client: Client) -> None:
    when = datetime(2026, 2, 3, 4, 5, 6, 789_999, tzinfo=timezone(timedelta(hours=2)))
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(b"1", event_time=when)
        await producer.send(b"2")
        message = await consumer.receive()
        assert message.event_datetime == datetime(2026, 2, 3, 2, 5, 6, 789_000, tzinfo=UTC)
        assert message.event_time == (when - EPOCH) // timedelta(milliseconds=1)
        assert message.publish_datetime == EPOCH + timedelta(milliseconds=message.publish_time)
        assert message.publish_datetime.utcoffset() == timedelta(0)
        assert (await consumer.receive()).event_datetime is None
        for field in ("event_time", "deliver_at"):
            with pytest.raises(InvalidMessage, match=f"{field}: a datetime with a time zone"):
                await producer.send(b"x", **{field: datetime(2026, 1, 1)})  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage, match="deliver_at: a datetime or milliseconds since 1970"):
            await producer.send(b"x", deliver_at=EPOCH - timedelta(days=1))


async def test_a_cursor_is_reset_to_a_datetime(client: Client, broker: EmbeddedBroker) -> None:
    topic = "persistent://public/default/t"
    async with client.subscribe("t", "s", initial_position="earliest") as consumer:
        async with client.create_producer("t") as producer:
            await producer.send(b"1")
        consumer.acknowledge(await consumer.receive())
        await consumer.flush()
    broker.reset_cursor(topic, "s", EPOCH + timedelta(days=1))
    async with client.subscribe("t", "s") as consumer:
        assert (await consumer.receive()).value == b"1"
    with pytest.raises(LocalProtocolError, match="position: a datetime with a time zone"):
        broker.reset_cursor(topic, "s", datetime(2026, 1, 1))


async def test_delivery_at_a_datetime_and_after_a_timedelta(client: Client) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(b"past", deliver_at=EPOCH + timedelta(days=1))
        assert (await consumer.receive()).value == b"past"
        await producer.send(b"far", deliver_after=timedelta(days=1))
        await producer.send(b"now")
        assert (await consumer.receive()).value == b"now"
        for delay in (timedelta(days=-1), timedelta(days=10_000)):
            with pytest.raises(
                InvalidMessage, match="deliver_after: a timedelta or seconds from 0 to 315360000"
            ):
                await producer.send(b"x", deliver_after=delay)


async def test_reconsumed_after_a_timedelta(client: Client) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", retry=True) as consumer,
    ):
        await producer.send(b"x")
        await consumer.reconsume_later(await consumer.receive(), timedelta(milliseconds=1))
        again = await consumer.receive()
        assert (again.value, again.properties["DELAY_TIME"]) == (b"x", "1")


# --- what is there to be asked ----------------------------------------------------------------------------


async def test_partitions_by_name(client: Client, broker: EmbeddedBroker) -> None:
    """Rule CLIENT-20."""
    broker.create_partitioned_topic("public/default/many", 3)
    names = await client.partitions("many")
    assert names == [f"persistent://public/default/many-partition-{index}" for index in range(3)]
    assert await client.partitions("plain") == []
    async with (
        client.create_producer("many", batching=None) as producer,
        client.create_reader(names[1], "earliest") as reader,
    ):
        await producer.send_many([b"%d" % number for number in range(30)])
        assert (await reader.receive()).topic == names[1]


async def test_the_last_sequence_id_moves(client: Client) -> None:
    async with client.create_producer("t", batching=None, name="p") as producer:
        assert producer.last_sequence_id == -1
        for number in range(3):
            await producer.send(b"x")
            assert producer.last_sequence_id == number
        await producer.send(b"x", sequence_id=100)
        assert producer.last_sequence_id == 100
    assert producer.last_sequence_id == 100, "also after the end"
    async with client.create_producer("t") as producer:
        await producer.send_many([b"x"] * 50)
        assert producer.last_sequence_id == 49, "of a batch the last one's"


async def test_the_last_sequence_id_of_partitions(client: Client, broker: EmbeddedBroker) -> None:
    broker.create_partitioned_topic("public/default/many", 3)
    async with client.create_producer("many", batching=None) as producer:
        assert producer.last_sequence_id == -1
        for _ in range(9):
            await producer.send(b"x")
        assert producer.last_sequence_id == 2, "each partition has three"
        await producer.send(b"x", key="k", sequence_id=77)
        assert producer.last_sequence_id == 77
    assert producer.last_sequence_id == 77


async def test_another_service_url(nursery: trio.Nursery) -> None:
    async with open_broker() as former, open_broker() as latter:
        async with (
            open_client(former.url, initial_backoff=0.01) as client,
            client.create_producer("t") as producer,
        ):
            await producer.send(b"former")
            client.update_service_url(latter.url)
            await producer.send(b"latter")
            assert (await first_value(client)).value == b"latter"
            wrong: Any = client
            with pytest.raises(InvalidServiceUrl, match="begins with pulsar://"):
                client.update_service_url("ftp://localhost")
            with pytest.raises(NotAwaitable, match=r"^update_service_url is a plain call"):
                await wrong.update_service_url(latter.url)
        with pytest.raises(ResourceClosed):
            client.update_service_url(former.url)


async def test_index_and_time_of_the_broker(nursery: trio.Nursery) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    async with open_broker(broker_entry_metadata=True) as broker, open_client(broker.url) as client:
        async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
            await producer.send(b"0")
            await producer.send_many([b"%d" % number for number in range(1, 100)])
            messages = [await consumer.receive() for _ in range(100)]
        assert [message.index for message in messages] == list(range(100))
        for message in messages:
            assert message.broker_publish_datetime is not None
            assert before < message.broker_publish_datetime < datetime.now(UTC) + timedelta(minutes=1)
            assert message.broker_publish_datetime.utcoffset() == timedelta(0)


async def test_without_the_brokers_word_there_is_no_index(client: Client) -> None:
    async with client.create_producer("t") as producer:
        await producer.send(b"x")
    message = await first_value(client)
    assert (message.index, message.broker_publish_time, message.broker_publish_datetime) == (None, None, None)


async def test_reprs(client: Client, broker: EmbeddedBroker) -> None:
    assert repr(client) == f"<Client of {broker.url}, 0 connections>"
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        assert re.fullmatch(rf"<Client of {broker.url}, [12] connections>", repr(client))
        await producer.send(b"secret")
        processing = (await consumer.receive()).processing()
        assert repr(processing) == (
            "<Processing of <Message 0:0:-1 of persistent://public/default/t, 6 bytes>>"
        )
    await client.aclose()
    assert repr(client) == f"<Client of {broker.url}, closed>"
    assert repr(broker) == f"<EmbeddedBroker at {broker.url}, running>"


async def test_a_broker_says_when_it_is_closed() -> None:
    async with open_broker() as broker:
        pass
    assert repr(broker) == f"<EmbeddedBroker at {broker.url}, closed>"


def test_every_error_that_is_raised_can_be_imported() -> None:
    """All subclasses of `PulsarError` in the packages, but for the few that never leave a machine."""
    found: set[type] = set()
    to_see: list[type] = [PulsarError]
    while to_see:
        kind = to_see.pop()
        found.add(kind)
        subclasses: list[type] = kind.__subclasses__()
        to_see += [each for each in subclasses if each.__module__.startswith("pulsar_")]
    public = {each.__name__ for each in found if not each.__module__.startswith(INSIDE)}
    missing = {name for name in public if name not in pulsar_trio.__all__ or not hasattr(pulsar_trio, name)}
    assert missing == set()


INSIDE = (
    "pulsar_sansio.broker.",
    "pulsar_sansio.client.delivery.permits",
    "pulsar_sansio.model.topics_pattern",
    "pulsar_sim",
    "pulsar_spark",
)
"""The broker's own refusals reach a client as the errors of their codes; the others are caught where they are
raised, or are a connection's end, which is a `RemoteProtocolError`."""


def test_what_is_the_drivers_is_not_public() -> None:
    for kind in (Producer, pulsar_trio.Consumer, pulsar_trio.TableView):
        assert not {"end", "on_crash", "on_output", "opened"} & set(dir(kind))
