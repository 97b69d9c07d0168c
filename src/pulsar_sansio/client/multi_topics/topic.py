"""`MemberTopic`: one of the topics of a consumer of several, with its partitions (rules MULTI-06, MULTI-15).

`MemberTopic` is a record; `PartitionGrowth` and the consumer change it. It knows the members of the topic,
the members that are being opened, and when to ask for more partitions.
"""

from ...model.topic_name import TopicName
from ..lookup.questions import Query
from .member import Member


class MemberTopic:
    """`partitions`: the number of partitions; 0 for a topic that is not partitioned, None while it is not
    known."""

    __slots__ = ("growth", "members", "missing", "name", "opened", "partitions", "query")

    def __init__(self, name: TopicName) -> None:
        self.name = name
        self.partitions: int | None = None
        self.members: dict[Member, None] = {}
        """All members that have not ended."""
        self.missing: set[Member] = set()
        """Members that have to be ready before the topic is opened, or its growth complete."""
        self.opened = False
        self.growth: list[Member] = []
        """New partitions that are being opened."""
        self.query: Query | None = None
        """The lookup for more partitions, while it is under way."""

    @property
    def may_grow(self) -> bool:
        """True when a lookup for more partitions makes sense now."""
        return bool(self.partitions) and self.opened and not self.growth and self.query is None

    def is_joining(self, member: Member) -> bool:
        """Tell whether a member has not joined yet, because members that join with it are not subscribed."""
        return not self.opened or member in self.growth

    def has(self, name: TopicName) -> bool:
        """Tell whether `name` is this topic, or one of its known partitions."""
        if name == self.name:
            return True
        return name.base == self.name and 0 <= name.partition < (self.partitions or 0)

    def cancel_query(self) -> None:
        if self.query is not None:
            self.query.cancel()
            self.query = None
