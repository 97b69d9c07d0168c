"""`Broker`: the root machine of a single-node Pulsar broker.

Bytes, facts and the time go in; bytes, decisions and the next deadline come out. It owns the connections, the
topics and the journal, and gives administrators their commands. It has no socket, no clock and no database:
`Persist` asks the adapter to make records durable, and nothing is confirmed to a client before that.

Peers cannot make it raise; administrators can, by their own mistakes, which raise `LocalProtocolError` (or a
subclass) and change nothing.
"""

from collections.abc import Sequence

from ..core.context import Context
from ..model.config import nanoseconds_of
from ..model.errors import NotAllowed, TopicNotFound
from ..model.topic_name import TopicName
from .administration.admin import Administration
from .administration.inspection import counted
from .administration.ownership import OwnedTopics, Owner
from .administration.topic_admin import NO_ROOM_FOR_TOPICS
from .config import BrokerConfig
from .outputs import CLIENT_LEFT, Output
from .policies import Policies
from .rates import Rates
from .records import BrokerStarted, PoliciesSaved, TenantSaved
from .serving import lookups, publishing, subscribing
from .serving import topic_list_watch as topic_watch
from .serving.connection import Connection, Handler
from .serving.topic_list_watch import TopicNames, Topics, Watchers
from .storage.journal import Journal
from .storage.store import StoredState
from .topics.nonpersistent import NonPersistentTopic
from .topics.producers import going_away
from .topics.schemas import Schemas
from .topics.topic import Topic

AnyTopic = Topic | NonPersistentTopic

HANDLERS: dict[int, Handler] = {
    **lookups.HANDLERS,
    **topic_watch.HANDLERS,
    **publishing.HANDLERS,
    **subscribing.HANDLERS,
}
"""What each command of a connected client does; every other command is ignored."""

FIRST_NAMESPACES = ("public/default", "pulsar/system")
"""What a fresh broker has, as a fresh cluster does."""


class Broker(Administration, OwnedTopics):
    """One node. `state` is what `Store.load()` gave, `wall_time` the milliseconds since 1970 at `now`.

    `owner`: for one node of several; `state` then holds only the topics that this one serves, and which
    topics there are is told by `topic_made` and `topic_gone`.
    """

    def __init__(
        self,
        now: int,
        config: BrokerConfig,
        state: StoredState | None = None,
        *,
        seed: int,
        wall_time: int,
        owner: Owner | None = None,
    ) -> None:
        self.config = config
        self.owner = owner
        self._leaving = set()
        self._departed = {}
        self.context: Context[Output] = Context(now, seed)
        self._wall_offset = wall_time - now // 1_000_000
        self.keepalive_interval = nanoseconds_of(config.keepalive_interval)
        self.liveness_timeout = nanoseconds_of(config.liveness_timeout)
        self.failover_delay = nanoseconds_of(config.failover_delay)
        self.deduplication_inactivity = nanoseconds_of(config.deduplication_inactivity)
        self._housekeeping_interval = nanoseconds_of(config.housekeeping_interval)
        self._housekeeping = self.context.deadlines.slot(self._keep_house)
        self.journal = Journal(self.context, nanoseconds_of(config.cursor_flush_interval))
        self.links: dict[int, Connection] = {}
        self._last_words: dict[int, list[bytes]] = {}
        """What dead connections still have to write."""
        state = state if state is not None else StoredState()
        self._next_ledger_id = state.next_ledger_id
        self._incarnation = state.incarnation + 1
        self._names_given = 0
        self.defaults = config.policies()
        self.tenants = dict(state.tenants)
        """Tenant -> the roles of its administrators."""
        self.policies = dict(state.policies)
        """By namespace (`tenant/namespace`, all that exist) and by full topic name (those that have some)."""
        self.partitions = dict(state.partitions)
        self.properties = dict(state.properties)
        self.grants = dict(state.grants)
        self.rates = Rates(now)
        self.watchers = Watchers(self)
        self.names = TopicNames(self.watchers.changed)
        """Of all topics that there are; of one node of several, whoever serves them."""
        self.all_topics: Topics[AnyTopic] = Topics(self.names if owner is None else None)
        self.schemas = Schemas(self.journal, state.schemas)
        self.journal.records.append(BrokerStarted(self._incarnation))
        for namespace in FIRST_NAMESPACES:
            self._found_namespace(namespace)
        for name, stored in state.topics.items():
            topic_name = TopicName.parse(name)
            self.all_topics[name] = Topic(self, topic_name, self.effective_policies(topic_name), stored)
        self._settle()

    def _found_namespace(self, namespace: str) -> None:
        tenant = namespace.split("/")[0]
        if tenant not in self.tenants:
            self.tenants[tenant] = ()
            self.journal.records.append(TenantSaved(tenant))
        if namespace not in self.policies:
            self.policies[namespace] = Policies()
            self.journal.records.append(PoliciesSaved(namespace, Policies()))

    # --- facts ----------------------------------------------------------------------------------------

    def accepted(self, now: int, link: int, peer: str) -> None:
        """A client connected. `link` is the adapter's number for it, `peer` its address as text."""
        self._begin(now)
        assert link not in self.links, "a link's number is used twice"
        self.links[link] = Connection(self, link, peer, HANDLERS)

    def receive_data(self, now: int, link: int, data: bytes) -> None:
        """Bytes came. Never raises for what they are; unknown links are ignored."""
        self._begin(now)
        connection = self.links.get(link)
        if connection is not None:
            connection.receive_data(data)
        self._settle()

    def receive_eof(self, now: int, link: int) -> None:
        """The peer will send nothing more."""
        self._begin(now)
        connection = self.links.get(link)
        if connection is not None:
            connection.die(CLIENT_LEFT)
        self._settle()

    def disconnected(self, now: int, link: int, reason: str) -> None:
        """The connection is gone; `reason` is for people."""
        self._begin(now)
        connection = self.links.get(link)
        if connection is not None:
            connection.lost()
        self._last_words.pop(link, None)
        self._settle()

    def persisted(self, now: int, write: int) -> None:
        """The records of `Persist(write, …)` are durable."""
        self._begin(now)
        self.journal.persisted(write)
        self._settle()

    def handle_deadline(self, now: int) -> None:
        """Time has passed; too early or once too often is harmless."""
        self._begin(now)
        self.context.deadlines.run(now)
        self._settle()

    def _begin(self, now: int) -> None:
        self.context.now = now

    def _settle(self) -> None:
        if self._housekeeping.when is None and self.all_topics:
            self._housekeeping.set(self.context.now + self._housekeeping_interval)
        self.journal.settle()

    def shutdown(self, now: int) -> None:
        """Write what only time would have written, and end every connection."""
        self._begin(now)
        self.journal.flush_cursors()
        for connection in list(self.links.values()):
            connection.die("the broker shuts down")
        self._settle()

    # --- drains ---------------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return bool(self.context.outputs)

    def next_output(self) -> Output | None:
        """What to do next, in order; None when there is nothing."""
        outputs = self.context.outputs
        return outputs.popleft() if outputs else None

    def data_to_send(self, link: int) -> Sequence[bytes]:
        """Chunks to write, each handed out once.

        May produce outputs: dispatch goes on when a slow peer reads.
        """
        connection = self.links.get(link)
        if connection is None:
            return self._last_words.pop(link, [])
        chunks = connection.take_outbox()
        self._settle()
        return chunks

    def wants_read(self, link: int) -> bool:
        """Whether the adapter should go on reading this link; `ResumeReading` tells when it may again."""
        connection = self.links.get(link)
        return connection is not None and connection.wants_read

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is wanted; None is never."""
        return self.context.deadlines.next()

    # --- for the machines -----------------------------------------------------------------------------

    @property
    def wall_time(self) -> int:
        """Milliseconds since 1970, at the input being handled."""
        return self._wall_offset + self.context.now // 1_000_000

    def wall_time_of(self, moment: int) -> int:
        """Milliseconds since 1970, of a moment in the nanoseconds that `now` counts."""
        return self._wall_offset + moment // 1_000_000

    @property
    def link_count(self) -> int:
        return len(self.links)

    def connection_dead(self, connection: Connection, final_bytes: list[bytes]) -> None:
        """A connection ended, by itself or not."""
        del self.links[connection.link]
        if final_bytes:
            self._last_words[connection.link] = final_bytes

    def next_ledger_id(self) -> int:
        ledger_id = self._next_ledger_id
        self._next_ledger_id += 1
        return ledger_id

    def new_producer_name(self) -> str:
        """Unique over all topics and restarts (rule BROKER-37)."""
        self._names_given += 1
        return f"{self.config.cluster}-{self._incarnation}-{self._names_given - 1}"

    def effective_policies(self, topic: TopicName) -> Policies:
        """The topic's own, then those of its partitioned topic, then its namespace's, then the broker's."""
        policies = self.policies.get(topic.namespace_name, Policies()).over(self.defaults)
        for name in dict.fromkeys((str(topic.base), str(topic))):
            own = self.policies.get(name)
            if own is not None:
                policies = own.over(policies)
        return policies

    def check_namespace(self, namespace: str) -> None:
        """Raises `TopicNotFound` where the namespace does not exist (seen: java-unknown-namespace)."""
        if namespace not in self.policies:
            raise TopicNotFound("Namespace not found")

    def partitions_for(self, topic: TopicName, create: bool) -> int:
        """Number of partitions, 0 for none. Raises `TopicNotFound` (WIRE-03)."""
        if topic.partition >= 0:
            return 0
        name = str(topic)
        partitions = self.partitions.get(name)
        if partitions is not None:
            return partitions
        if name in self.all_topics:
            return 0
        policies = self.effective_policies(topic)
        if not create or not policies.auto_topic_creation:
            raise TopicNotFound(f"Topic {name} does not exist")
        if policies.auto_topic_partitions:
            self._check_room(topic.namespace_name, policies.auto_topic_partitions)
            self._create_partitions(topic, policies.auto_topic_partitions)
            return policies.auto_topic_partitions
        return 0

    def topic_for_use(self, name: TopicName, create: bool) -> AnyTopic:
        """The topic of a PRODUCER or SUBSCRIBE, made if need be. Raises the refusal."""
        text = str(name)
        topic = self.all_topics.get(text)
        if topic is not None:
            if topic.closing:
                raise going_away()
            return topic
        self.check_namespace(name.namespace_name)
        self.check_served(text)
        if text in self.partitions:
            raise NotAllowed(f"{text} is a partitioned topic: use its partitions")
        partitions = self.partitions.get(str(name.base)) if name.partition >= 0 else None
        if partitions is None:
            if not create or not self.effective_policies(name).auto_topic_creation:
                raise TopicNotFound(f"Topic {text} does not exist")
        elif name.partition >= partitions:
            raise TopicNotFound(f"Topic {text} does not exist: {name.base} has fewer partitions")
        if len(self.all_topics) >= self.config.max_topics:
            raise NotAllowed("Exceed maximum number of topics")
        if partitions is None:
            self._check_room(name.namespace_name, 1)
        return self.make_topic(name)

    def has_room(self, namespace: str, count: int) -> bool:
        """Say if the policies of the namespace allow `count` more topics in it."""
        most = self.policies[namespace].max_topics
        return not most or self.names.count(namespace) + count <= most

    def _check_room(self, namespace: str, count: int) -> None:
        if not self.has_room(namespace, count):
            raise NotAllowed(NO_ROOM_FOR_TOPICS)

    def make_topic(self, name: TopicName) -> AnyTopic:
        policies = self.effective_policies(name)
        topic: AnyTopic
        if name.persistent:
            topic = Topic(self, name, policies, None)
        else:
            topic = NonPersistentTopic(self, name, policies)
        self.all_topics[str(name)] = topic
        return topic

    def topic_names(self, namespace: str) -> list[str]:
        """Full names, sorted, system topics left out (WIRE-04)."""
        return self.names.listed(namespace)

    def _keep_house(self) -> None:
        """What happens by time alone: rates, expiry, retention, forgetting."""
        self.rates.update(self.context.now, counted(self.all_topics.values()))
        for topic in list(self.all_topics.values()):
            if isinstance(topic, Topic):
                topic.run_housekeeping()
            elif not topic.producers.by_name and not topic.subscriptions:
                del self.all_topics[topic.name]
        self._housekeeping.set(self.context.now + self._housekeeping_interval)
