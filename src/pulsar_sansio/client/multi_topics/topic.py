"""`MemberTopic`: one of the topics of a consumer of several, with its partitions (rules MULTI-06, MULTI-15).

A record, not a machine: what happens to a member comes to the group, which changes this. It knows which
members the topic has, which of them are only being opened, and when to ask whether there are more partitions.
"""

from ...model.topic_name import TopicName
from ..connecting.lookup import Query
from .member import Member


class MemberTopic:
    """`partitions`: how many there are; 0 for a topic that is not partitioned, None while it is not known."""

    __slots__ = ("growth", "members", "missing", "name", "opened", "partitions", "query")

    def __init__(self, name: TopicName) -> None:
        self.name = name
        self.partitions: int | None = None
        self.members: dict[Member, None] = {}
        """All that have not ended."""
        self.missing: set[Member] = set()
        """Those that have to be ready before the topic is opened, or its growth complete."""
        self.opened = False
        self.growth: list[Member] = []
        """New partitions that are being opened."""
        self.query: Query | None = None
        """The question whether there are more partitions, while it is under way."""

    @property
    def may_grow(self) -> bool:
        """Whether it is worth asking."""
        return bool(self.partitions) and self.opened and not self.growth and self.query is None

    def is_joining(self, member: Member) -> bool:
        """Whether it has not joined, as others that come with it are not subscribed yet."""
        return not self.opened or member in self.growth

    def has(self, name: TopicName) -> bool:
        """Whether it is this topic, or one of the partitions that it is known to have."""
        if name == self.name:
            return True
        return name.base == self.name and 0 <= name.partition < (self.partitions or 0)

    def stop_asking(self) -> None:
        if self.query is not None:
            self.query.cancel()
            self.query = None
