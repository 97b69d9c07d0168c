"""`Members`: coming and going of the consumers of several topics."""

from pulsar_sansio.client.multi_topics.members import Members
from tests.client.topics_script import PREFIX, TopicsScript, found, partitioned, ready, topics


def members(world: TopicsScript) -> Members:
    return world.machine._members


def test_there_is_one_for_each_topic_and_partition() -> None:
    assert sorted(members(ready()).by_topic) == [PREFIX + "a", PREFIX + "b"]
    assert sorted(members(partitioned()).by_topic) == [f"{PREFIX}p-partition-{index}" for index in range(3)]


def test_only_a_pattern_has_a_limit() -> None:
    """A broker decides how many topics match; the application names the others itself."""
    assert members(ready()).has_room(1_000_000)
    pattern = found("w-a", "w-b")
    limit = pattern.script.config.max_partitions
    assert members(pattern).has_room(limit - 2)
    assert not members(pattern).has_room(limit - 1)


def test_a_member_that_leaves_takes_its_messages_and_keeps_its_counts() -> None:
    world = found("w-a", "w-b")
    world.deliver("w-a", b"1", b"2")
    assert world.receive() is not None
    world.update(deleted=["w-a"])
    assert topics(world) == ["w-b"]
    assert world.receive_all() == [], "what waited of it is not delivered"
    assert world.script.client.consumer_statistics(world.handle).messages_received == 1
    assert PREFIX + "w-a" not in members(world).by_topic
    assert len(members(world).alive) == 1


def test_a_request_does_not_wait_for_a_member_that_leaves() -> None:
    world = found("w-a", "w-b", acknowledgement_group_time=3600.0)
    request = world.script.client.flush_acknowledgements(world.script.now, world.handle)
    world.update(deleted=["w-a"])
    world.answer()
    done = [output for output in world.told() if getattr(output, "request", None) == request]
    assert len(done) == 1


def test_members_that_join_later_have_the_blocks_of_processing() -> None:
    world = found("w-a")
    made: list[object] = []

    def processing(message: object) -> object:
        made.append(message)
        return "block"

    world.script.client.set_processing(world.handle, processing)  # type: ignore[arg-type]
    world.update(added=["w-b"])
    world.deliver("w-b", b"1")
    message = world.receive()
    assert message.processing() == "block"
    assert made == [message]


def test_each_is_explained_detached_ones_first() -> None:
    world = ready()
    world.close_by_broker("b")
    first, *lines = members(world).explain()
    assert first == "1 of 2 topics and partitions are connected"
    assert [line.split(":")[1].split("/")[-1] for line in lines] == ["b", "a"]
