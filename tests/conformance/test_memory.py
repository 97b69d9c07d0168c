"""The checker's memory is bounded: a full dictionary forgets the oldest item, and says so."""

from pulsar_sansio.conformance.memory import BoundedDict, Memory, TopicMemory


def test_a_full_dictionary_forgets_the_oldest_item() -> None:
    kept: BoundedDict[int, str] = BoundedDict(2)
    kept[1] = "a"
    kept[2] = "b"
    assert not kept.overflowed
    kept[3] = "c"
    assert (kept, kept.overflowed) == ({2: "b", 3: "c"}, True)


def test_a_changed_item_keeps_its_age() -> None:
    kept: BoundedDict[int, str] = BoundedDict(2)
    kept[1] = "a"
    kept[2] = "b"
    kept[1] = "new"
    assert (kept, kept.overflowed) == ({1: "new", 2: "b"}, False)
    kept[3] = "c"
    assert kept == {2: "b", 3: "c"}


def test_clients_share_what_is_known_of_topics_and_nothing_else() -> None:
    topics = TopicMemory(limit=1)
    one, other = Memory(topics), Memory(topics)
    one.topics.digests["t", 1, 2] = 5
    assert other.topics.digests == {("t", 1, 2): 5}
    assert one.producers is not other.producers
    assert Memory().topics is not topics
