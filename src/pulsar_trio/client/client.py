"""`open_client` and `Client`: the way in for applications that produce and consume.

The background tasks never show. An exception of the block leaves `async with` unchanged. A failure in the
background surfaces at a call, or when the block is left.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar, Unpack, overload

import trio

from pulsar_sansio import (
    InvalidConfiguration,
    PulsarError,
    SubscriptionType,
    TopicDomain,
    TopicName,
    WrongArguments,
    unknown_names,
)
from pulsar_sansio.schemas import SchemaInfo, SchemaType, schema_of

from .. import official_names
from ..consuming.consumer import Consumer
from ..consuming.consumer_kinds import (
    CONSUMER_TYPES,
    ExclusiveConsumer,
    FailoverConsumer,
    KeySharedConsumer,
    SharedConsumer,
)
from ..consuming.reader import Reader, ReadingConsumer, Start, start_options
from ..opening import opening
from ..plain_calls import UPDATE_SERVICE_URL
from ..producing.producer import Producer
from ..producing.typed_producer import TypedProducer
from ..transport.background import background, closing
from ..values import SchemaLike
from .driver import Driver
from .options import (
    ClientOptions,
    ConsumerOptions,
    Kind,
    ProducerOptions,
    ReaderOptions,
    TableViewOptions,
    Topics,
    checked_interval,
    client_config,
    client_identity,
    consumer_spec,
    producer_spec,
    reader_spec,
    table_view_spec,
    url_source,
    version_bytes,
    waits_when_full,
    word,
)
from .service_url_source import ServiceUrlProvider
from .statistics_log import log_statistics
from .table_view import TableView
from .transaction import Transaction, open_transaction

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """`links`: connections open or being opened. Bytes are those of these links. `memory_held`: bytes of
    payload in all producers' messages that are neither confirmed nor failed, which `memory_limit` limits."""

    links: int
    producers: int
    consumers: int
    bytes_received: int
    bytes_sent: int
    memory_held: int


@opening("async with open_client(url) as client:")
async def open_client(
    url: str | ServiceUrlProvider,
    *,
    seed: int | None = None,
    statistics_interval: float | None = None,
    **options: Unpack[ClientOptions],
) -> AsyncIterator["Client"]:
    """A client of the Pulsar at `url`, `pulsar://host[:port][,host[:port]…]`, closed when the block ends.
    By `http://` or `https://` it finds brokers over HTTP. `url` may be a function that returns the URL: it is
    asked now, and again after each attempt to connect that fails.

    It connects when something needs it, so a wrong host is reported by the first producer or consumer.
    By `pulsar+ssl://` and `https://` it encrypts, and verifies certificates: see `TlsConfig` for `tls`.
    `authentication` is a `Token`, `Basic`, `MutualTls` or a subclass of `Authentication`. The other `options`
    are those of `ClientConfig`; `seed` fixes the randomness of backoff and generated names. Every
    `statistics_interval` seconds (None: never) what producers and consumers count is logged at INFO. Raises
    `InvalidServiceUrl` and `InvalidConfiguration`. Leaving the block closes producers and consumers
    gracefully; a block that is left by cancellation is closed at once.
    """
    urls = None
    if callable(url):
        urls = url_source(url, options)
        url = await urls.ask()
    config = client_config(url, options)
    driver = Driver(config, seed, client_identity(config, options), urls)
    client = Client(driver)
    interval = checked_interval(statistics_interval)
    async with background(driver, client.aclose):
        driver.fact(driver.machine.handle_deadline)  # a failover has timers from the beginning
        if interval is not None:
            driver.start_task(partial(log_statistics, driver.sides, interval), "pulsar statistics")
        yield client


@unknown_names(official_names.CLIENT)
class Client:
    """Made by `open_client`. Use it from any task of the same `trio.run`."""

    def __init__(self, driver: Driver) -> None:
        if not isinstance(driver, Driver):
            raise WrongArguments(
                "Client: it is made by open_client; write: async with open_client(url) as client:"
            )
        self._driver = driver

    @overload
    def create_producer(
        self, topic: str, **options: Unpack[ProducerOptions]
    ) -> AbstractAsyncContextManager[Producer]: ...
    @overload
    def create_producer(
        self, topic: str, *, schema: SchemaLike[ValueT], **options: Unpack[ProducerOptions]
    ) -> AbstractAsyncContextManager[Producer[ValueT]]: ...
    @opening("async with client.create_producer(topic) as producer:")
    async def create_producer(
        self, topic: str, *, schema: Any = None, **options: Unpack[ProducerOptions]
    ) -> AsyncIterator[Any]:
        """A producer on `topic`, closed when the block ends; its options are those of `ProducerSpec`, and
        `when_full`, "wait" or "fail". `schema`: a schema, or a type that has one (`schema_of`); the producer
        then sends values, and without it bytes.

        Entering waits until it is ready. Raises `InvalidConfiguration` for a wrong option or name, what the
        broker refuses it with, and `TimedOut` after `operation_timeout`.
        """
        driver = self._driver
        spec = producer_spec(topic, options, schema)
        kind: type[Producer[Any]] = Producer if spec.schema is None else TypedProducer
        make = partial(kind, waits=waits_when_full(options))
        producer = await driver.open(driver.machine.open_producer, spec, make)
        async with closing(producer):
            yield producer

    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["shared", SubscriptionType.SHARED] = ...,
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[SharedConsumer]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["key_shared", SubscriptionType.KEY_SHARED],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[KeySharedConsumer]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["exclusive", SubscriptionType.EXCLUSIVE],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[ExclusiveConsumer]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["failover", SubscriptionType.FAILOVER],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[FailoverConsumer]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: SubscriptionType | Kind,
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[Consumer]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["shared", SubscriptionType.SHARED] = ...,
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[SharedConsumer[ValueT]]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["key_shared", SubscriptionType.KEY_SHARED],
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[KeySharedConsumer[ValueT]]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["exclusive", SubscriptionType.EXCLUSIVE],
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[ExclusiveConsumer[ValueT]]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: Literal["failover", SubscriptionType.FAILOVER],
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[FailoverConsumer[ValueT]]: ...
    @overload
    def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: SubscriptionType | Kind,
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ConsumerOptions],
    ) -> AbstractAsyncContextManager[Consumer[ValueT]]: ...
    @opening("async with client.subscribe(topic, subscription) as consumer:")
    async def subscribe(
        self,
        topic: Topics,
        subscription: str,
        kind: SubscriptionType | Kind | None = None,
        *,
        schema: Any = None,
        **options: Unpack[ConsumerOptions],
    ) -> AsyncIterator[Any]:
        """A consumer of a topic, partitioned or not, of several, or of all that match a pattern, closed when
        the block ends; its options are those of `ConsumerSpec`. See `TopicsPattern` for patterns; one
        compiled by `re` is the same with defaults, matched by RE2. `schema`: as for `create_producer`; it
        makes values of the payloads (`Message.value`).

        `kind` is "shared" (the default), "key_shared", "exclusive" or "failover". Entering waits until it is
        subscribed. Raises `InvalidConfiguration` for a wrong option or name, what the broker refuses it with,
        and `TimedOut` after `operation_timeout`.
        """
        driver = self._driver
        spec = consumer_spec(topic, subscription, options, kind, schema)
        consumer = await driver.open(driver.machine.subscribe, spec, CONSUMER_TYPES[spec.subscription_type])
        async with closing(consumer):
            yield consumer

    @overload
    def create_reader(
        self, topic: str | Sequence[str], start: Start, **options: Unpack[ReaderOptions]
    ) -> AbstractAsyncContextManager[Reader]: ...
    @overload
    def create_reader(
        self,
        topic: str | Sequence[str],
        start: Start,
        *,
        schema: SchemaLike[ValueT],
        **options: Unpack[ReaderOptions],
    ) -> AbstractAsyncContextManager[Reader[ValueT]]: ...
    @opening("async with client.create_reader(topic, 'earliest') as reader:")
    async def create_reader(
        self,
        topic: str | Sequence[str],
        start: Start,
        *,
        schema: Any = None,
        **options: Unpack[ReaderOptions],
    ) -> AsyncIterator[Any]:
        """A reader of `topic`, or of several, that begins at `start` (see `Start`), closed when the block
        ends; its options are those of `ReaderSpec`.

        Entering waits until it is subscribed. Raises `InvalidConfiguration` for a wrong option or name, what
        the broker refuses it with, and `TimedOut` after `operation_timeout`.
        """
        driver = self._driver
        spec = reader_spec(topic, start_options(start), options, schema)
        consumer = await driver.open(driver.machine.open_reader, spec, ReadingConsumer.of)
        async with closing(consumer):
            yield Reader(consumer, in_part=spec.key_hash_ranges is not None)

    @overload
    def create_table_view(
        self, topic: str | Sequence[str], **options: Unpack[TableViewOptions]
    ) -> AbstractAsyncContextManager[TableView]: ...
    @overload
    def create_table_view(
        self, topic: str | Sequence[str], *, schema: SchemaLike[ValueT], **options: Unpack[TableViewOptions]
    ) -> AbstractAsyncContextManager[TableView[str, ValueT]]: ...
    @overload
    def create_table_view(
        self,
        topic: str | Sequence[str],
        *,
        key_schema: SchemaLike[KeyT],
        **options: Unpack[TableViewOptions],
    ) -> AbstractAsyncContextManager[TableView[KeyT]]: ...
    @overload
    def create_table_view(
        self,
        topic: str | Sequence[str],
        *,
        schema: SchemaLike[ValueT],
        key_schema: SchemaLike[KeyT],
        **options: Unpack[TableViewOptions],
    ) -> AbstractAsyncContextManager[TableView[KeyT, ValueT]]: ...
    @opening("async with client.create_table_view(topic) as view:")
    async def create_table_view(
        self,
        topic: str | Sequence[str],
        *,
        schema: Any = None,
        key_schema: Any = None,
        **options: Unpack[TableViewOptions],
    ) -> AsyncIterator[Any]:
        """The last value of every key of `topic`, or of several, as a mapping; closed when the block ends.
        Its options are those of `TableViewSpec`. `key_schema` makes keys of those of messages, such
        as `int` for the keys of a `KeyValueSchema(INT64, …)`.

        Entering waits until it holds everything that was there. Raises `InvalidConfiguration` for a wrong
        option or name, `TableViewTooLarge`, what the broker refuses it with, and `TimedOut` after
        `operation_timeout` without a connection.
        """
        driver = self._driver
        spec = table_view_spec(topic, options, schema, key_schema)
        view = await driver.open(driver.machine.open_table_view, spec, TableView[Any, Any])
        async with closing(view):
            yield view

    @opening("async with client.transaction() as transaction:")
    async def transaction(self, timeout: float | timedelta = 60.0) -> AsyncIterator[Transaction]:
        """A transaction, which is committed when the block ends, and aborted when it raises or is cancelled.

            async with client.transaction() as transaction:
                await producer.send(value, transaction=transaction)
                consumer.acknowledge(message, transaction=transaction)

        `timeout`: a timedelta or seconds, after which the coordinator aborts it. Leaving the block raises
        what `Transaction.commit` raises. After an exception the abort goes on in the background. Entering
        raises `NotSupported` for a cluster without transactions, `TimedOut`, and `InvalidConfiguration`.
        """
        transaction = await open_transaction(self._driver, timeout)
        try:
            yield transaction
        except BaseException as error:
            if transaction.is_open:
                transaction.abort_later(type(error).__name__)
            raise
        if transaction.is_open:
            await transaction.commit()

    def update_service_url(self, url: str) -> None:
        """Find brokers by this URL from now on, `pulsar://host[:port][,host[:port]…]`. Every connection ends;
        producers and consumers come back by the new URL, and send again what was not confirmed (rule
        CLIENT-21). Raises `InvalidServiceUrl`, `ResourceClosed`."""
        service_url = client_config(url, {}).service_url
        self._driver.command(self._driver.machine.update_service_url, service_url)
        return UPDATE_SERVICE_URL

    async def partitions(self, topic: str) -> list[str]:
        """The full names of a topic's partitions, in their order, so its length is their number; empty where
        the topic is not partitioned or does not exist. Each is a topic by itself, for a producer, consumer or
        reader of one partition."""
        name = TopicName.parse(topic)
        count = int(await self._driver.request(self._driver.machine.partitions, topic))
        return [str(name.partition_name(index)) for index in range(count)]

    async def topics(
        self,
        namespace: str = "public/default",
        domain: TopicDomain | Literal["persistent", "non_persistent", "all"] = TopicDomain.PERSISTENT,
    ) -> list[str]:
        """Full names of the topics of a namespace, sorted; partitioned topics by their own name. `domain`:
        "persistent", "non_persistent" (those in use) or "all"."""
        driver = self._driver
        names: list[str] = await driver.request(
            driver.machine.topics, namespace, word("domain", domain, TopicDomain)
        )
        return names

    async def schema(self, topic: str, version: int | None = None) -> SchemaInfo | None:
        """The definition of a topic's schema: that of a version, counted from 0, or the latest one. None
        where the topic has no such definition. Raises `InvalidConfiguration` for a version below 0."""
        driver = self._driver
        wanted = None if version is None else version_bytes(version)
        found: SchemaInfo | None = await driver.request(driver.machine.definition, topic, wanted)
        return found

    async def schema_version(self, topic: str) -> int | None:
        """The version of the latest definition of a topic's schema, counted from 0; None where there is none.

        Versions before the last deletion of the schema are gone, and their numbers are not used again.
        """
        driver = self._driver
        version: int | None = await driver.request(driver.machine.schema_version, topic)
        return version

    async def register_schema(self, topic: str, schema: SchemaLike[Any]) -> int:
        """Register the definition of a schema for `topic`, and give its version; that of an equal definition
        where the topic has one. A topic that does not exist is created.

        Raises `IncompatibleSchema` where the topic's strategy refuses it.
        """
        driver = self._driver
        given = schema_of(schema)
        if given.info.type in (SchemaType.NONE, SchemaType.AUTO_CONSUME):
            raise InvalidConfiguration(f"schema: one with a definition to register, not {given!r:.100}")
        place = next(iter(await self.partitions(topic)), topic)  # a partitioned topic itself is none
        version: bytes = await driver.request(driver.machine.register_schema, place, given)
        if not version:
            async with self.create_producer(topic, schema=given):
                version = await driver.request(driver.machine.register_schema, place, given)
        return int.from_bytes(version, "big")

    async def aclose(self) -> None:
        """Close every producer and consumer gracefully, then the connections. `open_client` does it too.

        Silent when it is closed already. When cancelled, it is closed all the same, without waiting.
        """
        driver = self._driver
        if driver.closed:
            await trio.lowlevel.checkpoint()
            return
        try:
            async with trio.open_nursery() as nursery:
                for endpoint in driver.endpoints:
                    nursery.start_soon(endpoint.aclose)
            await driver.request(driver.machine.close, None)
            await driver.drained()
        except PulsarError:
            pass  # closed all the same; a bug of ours is reported by `open_client`
        finally:
            driver.shut()

    def __repr__(self) -> str:
        driver = self._driver
        if driver.closed or driver.failure is not None:
            return f"<Client of {driver.machine.service_url}, closed>"
        return f"<Client of {driver.machine.service_url}, {len(driver.links)} connections>"

    def statistics(self) -> ClientStatistics:
        """The connections, producers and consumers of this client, their bytes, and the memory held."""
        driver = self._driver
        links, endpoints = driver.links.values(), driver.endpoints
        return ClientStatistics(
            len(links),
            sum(isinstance(endpoint, Producer) for endpoint in endpoints),
            sum(isinstance(endpoint, Consumer) for endpoint in endpoints),
            sum(link.bytes_received for link in links),
            sum(link.bytes_sent for link in links),
            driver.machine.memory_held,
        )
