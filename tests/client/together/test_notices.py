"""Notices: outputs for people, apart from the outputs for the application."""

from itertools import pairwise

import pytest

from pulsar_sansio.client.outputs import (
    NOTICES,
    Attached,
    Detached,
    LetterSent,
    PartitionEnded,
    PartitionsAdded,
    ProducerFailed,
    RequestAnswered,
    RequestSent,
    Retrying,
    SendFailed,
)
from pulsar_sansio.model.config import DeadLetterPolicy, ProducerSpec, TopicsPattern
from pulsar_sansio.model.errors import ConnectionLost, FrameError, TimedOut, TopicTerminated
from tests.client.broker_script import entry_bytes
from tests.client.letter_topics.letters_script import LettersScript
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_error,
    frame_partitions_failed,
    frame_producer_success,
)
from tests.client.topics_script import TopicsScript

WHAT = "producer 'p-1' on persistent://public/default/demo"
MILLISECOND = 1_000_000


def notice(script: Script, kind: type) -> object:
    """Check that there is one notice, of this kind, and return it."""
    script.drain()
    (only,) = script.notices
    script.notices.clear()
    assert type(only) is kind
    return only


class TestRetrying:
    def test_a_lost_connection_names_its_reason_and_the_next_attempt(self) -> None:
        script = Script()
        handle, link = script.ready_producer()
        script.lose(link, "reset by peer")
        detached = script.expect_one(Detached)
        said = notice(script, Retrying)
        assert isinstance(said, Retrying)
        assert (said.id, said.what, said.lost) == (handle, WHAT, True)
        assert said.error is detached.cause
        assert "broker:6650: reset by peer" in str(said.error)
        deadline = script.client.next_deadline()
        assert deadline is not None
        assert said.retry_in == deadline - script.now

    def test_every_attempt_that_fails_is_told_with_a_longer_wait(self) -> None:
        script = Script()
        script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        waits = []
        for number in range(1, 5):
            script.said()
            script.lose(number, "refused")
            said = notice(script, Retrying)
            assert isinstance(said, Retrying)
            assert not said.lost
            assert isinstance(said.error, ConnectionLost)
            waits.append(said.retry_in)
            script.advance(said.retry_in / 1e9)
        assert 95 * MILLISECOND <= waits[0] <= 100 * MILLISECOND
        assert all(2 * 0.9 * before < after for before, after in pairwise(waits))

    def test_a_producer_that_is_refused_for_now_tells_it(self) -> None:
        script = Script()
        script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        link = script.ready_link()
        script.check_partitions(link)
        script.find_topic(link)
        asked = script.sent(link, Command.PRODUCER)
        script.feed(link, frame_error(asked.request_id, 6, "not yet"))
        said = notice(script, Retrying)
        assert isinstance(said, Retrying)
        assert str(said.error) == "ServiceNotReady: not yet"

    def test_a_broker_that_names_the_next_one_is_followed_at_once(self) -> None:
        script = Script()
        _, link = script.ready_producer()
        script.feed(link, frame_close_producer(0, "pulsar://other:6650"))
        script.said()
        said = notice(script, Retrying)
        assert isinstance(said, Retrying)
        assert (said.retry_in, said.lost) == (0, True)

    def test_nothing_is_told_after_the_end(self) -> None:
        script = Script()
        handle, link = script.ready_producer()
        script.client.close(script.now, handle)
        script.lose(link)
        script.said()
        assert script.notices == []

    def test_a_question_about_partitions_that_fails(self) -> None:
        script = Script()
        request = script.client.partitions(script.now, "demo")
        link = script.ready_link()
        asked = script.sent(link, Command.PARTITIONED_METADATA)
        script.feed(link, frame_partitions_failed(asked.request_id, 6))
        said = notice(script, Retrying)
        assert isinstance(said, Retrying)
        assert (said.id, said.what) == (request, "the partitions of persistent://public/default/demo")

    def test_a_pattern_whose_topics_are_not_known(self) -> None:
        world = TopicsScript(TopicsPattern("persistent://public/default/t.*"))
        world.list_error = 6
        world.answer()
        said = notice(world.script, Retrying)
        assert isinstance(said, Retrying)
        assert said.id == world.handle
        assert "public/default" in said.what

    def test_each_partition_tells_for_the_whole(self) -> None:
        world = PartitionedScript(3)
        world.answer()
        (link,) = world.script.client.links
        world.script.lose(link)
        world.script.said()
        told = [each for each in world.script.notices if isinstance(each, Retrying)]
        assert [each.id for each in told] == [world.handle] * 3
        assert len({each.what for each in told}) == 3

    def test_the_producer_of_dead_letters_tells_too(self) -> None:
        s = LettersScript()
        s.message(1, redelivery_count=3)
        (asked,) = s.expect("PRODUCER")
        s.bytes(frame_error(asked.request_id, 6, "not yet"))
        s.pass_time(0)
        (said,) = s.notices
        assert isinstance(said, Retrying)
        assert "t-dead" in said.what


class TestTheCauseOfATimeout:
    def test_a_send_timeout_while_disconnected_has_it(self) -> None:
        script = Script()
        handle, link = script.ready_producer(send_timeout=5.0, batching=None)
        script.client.send(script.now, handle, b"x", WALL)
        script.lose(link, "reset by peer")
        (detached,) = script.said()
        assert isinstance(detached, Detached)
        failures: list[SendFailed] = []
        while not failures:
            script.advance(0.5)
            for number in script.client.links:
                script.lose(number, "refused")
            failures = [output for output in script.said() if isinstance(output, SendFailed)]
        (failed,) = failures
        assert isinstance(failed.error, TimedOut)
        assert isinstance(failed.error.__cause__, ConnectionLost)
        assert "refused" in str(failed.error.__cause__)
        assert "the producer is not connected" in str(failed.error)

    def test_while_connected_there_is_none(self) -> None:
        script = Script()
        handle, _ = script.ready_producer(send_timeout=5.0, batching=None)
        script.client.send(script.now, handle, b"x", WALL)
        script.advance(5.0)
        failed = script.expect_one(SendFailed)
        assert failed.error.__cause__ is None
        assert "not connected" not in str(failed.error)

    def test_a_producer_that_was_never_ready_has_it(self) -> None:
        script = Script(operation_timeout=1.0)
        script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        failures: list[ProducerFailed] = []
        while not failures:
            for number in script.client.links:
                script.lose(number, "refused")
            script.advance(0.1)
            failures = [output for output in script.said() if isinstance(output, ProducerFailed)]
        assert isinstance(failures[0].error.__cause__, ConnectionLost)


def test_a_dead_letter_is_told_when_its_copy_is_safe() -> None:
    s = LettersScript()
    s.message(7, redelivery_count=3)
    s.accept_producer()
    s.pass_time(0)
    s.sends()
    assert s.notices == []
    s.confirm(0)
    (sent,) = s.notices
    assert isinstance(sent, LetterSent)
    assert (sent.consumer, sent.topic) == (s.consumer, "persistent://public/default/t-dead")
    assert sent.message_id[:2] == (1, 7)


@pytest.mark.parametrize("times", [0, 1])
def test_a_message_for_later_is_told_only_where_it_becomes_a_dead_letter(times: int) -> None:
    s = LettersScript(retry=True, dead_letter=DeadLetterPolicy(1, "t-dead", "t-retry"))
    s.deliver(1, entry_bytes(b"m", properties=[("RECONSUMETIMES", str(times))]))
    (message,) = s.take()
    s.later(message, 1.0)
    s.accept_producer()
    s.pass_time(0)
    s.sends()
    s.confirm(0)
    assert [type(each) for each in s.notices] == [LetterSent] * times


@pytest.mark.parametrize("lazy", [False, True])
def test_partitions_that_come_are_told_when_messages_may_go_there(lazy: bool) -> None:
    world = PartitionedScript(2, partitions_update_interval=1.0, lazy_start=lazy)
    world.answer()
    world.partitions = 4
    world.pass_time(2.0)
    assert world.script.notices == [PartitionsAdded(world.handle, 4)]


def test_a_partition_that_ends_alone_is_told() -> None:
    world = PartitionedScript(2)
    world.answer()
    world.terminate(1)
    world.told()
    (ended,) = world.script.notices
    assert isinstance(ended, PartitionEnded)
    assert ended.topic.endswith("demo-partition-1")
    assert isinstance(ended.error, TopicTerminated)


class TestRequests:
    def test_they_are_told_only_when_the_driver_wants_them(self) -> None:
        script = Script()
        script.ready_producer()
        assert script.notices == []
        script.client.report_requests(True)
        script.ready_producer(link=1, name="p-2")
        names = [(type(each), each.command) for each in script.notices]  # type: ignore[union-attr]
        assert names == [
            (RequestSent, "PARTITIONED_METADATA"),
            (RequestAnswered, "PARTITIONED_METADATA_RESPONSE"),
            (RequestSent, "LOOKUP"),
            (RequestAnswered, "LOOKUP_RESPONSE"),
            (RequestSent, "PRODUCER"),
            (RequestAnswered, "PRODUCER_SUCCESS"),
        ]
        script.notices.clear()
        script.client.report_requests(False)
        script.ready_producer(link=1, name="p-3")
        assert script.notices == []

    def test_each_answer_has_the_id_of_its_request(self) -> None:
        script = Script()
        script.client.report_requests(True)
        script.ready_producer()
        sent = [(each.link, each.request) for each in script.notices if isinstance(each, RequestSent)]
        answered = [(each.link, each.request) for each in script.notices if isinstance(each, RequestAnswered)]
        assert sent == answered

    def test_refused_lost_and_not_answered(self) -> None:
        script = Script(operation_timeout=5.0)
        script.client.report_requests(True)
        _, link = script.ready_producer()
        script.notices.clear()
        for topic in ("refused", "late"):
            script.client.open_producer(script.now, ProducerSpec(topic=topic))
        refused, _ = script.sent(link, *[Command.PARTITIONED_METADATA] * 2)
        script.feed(link, frame_error(refused.request_id, 6, "no"))
        script.advance(5.0)
        outcomes = {each.request: each for each in script.notices if isinstance(each, RequestAnswered)}
        assert outcomes[refused.request_id].command == "ERROR"
        assert str(outcomes[refused.request_id].error) == "ServiceNotReady: no"
        script.notices.clear()
        script.client.partitions(script.now, "lost")
        lost = script.commands(link)[-1][1]
        script.lose(link)
        outcomes = {each.request: each for each in script.notices if isinstance(each, RequestAnswered)}
        assert outcomes[lost.request_id].command == "nothing"
        assert isinstance(outcomes[lost.request_id].error, ConnectionLost)


def test_a_driver_may_drop_them_all() -> None:
    """The application gets the outputs that it needs to act, with or without notices."""
    script = Script()
    handle, link = script.ready_producer()
    script.lose(link)
    script.expect_one(Detached)
    script.advance(0.1)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    script.expect(Attached(handle))
    assert all(type(each) in NOTICES for each in script.notices)


def test_a_port_for_something_else_is_named_in_the_reason() -> None:
    script = Script()
    script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    script.said()
    script.open(1)
    script.feed(1, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    script.said()
    said = notice(script, Retrying)
    assert isinstance(said, Retrying)
    assert isinstance(said.error.__cause__, FrameError)
    assert "the connection to broker:6650 ended" in str(said.error)
    assert "answers in HTTP" in str(said.error)
    assert "8080" in str(said.error)
    assert "6650" in str(said.error)
