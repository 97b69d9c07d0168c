"""A broker, or a peer in between, against a client: one test for each lever that it has.

Each lever is pulled as hard as it goes. What comes out is a declared error or nothing, on that one link. The
client holds no more memory than the configuration allows.
"""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fuzz.accounts import read_everything
from fuzz.draws import Draws
from fuzz.payloads import CODECS, LIES, bomb, header, sealed
from fuzz.trees import LENGTH, START_GROUP, varint
from pulsar_sansio import (
    CompressionType,
    ConsumerSpec,
    ProducerSpec,
    SubscriptionType,
    TooManyPartitions,
    TooManyRedirects,
    client_outputs,
)
from pulsar_sansio.client.connecting import connection
from pulsar_sansio.client.delivery import permits
from pulsar_sansio.client.delivery.permits import MAX_ENTRIES_BEYOND_GRANT
from pulsar_sansio.wire import (
    Ack,
    MessageCommand,
    compress,
    encode_batch_payloads,
    encode_command,
    encode_ping,
    encode_pong,
    proto,
)
from tests.client.script import (
    SECOND,
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
    frame_success,
)

LIMIT = 16 * 1024
MIB = 1024 * 1024
QUEUE = 10

CONSUMER = ConsumerSpec("demo", "s", SubscriptionType.SHARED, receiver_queue_size=QUEUE)
PRODUCER = ProducerSpec("demo", batching=None, send_timeout=0)


def subscribed(**options: Any) -> tuple[Script, int, int]:
    """A client with one consumer: script, link and consumer."""
    script = Script(max_message_size=LIMIT)
    consumer = script.client.subscribe(script.now, replace(CONSUMER, **options))
    link = script.ready_link(max_message_size=LIMIT)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    script.feed(link, frame_success(asked.request_id))
    assert isinstance(script.said()[-1], client_outputs.ConsumerReady)
    script.sent(link, Command.FLOW)
    return script, link, consumer


def message(payload: bytes, entry_id: int = 0, **fields: Any) -> bytes:
    return MessageCommand(0, 1, entry_id, payload=payload, **fields).encode()


def feed_unread(script: Script, link: int, data: bytes) -> None:
    """Feed bytes to the client, and leave what it writes unread."""
    script.client.receive_data(script.now, link, data)


def held(act: Callable[[], object]) -> tuple[int, int]:
    """Bytes that are held after it and were not before, and the most on the way."""
    tracemalloc.start()
    try:
        act()
        gc.collect()
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def why_ended(script: Script) -> str:
    """The reason for which the one link was ended."""
    [reason] = [output.reason for output in script.said() if isinstance(output, client_outputs.Disconnect)]
    return reason


def is_alive(script: Script, link: int) -> bool:
    return link in script.client.links


def validation_error(script: Script, link: int) -> int | None:
    """Return the validation error of the one ACK by which the client tells that it cannot use an entry."""
    [ack] = [command for kind, command in script.commands(link) if kind == Command.ACK]
    assert isinstance(ack, Ack)
    return ack.validation_error


# --- frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [LIMIT + 10 * 1024 + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_frame_over_the_limit_ends_the_link_before_any_of_it_is_there(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, size.to_bytes(4, "big"))
    assert "over the limit" in why_ended(script)


def test_a_limit_beyond_belief_is_not_believed() -> None:
    """A client may have to hold, and inflate a payload to, as many bytes as a broker announces."""
    script = Script(max_announced_message_size=LIMIT)
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link(max_message_size=2**31 - 1)
    script.feed(link, (LIMIT + 10 * 1024 + 1).to_bytes(4, "big"))
    assert "over the limit" in why_ended(script)


@pytest.mark.parametrize("size", [0, 3, 4])
def test_a_frame_too_small_for_anything(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, size.to_bytes(4, "big") + bytes(8))
    assert not is_alive(script, link)


@pytest.mark.parametrize("size", [100, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1])
def test_a_command_larger_than_its_frame(size: int) -> None:
    script, link, _ = subscribed()
    script.feed(link, (20).to_bytes(4, "big") + size.to_bytes(4, "big") + bytes(16))
    assert "cannot hold a command" in why_ended(script)


def test_what_is_held_of_a_frame_that_does_not_end_is_one_frame() -> None:
    script, link, _ = subscribed()

    def drip() -> None:
        script.feed(link, (LIMIT + 1000).to_bytes(4, "big") + (10).to_bytes(4, "big"))
        for _ in range(LIMIT // 100):
            script.feed(link, bytes(100))

    now, _ = held(drip)
    assert is_alive(script, link)
    assert now < 4 * LIMIT


def test_a_byte_now_and_then_is_no_sign_of_life() -> None:
    """A peer that never completes a frame is dropped like one that is silent."""
    script, link, _ = subscribed()
    script.feed(link, (1000).to_bytes(4, "big") + (10).to_bytes(4, "big"))
    for _ in range(70):
        script.advance(1.0)
        if not is_alive(script, link):
            break
        script.feed(link, b"x")
    assert not is_alive(script, link)


# --- payloads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", sorted(set(LIES) - {"chunks"}))
def test_an_entry_that_lies_costs_at_most_itself(lie: str) -> None:
    """Headers, batches and codecs of which something is wrong: the link lives, the consumer goes on, and what
    was delivered can be looked at."""
    script, link, consumer = subscribed()
    for seed in range(40 if lie != "tiny messages" else 3):
        payload = LIES[lie](Draws.of_seed(seed), LIMIT)
        if len(payload) > LIMIT:
            continue  # no broker would have taken it
        script.feed(link, message(payload, seed))
        assert is_alive(script, link)
        closed = [output for output in script.said() if isinstance(output, client_outputs.Closed)]
        if closed:  # it looked like a chunk
            script, link, consumer = subscribed()
        for each in script.client.take(script.now, consumer, 100_000):
            read_everything(each)
    script.feed(link, message(sealed(header(), b"good"), 10_000))
    assert [each.data for each in script.client.take(script.now, consumer, 10)] == [b"good"]


@pytest.mark.parametrize("count", [0, -1, 2, 4, 2**20, 2**31 - 1, -(2**31)])
def test_a_batch_that_lies_about_its_number_of_messages(count: int) -> None:
    """Nothing is allocated for what is only said."""
    script, link, consumer = subscribed()
    payload = sealed(header(num_messages_in_batch=count), encode_batch_payloads([b"a", b"b", b"c"], 0))
    _, peak = held(lambda: script.feed(link, message(payload)))
    assert peak < 100_000
    assert script.client.available(consumer) == 0
    assert validation_error(script, link) == proto.CommandAck.BatchDeSerializeError


@pytest.mark.parametrize("said", ["little", "limit", "everything", "more than anything"])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_bomb_goes_off_within_the_limit(codec: int, said: str) -> None:
    """Never more than one message of the greatest size comes out, whatever the codec and the size stated."""
    script, link, consumer = subscribed()
    data = bomb(codec)[: LIMIT + 5000]
    sizes = {"little": 10, "limit": LIMIT, "everything": 4 * MIB, "more than anything": 2**32 - 1}
    payload = sealed(header(compression=codec, uncompressed_size=sizes[said]), data)
    _, peak = held(lambda: script.feed(link, message(payload)))
    assert peak < 12 * LIMIT
    assert is_alive(script, link)
    assert script.client.available(consumer) == 0
    too_large = said in ("everything", "more than anything")
    expected = (
        proto.CommandAck.UncompressedSizeCorruption if too_large else proto.CommandAck.DecompressionError
    )
    assert validation_error(script, link) == expected


def chunk(uuid: str, payload: bytes, **fields: Any) -> bytes:
    fields = {"num_chunks_from_msg": 100, "chunk_id": 0, "total_chunk_msg_size": 100 * MIB, **fields}
    return message(sealed(header(uuid=uuid, **fields), payload))


def test_a_chunked_message_of_two_gigabytes_is_not_waited_for() -> None:
    script, link, consumer = subscribed()
    lie = {"num_chunks_from_msg": 2**31 - 1, "total_chunk_msg_size": 2**31 - 1}
    _, peak = held(lambda: script.feed(link, chunk("u", b"abc", **lie)))
    assert peak < 100_000
    assert is_alive(script, link)
    assert script.client.arrival_counters(consumer).chunks_oversized == 1


def test_what_a_chunked_message_promises_is_not_reserved_and_the_begun_ones_are_counted() -> None:
    """Ten may be incomplete at a time; an eleventh takes the oldest one's place."""
    size = 12_000
    frames = [chunk(f"u-{number}", bytes(size)) for number in range(100)]
    for _ in ("the process makes once what it needs", "measured"):
        script, link, consumer = subscribed()

        def feed(script: Script = script, link: int = link) -> None:
            for frame in frames:
                script.feed(link, frame)

        _, peak = held(feed)
    assert peak < 20 * size
    assert is_alive(script, link)
    assert script.client.arrival_counters(consumer).chunks_dropped == 90


def test_times_of_another_age_are_delivered_and_decide_nothing() -> None:
    script, link, consumer = subscribed()
    payload = sealed(header(event_time=2**64 - 1, deliver_at_time=-(2**63)), b"x")
    script.feed(link, message(payload))
    [delivered] = script.client.take(script.now, consumer, 10)
    assert (delivered.data, delivered.event_time) == (b"x", 2**64 - 1)


# --- more than was asked for -------------------------------------------------------------------------


def test_messages_beyond_the_permits() -> None:
    """A broker may overshoot by what it had read ahead; one that ignores permits loses the link, and what is
    held until then is the queue and that excess."""
    script, link, consumer = subscribed()
    payload = sealed(header(), b"x" * 1000)
    frames = 0

    def flood() -> None:
        nonlocal frames
        while is_alive(script, link):
            script.feed(link, message(payload, frames))
            frames += 1

    now, _ = held(flood)
    assert "after its permits were used up" in why_ended(script)
    assert frames == QUEUE + MAX_ENTRIES_BEYOND_GRANT + 1
    assert now < frames * (1000 + 2048)
    assert script.client.available(consumer) == frames - 1


@pytest.mark.parametrize("codec", [CompressionType.NONE, *CODECS], ids=lambda codec: codec.name)
def test_the_bytes_that_a_consumer_can_be_made_to_hold(
    codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/limits.md: the queue's number of the largest messages, and a fixed excess, which is counted as it
    is held and not as it came. The link ends there; what came before can still be taken."""
    beyond = 5 * LIMIT
    monkeypatch.setattr(permits, "MAX_BYTES_BEYOND_GRANT", beyond)
    script, link, consumer = subscribed()
    data = bytes(LIMIT)
    body, said = (data, 0) if codec is CompressionType.NONE else (compress(codec, data), LIMIT)
    payload = sealed(header(compression=codec, uncompressed_size=said), body)
    frames = 0

    def flood() -> None:
        nonlocal frames
        while is_alive(script, link):
            script.feed(link, message(payload, frames))
            frames += 1

    now, peak = held(flood)
    assert "after its permits were used up" in why_ended(script)
    assert frames in (QUEUE + 5, QUEUE + 6), "headers may count, too"
    bound = QUEUE * LIMIT + beyond + LIMIT
    assert (frames - 1) * LIMIT <= now <= bound + frames * 2048
    assert peak <= bound + 4 * LIMIT + frames * 2048, "and the frame that is being read"
    delivered = script.client.take(script.now, consumer, 100)
    assert sum(len(each.data) for each in delivered) == (frames - 1) * LIMIT


def test_the_most_objects_for_the_least_of_the_wire_beyond_the_permits() -> None:
    """Batches of six-byte messages: as many objects as there can be in a limited number of bytes."""
    script, link, _ = subscribed()
    count = 1000
    payload = sealed(header(num_messages_in_batch=count), b"\0\0\0\2\x18\0" * count)

    def flood() -> None:
        for entry_id in range(100):
            script.feed(link, message(payload, entry_id))

    now, _ = held(flood)
    assert now < 100 * (16 * len(payload) + 2048)


def test_messages_that_cost_no_permit_are_not_kept() -> None:
    """An ack set without a message, a batch of none: they may come without end, and nothing grows."""
    script, link, _ = subscribed(acknowledgement_group_size=100)
    batch = sealed(header(num_messages_in_batch=2), encode_batch_payloads([b"a", b"b"], 0))
    empty = sealed(header(num_messages_in_batch=0), b"")

    def flood() -> None:
        for entry_id in range(1000):
            script.feed(link, message(batch, entry_id, ack_set=0), message(empty, 10_000 + entry_id))
            script.commands(link)
            script.history.clear()

    now, _ = held(flood)
    assert is_alive(script, link)
    assert now < 50_000


def test_pings_without_end_whose_answers_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One PONG for each, which takes less memory than the PING did; and at some point it is enough."""
    most = 100_000
    monkeypatch.setattr(connection, "MAX_UNREAD_ANSWERS", most)
    script, link, _ = subscribed()
    pings = 0

    def flood() -> None:
        nonlocal pings
        while is_alive(script, link):
            feed_unread(script, link, encode_ping() * 100)
            pings += 100

    now, _ = held(flood)
    assert pings * len(encode_pong()) < most + 100 * len(encode_pong())
    assert now < most
    assert "does not read the answers" in why_ended(script)


def test_a_broker_that_sends_rubbish_and_reads_no_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broken entry is answered by an ACK that says why. What waits to be written has an end."""
    most = 100_000
    assert most <= connection.MAX_UNREAD_ANSWERS
    monkeypatch.setattr(connection, "MAX_UNREAD_ANSWERS", most)
    script, link, _ = subscribed()
    rubbish = message(b"rubbish") * 100

    def flood() -> None:
        for _ in range(1000):
            feed_unread(script, link, rubbish)
            if not is_alive(script, link):
                return

    flood()
    script.drain()
    assert "does not read the answers" in why_ended(script)
    assert len(script.written[link]) < most + 100 * 100


def test_commands_of_the_future_without_end() -> None:
    script, link, _ = subscribed()
    frame = b"\0\0\0\x07\0\0\0\x03\x08\xc8\x01"

    def flood() -> None:
        for _ in range(10):
            feed_unread(script, link, frame * 200)

    now, _ = held(flood)
    assert is_alive(script, link)
    assert script.commands(link) == []
    assert now < 10_000


def test_receipts_that_nobody_asked_for() -> None:
    """For a producer that is not there, for a message that is confirmed already, a second time: nothing.
    For a message that was not sent yet: the link ends, and everything is sent again."""
    script = Script()
    producer, link = script.ready_producer(PRODUCER)
    script.client.send(script.now, producer, b"a", WALL)
    script.feed(link, frame_receipt(0, producer_id=77), frame_receipt(2**64 - 1, producer_id=77))
    assert script.said() == []
    script.feed(link, frame_receipt(0))
    [receipts] = script.said()
    assert isinstance(receipts, client_outputs.Receipts)
    assert len(receipts.message_ids) == 1
    script.feed(link, frame_receipt(0), frame_receipt(5), frame_receipt(2**64 - 1))
    assert script.said() == [], "nothing is waiting, so nothing is ahead"
    script.client.send(script.now, producer, b"b", WALL)
    script.feed(link, frame_receipt(0))
    assert script.said() == [], "behind"
    script.feed(link, frame_receipt(2))
    assert "was not confirmed" in why_ended(script)


def test_errors_for_messages_and_requests_that_nobody_made() -> None:
    script = Script()
    _, link = script.ready_producer(PRODUCER)
    script.feed(
        link,
        frame_send_error(5, 22, producer_id=77),
        frame_send_error(5, 22),
        frame_error(12345, 1),
        frame_error(2**64 - 1, 1),
        frame_success(12345),
        frame_producer_success(12345),
    )
    assert script.said() == []
    assert is_alive(script, link)


def test_an_answer_of_another_kind_than_was_asked_for() -> None:
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    asked = script.sent(link, Command.PARTITIONED_METADATA)
    script.feed(link, frame_success(asked.request_id))
    assert "instead of" in why_ended(script)


def test_words_without_end_are_cut() -> None:
    """An error is kept, logged and shown."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, 16, "x" * MIB))
    [failed] = script.said()
    assert isinstance(failed, client_outputs.ProducerFailed)
    assert len(str(failed.error)) < 5000


# --- round and round ---------------------------------------------------------------------------------


def test_redirects_without_end() -> None:
    """From broker to broker: the lookup gives up after the configured number, and begins again no faster than
    its backoff allows."""
    script = Script(max_lookup_redirects=20, operation_timeout=5.0)
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    hops = 0
    failed: list[client_outputs.ProducerFailed] = []
    for _ in range(100_000):
        script.drain()
        outputs = script.said()
        failed += [output for output in outputs if isinstance(output, client_outputs.ProducerFailed)]
        for output in outputs:
            if isinstance(output, client_outputs.Connect):
                script.open(output.link)
                script.feed(output.link, frame_connected())
        asked = False
        for each in script.client.links:
            for kind, command in script.commands(each):
                if kind == Command.LOOKUP:
                    asked = True
                    hops += 1
                    url = f"pulsar://hop-{hops % 7}:6650"
                    script.feed(each, frame_lookup(command.request_id, url, redirect=True))
        if failed:
            break
        if not asked and not script.client.has_output:
            script.advance(0.05)
    [last] = failed
    assert isinstance(last.error.__cause__, TooManyRedirects)
    # 100 ms, 200 ms, … within five seconds: six or seven attempts of 21 questions.
    assert 21 <= hops <= 8 * 21
    assert len(script.client.links) <= 8


@pytest.mark.slow
def test_redirects_to_ever_new_hosts_for_an_hour() -> None:
    """Each hop is another connection, which answers every PING; who was attached once tries for ever. What is
    not used any more is closed, so the connections are those of the last attempts and not of all."""
    script = Script(max_lookup_redirects=20)
    _, link = script.ready_producer(PRODUCER)
    script.feed(link, frame_close_producer(0))
    hops = most = 0
    end = script.now + 3600 * SECOND
    while script.now < end:
        busy = False
        for output in script.said():
            if isinstance(output, client_outputs.Connect):
                script.open(output.link)
                script.feed(output.link, frame_connected())
                busy = True
        for each in list(script.client.links):
            for kind, command in script.commands(each):
                if kind == Command.PING:
                    script.feed(each, encode_pong())
                elif kind == Command.LOOKUP:
                    hops += 1
                    url = f"pulsar://hop-{hops}:6650"
                    script.feed(each, frame_lookup(command.request_id, url, redirect=True))
                    busy = True
        most = max(most, len(script.client.links))
        script.history.clear()
        if not busy:
            due = script.client.next_deadline()
            assert due is not None
            script.advance(max(0.0, (due - script.now) / SECOND))
    assert hops > 1000
    assert most <= 10 * 21


def test_a_lookup_that_leads_back_to_who_was_asked() -> None:
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    script.check_partitions(link)
    hops = 0
    while asked := [command for kind, command in script.commands(link) if kind == Command.LOOKUP]:
        hops += 1
        script.feed(link, frame_lookup(asked[0].request_id, "pulsar://broker:6650", redirect=True))
    assert hops == 21


def test_closed_and_sent_elsewhere_without_end() -> None:
    """CLOSE_PRODUCER that names a broker is followed at once, but not for ever without a pause."""
    script = Script()
    producer, link = script.ready_producer(PRODUCER)
    attempts = 0
    for _ in range(1000):
        asked = [command for kind, command in script.commands(link) if kind == Command.PRODUCER]
        attempts += len(asked)
        for command in asked:
            script.feed(link, frame_producer_success(command.request_id))
        script.feed(link, frame_close_producer(0, "pulsar://broker:6650"))
    assert attempts == 20
    assert is_alive(script, link)
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)
    assert producer in {output.id for output in script.said() if isinstance(output, client_outputs.Detached)}


def test_requests_that_are_over_are_not_kept_behind_one_that_is_not() -> None:
    """The queue of timeouts is in the order of asking, and its first may wait for half a minute."""
    script, link, consumer = subscribed()
    script.client.partitions(script.now, "another")
    script.sent(link, Command.PARTITIONED_METADATA)
    payload = sealed(header(), b"x")

    def talk() -> None:
        for entry_id in range(1500):
            script.feed(link, message(payload, entry_id))
            script.client.acknowledge(script.now, consumer, script.client.take(script.now, consumer, 1))
            request = script.client.flush_acknowledgements(script.now, consumer)
            for kind, command in script.commands(link):
                if kind == Command.ACK:
                    answer = proto.CommandAckResponse(consumer_id=0, request_id=command.request_id)
                    script.feed(link, encode_command(Command.ACK_RESPONSE, answer))
            assert script.said()[-1] == client_outputs.RequestDone(request, None)
            script.history.clear()

    now, _ = held(talk)
    assert now < MIB


# --- the handshake -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, -1, 5, 2**31 - 1])
def test_an_old_broker_does_not_turn_off_checks(version: int) -> None:
    """Below protocol version 6 the C++ client takes messages without a checksum, and below 1 it sends no
    PING. Here neither depends on what the broker says it is."""
    script = Script()
    consumer = script.client.subscribe(script.now, CONSUMER)
    link = script.ready_link(version=version)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    script.feed(link, frame_success(asked.request_id))
    wrong = sealed(header(), b"x")[:-1] + b"y"
    script.feed(link, message(wrong))
    assert script.client.available(consumer) == 0
    script.commands(link)
    script.advance(31)
    script.sent(link, Command.PING)
    script.advance(31)
    assert not is_alive(script, link)


def test_a_challenge_ends_the_link_and_says_nothing() -> None:
    """This client has no credentials yet, and gives none away."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.expect_one(client_outputs.Connect).link
    script.open(link)
    script.commands(link)
    challenge = proto.CommandAuthChallenge(server_version="x")
    challenge.challenge.auth_method_name = "token" * 1000
    challenge.challenge.auth_data = bytes(64 * 1024)
    script.feed(link, encode_command(Command.AUTH_CHALLENGE, challenge))
    assert len(why_ended(script)) < 300
    assert script.commands(link) == []


@pytest.mark.parametrize("count", [10_001, 2**31 - 1, 2**32 - 1])
def test_a_topic_of_thousands_of_millions_of_partitions(count: int) -> None:
    """For a producer and for who asks: an error that names the limit, and nothing is made for any of them."""
    script = Script()
    script.client.open_producer(script.now, PRODUCER)
    link = script.ready_link()
    _, peak = held(lambda: script.check_partitions(link, count))
    [failed] = script.said()
    assert isinstance(failed, client_outputs.ProducerFailed)
    assert isinstance(failed.error, TooManyPartitions)
    assert f"{count} partitions, allowed are 10000 (max_partitions)" in str(failed.error)
    request = script.client.partitions(script.now, "demo")
    _, peak_of_asking = held(lambda: script.check_partitions(link, count))
    [refused] = script.said()
    assert isinstance(refused, client_outputs.RequestFailed)
    assert (refused.request, type(refused.error)) == (request, TooManyPartitions)
    assert max(peak, peak_of_asking) < 100_000


def test_as_many_partitions_as_are_allowed() -> None:
    script = Script(max_partitions=20_000)
    request = script.client.partitions(script.now, "demo")
    link = script.ready_link()
    script.check_partitions(link, 20_000)
    assert script.said() == [client_outputs.RequestDone(request, 20_000)]


# --- tricks of protobuf ------------------------------------------------------------------------------


@pytest.mark.parametrize("deep", [200, 3000])
@pytest.mark.parametrize("wire_type", [LENGTH, START_GROUP])
def test_messages_inside_messages_without_end(wire_type: int, deep: int) -> None:
    """Messages nest in a position, where the schema allows it, and in an unknown field: no stack is
    exhausted."""
    nested = b""
    for _ in range(deep):
        if wire_type == LENGTH:
            nested = b"\x08\x01\x10\x01\x3a" + varint(len(nested)) + nested
        else:
            nested = b"\x9b\x06" + nested + b"\x9c\x06"
    position = b"\x08\x01\x10\x01" + (b"\x3a" + varint(len(nested)) if wire_type == LENGTH else b"") + nested
    body = b"\x08\x00\x12" + varint(len(position)) + position
    command = b"\x08\x09\x4a" + varint(len(body)) + body
    script, link, _ = subscribed()
    script.feed(link, (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command)
    assert not is_alive(script, link)


def test_text_that_is_not_text_is_kept_in_messages() -> None:
    """Properties of a stranger come out as they were, and can be sent on."""
    script, link, consumer = subscribed()
    metadata = header() + b"\x22\x08\x0a\x01\xff\x12\x03a\xc0\x80"
    script.feed(link, message(sealed(metadata, b"x")))
    [delivered] = script.client.take(script.now, consumer, 10)
    [(name, value)] = delivered.properties.items()
    assert name.encode("utf-8", "surrogateescape") == b"\xff"
    assert value.encode("utf-8", "surrogateescape") == b"a\xc0\x80"


def test_text_that_is_not_text_ends_the_link_in_commands() -> None:
    script, link, _ = subscribed()
    command = b"\x08\x0e\x72\x07\x08\x01\x10\x01\x1a\x01\xff"
    script.feed(link, (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command)
    assert "not UTF-8" in why_ended(script)
