"""The official client and a broker whose memory is full."""

from pulsar_trio import open_broker
from tests.official.client import RECEIVE_TIMEOUT, in_thread, official_client


async def test_refused_messages_are_sent_again_when_there_is_room() -> None:
    """BROKER-41."""
    async with open_broker(max_stored_bytes=20_000) as broker:
        received = await in_thread(_send_and_receive, broker.url)
    assert received == [b"%02d" % number * 500 for number in range(40)]


def _send_and_receive(url: str) -> list[bytes]:
    """Send more than the broker may store; acknowledge what comes. Return the payloads, each once."""
    with official_client(url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", batching_enabled=False)
        for number in range(40):
            producer.send_async(b"%02d" % number * 500, lambda result, message_id: None)
        received: list[bytes] = []
        while len(received) < 40:
            message = consumer.receive(timeout_millis=RECEIVE_TIMEOUT)
            if message.data() not in received:
                received.append(message.data())
            consumer.acknowledge(message)
        return received
