"""`client.transaction`: how a block ends, and what it says."""

import logging
from collections.abc import AsyncIterator

import pytest
import trio

from pulsar_sansio import (
    InvalidConfiguration,
    InvalidMessage,
    LocalProtocolError,
    NotSupported,
    OutgoingMessage,
    TransactionNotOpen,
)
from pulsar_trio import Client, EmbeddedBroker, open_broker, open_client
from pulsar_trio.errors import ResourceClosed


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker() as broker:
        yield broker


@pytest.fixture
async def client(broker: EmbeddedBroker) -> AsyncIterator[Client]:
    async with open_client(broker.url, transactions=True) as client:
        yield client


async def test_a_transaction_shows_its_id_and_state(client: Client) -> None:
    async with client.transaction() as transaction:
        assert repr(transaction) == "<Transaction (0,0), open>"
        assert transaction.is_open
    assert repr(transaction) == "<Transaction (0,0), ending or ended>"


async def test_messages_made_by_hand_name_the_id(client: Client) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        async with client.transaction() as transaction:
            await producer.send_many(OutgoingMessage(b"x", transaction=transaction.id) for _ in range(3))
        for _ in range(3):
            assert (await consumer.receive()).data == b"x"


@pytest.mark.parametrize("partitions", [0, 3])
async def test_many_messages_in_a_transaction(
    broker: EmbeddedBroker, client: Client, partitions: int
) -> None:
    """Payloads, tombstones, and messages that name the transaction, in one call."""
    if partitions:
        broker.create_partitioned_topic("t", partitions)
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        async with client.transaction() as transaction:
            made = OutgoingMessage(b"made", key="k", transaction=transaction.id)
            ids = await producer.send_many([b"%d" % n for n in range(2500)], transaction=transaction)
            ids = [
                *ids,
                *await producer.send_many([b"x", None, made, bytearray(b"y")], transaction=transaction),
            ]
            with pytest.raises(trio.TooSlowError):
                with trio.fail_after(0.05):
                    await consumer.receive()
        received = [await consumer.receive() for _ in range(2504)]
        assert {message.message_id for message in received} == set(ids)
        assert sorted(message.data for message in received) == sorted(
            [*(b"%d" % n for n in range(2500)), b"x", b"", b"made", b"y"]
        )


async def test_one_of_many_messages_names_no_transaction(client: Client) -> None:
    """`send_many` does not send it outside, and sends the messages before it inside the transaction."""
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        async with client.transaction() as transaction:
            with pytest.raises(InvalidMessage, match="name it there, too"):
                await producer.send_many([b"x", OutgoingMessage(b"y")], transaction=transaction)
            with trio.move_on_after(0.05) as waited:
                await consumer.receive()
            assert waited.cancelled_caught
        assert (await consumer.receive()).data == b"x"
        assert producer.statistics().confirmed == 1


async def test_a_transaction_is_not_its_id(client: Client) -> None:
    async with client.create_producer("t") as producer:
        async with client.transaction() as transaction:
            for send in (producer.send, producer.enqueue):
                with pytest.raises(LocalProtocolError, match="not TransactionId"):
                    await send(b"x", transaction=transaction.id)  # type: ignore[arg-type]
            with pytest.raises(LocalProtocolError, match="not TransactionId"):
                await producer.send_many([b"x"], transaction=transaction.id)  # type: ignore[arg-type]


async def test_a_transaction_of_another_client_is_refused(broker: EmbeddedBroker, client: Client) -> None:
    """The ids of two clusters may be equal."""
    async with (
        open_broker() as elsewhere,
        open_client(elsewhere.url, transactions=True) as other,
        other.create_producer("t") as producer,
        other.subscribe("t", "s", "shared") as shared,
        other.subscribe("t", "x", "exclusive") as exclusive,
        client.transaction() as foreign,
        other.transaction() as own,
    ):
        assert foreign.id == own.id
        with pytest.raises(LocalProtocolError, match=r"transaction \(0,0\) is another client's"):
            await producer.send(b"x", transaction=foreign)
        with pytest.raises(LocalProtocolError, match="another client's"):
            await producer.enqueue(b"x", transaction=foreign, key="k")
        with pytest.raises(LocalProtocolError, match="another client's"):
            producer.enqueue_nowait(b"x", transaction=foreign)
        await producer.send(b"x", transaction=own)
        await producer.send(b"y")
        await own.commit()
        message = await shared.receive()
        with pytest.raises(LocalProtocolError, match="another client's"):
            shared.acknowledge(message, transaction=foreign)
        last = await exclusive.receive()
        with pytest.raises(LocalProtocolError, match="another client's"):
            exclusive.acknowledge_cumulative(last, transaction=foreign)
        assert producer.statistics().messages_sent == 2


async def test_an_acknowledgement_takes_no_id_of_a_transaction(client: Client) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.transaction() as transaction,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        for acknowledge in (consumer.acknowledge, consumer.acknowledge_cumulative):
            with pytest.raises(LocalProtocolError, match=r"made by client\.transaction, not TransactionId"):
                acknowledge(message, transaction=transaction.id)  # type: ignore[arg-type]


async def test_an_end_within_the_block_is_the_end(client: Client) -> None:
    for end in ("commit", "abort"):
        async with client.transaction() as transaction:
            await getattr(transaction, end)()
            with pytest.raises(TransactionNotOpen):
                await transaction.commit()


async def test_an_abort_in_the_background_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsar_trio")
    with pytest.raises(ZeroDivisionError):
        async with client.transaction():
            raise ZeroDivisionError
    assert "transaction (0,0) is aborted: ZeroDivisionError" in caplog.text


async def test_an_exception_after_the_timeout_comes_out_as_it_is(client: Client) -> None:
    with pytest.raises(ZeroDivisionError):
        async with client.transaction(timeout=0.05):
            await trio.sleep(0.2)
            raise ZeroDivisionError


async def test_an_exception_after_the_end_of_the_client(broker: EmbeddedBroker) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_client(broker.url, transactions=True) as client:
            async with client.transaction():
                await client.aclose()
                raise ZeroDivisionError


async def test_commands_after_the_end_of_the_client(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url, transactions=True) as client:
        transaction_of = client.transaction()
    with pytest.raises(ResourceClosed):
        async with transaction_of:
            raise AssertionError("it was opened")


async def test_what_a_client_without_transactions_says(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url) as client:
        with pytest.raises(LocalProtocolError, match="transactions=True"):
            async with client.transaction():
                raise AssertionError("it was opened")


async def test_a_broker_without_transactions() -> None:
    async with (
        open_broker(transaction_coordinators=0) as broker,
        open_client(broker.url, transactions=True) as client,
    ):
        with pytest.raises(NotSupported, match="transactionCoordinatorEnabled"):
            async with client.transaction():
                raise AssertionError("it was opened")


async def test_a_wrong_timeout(client: Client) -> None:
    with pytest.raises(InvalidConfiguration, match="timeout"):
        async with client.transaction(timeout=0):
            raise AssertionError("it was opened")
