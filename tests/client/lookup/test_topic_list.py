"""`TopicList` and `TopicListing`: a request for a namespace's topics, and the broker's answer."""

import pytest

from pulsar_sansio.client.lookup.topic_list import TopicList, TopicListing, listing, named_topics, parsed
from pulsar_sansio.model.config import TopicDomain
from pulsar_sansio.wire import proto

PREFIX = "persistent://public/default/"


@pytest.mark.parametrize(
    ("domain", "mode"),
    [
        (TopicDomain.PERSISTENT, proto.CommandGetTopicsOfNamespace.PERSISTENT),
        (TopicDomain.NON_PERSISTENT, proto.CommandGetTopicsOfNamespace.NON_PERSISTENT),
        (TopicDomain.ALL, proto.CommandGetTopicsOfNamespace.ALL),
    ],
)
def test_the_command_has_the_domain(domain: TopicDomain, mode: int) -> None:
    command = TopicList("public/default", domain).command(5)
    assert (command.request_id, command.namespace, command.mode) == (5, "public/default", mode)
    assert not command.HasField("topics_pattern")
    assert not command.HasField("topics_hash")


def test_the_pattern_and_the_known_hash_are_sent() -> None:
    """PATTERN-08: the broker filters, and leaves out a list that the client has."""
    wanted = TopicList("public/default", TopicDomain.ALL, "a.*", "12ab")
    command = wanted.command(1)
    assert (command.topics_pattern, command.topics_hash) == ("a.*", "12ab")
    assert str(wanted) == "the topics of public/default"


def test_equal_lists_are_one_question() -> None:
    first = TopicList("public/default", TopicDomain.ALL, "a.*")
    assert first == TopicList("public/default", TopicDomain.ALL, "a.*")
    assert len({first, TopicList("public/default", TopicDomain.ALL, "b.*")}) == 2


def test_an_old_broker_gives_no_hash() -> None:
    answer = proto.CommandGetTopicsOfNamespaceResponse(request_id=1, topics=["a"])
    assert listing(answer) == TopicListing(("a",), True, False, None)
    answer.topics_hash = ""
    answer.filtered = True
    answer.changed = False
    assert listing(answer) == TopicListing(("a",), False, True, "")


def test_partitions_are_folded_and_names_of_other_forms_left_out() -> None:
    names = (f"{PREFIX}b-partition-10", f"{PREFIX}a", f"{PREFIX}b-partition-0", "x://y", "")
    assert named_topics(TopicListing(names, True, False, None)) == [f"{PREFIX}a", f"{PREFIX}b"]
    assert parsed("x://y") is None
    assert str(parsed(f"{PREFIX}a")) == f"{PREFIX}a"
