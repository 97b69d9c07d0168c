"""The replication clusters of a message, and their effect on batches (metadata `replicate_to`)."""

from pulsar_sansio.model.config import NO_REPLICATION, BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.wire import unpack_payload
from tests.client.producing.sender import Sender
from tests.client.producing.test_open_batch import members

BATCHED = ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=100, max_delay=0.01))
BY_KEY = ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=100, max_delay=0.01, by_key=True))


def test_a_message_by_itself_names_its_clusters() -> None:
    """Rule GEO-02."""
    sender = Sender()
    for clusters in ((), NO_REPLICATION, ["us-west", "us-east"]):
        sender.send(OutgoingMessage(b"m", replicate_to=clusters))
    said = [tuple(unpack_payload(send.payload).metadata.replicate_to) for send in sender.sent()]
    assert said == [(), ("__local__",), ("us-west", "us-east")]


def test_messages_for_different_clusters_share_no_batch_and_keep_their_order() -> None:
    """An entry has one list of clusters; the Java client takes the first message's for all."""
    for spec in (BATCHED, BY_KEY):
        sender = Sender(spec=spec)
        append = sender.script.client.appender(sender.handle)
        for number, clusters in enumerate([(), (), ("a",), ("a",), NO_REPLICATION, (), ()]):
            payload = b"%d" % number
            message = OutgoingMessage(payload, replicate_to=clusters) if clusters else payload
            if append(message) < 0:
                sender.send(message)
        sender.script.client.push(sender.script.now, sender.handle)
        sends = sender.sent()
        said = [
            (
                tuple(unpack_payload(send.payload).metadata.replicate_to),
                [payload for _, payload in members(send)],
            )
            for send in sends
        ]
        assert said == [
            ((), [b"0", b"1"]),
            (("a",), [b"2", b"3"]),
            (("__local__",), [b"4"]),
            ((), [b"5", b"6"]),
        ]
