"""`Broker`: the root machine of a single-node Pulsar broker.

The adapter passes bytes, facts and the time in; bytes, decisions and the next deadline come out. The broker
owns the connections and the objects that serve clients and administrators. It has no socket, no clock and no
database: `Persist` asks the adapter to make records durable, and the broker confirms nothing to a client
before that.

Peers cannot make it raise. Administrators can, by their own mistakes, which raise `LocalProtocolError` (or a
subclass) and change nothing.
"""

from collections.abc import Callable, Sequence

from ..core.context import Context
from ..model.config import nanoseconds_of
from ..model.errors import TlsError
from ..model.topic_name import TopicName
from .administration.admin import Administration
from .administration.inspection import counted
from .administration.message_admin import MessageAdministration
from .administration.ownership import Ownership
from .administration.parts import Parts
from .administration.schema_admin import SchemaAdministration
from .administration.storage_admin import StorageAdministration
from .administration.subscription_admin import SubscriptionAdministration
from .administration.topic_admin import TopicAdministration
from .administration.transaction_admin import TransactionAdministration
from .config import BrokerConfig
from .coordinating.coordinators import Coordinators
from .faults.faults import Faults
from .metadata import Metadata
from .outputs import CLIENT_LEFT, Output
from .owner import Owner
from .rates import Rates
from .schemas.registry import Schemas
from .security.authenticator import Authenticator
from .security.authorization import Authorization
from .services import BrokerServices, LedgerIds, wall_text
from .serving import lookups, publishing, subscribing, topic_list_watch, transacting
from .serving.connection import Connection, Handler, Refusal
from .serving.topic_list_watch import Watchers
from .storage.store import EntryReader, StoredState
from .throttling.topic_rates import limiter_for
from .topics.registry import TopicRegistry
from .topics.topic import Topic
from .topics.topic_names import TopicNames

HANDLERS: dict[int, Handler] = {
    **lookups.HANDLERS,
    **topic_list_watch.HANDLERS,
    **publishing.HANDLERS,
    **subscribing.HANDLERS,
    **transacting.HANDLERS,
}
"""Command of a connected client -> its handler; every other command is ignored."""

REFUSALS: dict[int, Refusal] = {
    **lookups.REFUSALS,
    **topic_list_watch.REFUSALS,
    **publishing.REFUSALS,
    **subscribing.REFUSALS,
    **transacting.REFUSALS,
}
"""Command of a client -> its answer with an error."""


class Broker:
    """One node. `state`: the result of `Store.load()`; `wall_time`: milliseconds since 1970 at `now`.

    `owner`: for one node of several. `state` then holds only the topics that this node serves, and the
    embedder reports which topics exist by `ownership.topic_made` and `ownership.topic_gone`. One of several
    has no transactions. `ledger_ids`:
    called with the first id that is free, for an embedder whose nodes share ids. `reader`: `Store.reader`.
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
        ledger_ids: Callable[[int], LedgerIds] = LedgerIds,
        reader: EntryReader | None = None,
    ) -> None:
        state = state if state is not None else StoredState()
        self.config = config
        self.context: Context[Output] = Context(now, seed)
        self.services = BrokerServices(
            self.context,
            config,
            ledger_ids(state.next_ledger_id),
            state.incarnation + 1,
            wall_time,
            reader,
        )
        self.services.publish_limiter = limiter_for(self.context, config.broker_publish_rate, None)
        self.services.dispatch_limiter = limiter_for(self.context, config.broker_dispatch_rate, None)
        self._journal = self.services.journal
        self._housekeeping_interval = nanoseconds_of(config.housekeeping_interval)
        self._housekeeping = self.context.deadlines.slot(self._run_housekeeping)
        self.links: dict[int, Connection] = {}
        self.links_from: dict[str, int] = {}
        """IP address -> the number of its links."""
        self.accepted_connections = 0
        """The number of connections of clients since the start."""
        self._final_bytes: dict[int, list[bytes]] = {}
        """Link -> bytes of a connection that ended, not written yet."""
        self.metadata = Metadata(config, self._journal, state)
        settings = config.authentication
        self.authenticator = (
            None if settings is None else Authenticator(settings, lambda: self.services.wall_time)
        )
        self.authorization = Authorization(settings, self.metadata.tenants, self.metadata.grants)
        names = TopicNames()
        self.watchers = Watchers(self.services, names)
        self.topics = TopicRegistry(self.services, self.metadata, names, owner)
        self.schemas = Schemas(self._journal, state.schemas)
        self._rates = Rates(now)
        self.faults = Faults(self.context, seed, self.links, REFUSALS, self._settle)
        parts = Parts(self.services, self.metadata, self.topics, self.schemas, self._settle)
        self.ownership = Ownership(parts, self.links)
        self.administration = Administration(parts)
        self.schema_administration = SchemaAdministration(parts)
        self.topic_administration = TopicAdministration(parts, self._rates, self.ownership)
        self.message_administration = MessageAdministration(parts)
        self.storage_administration = StorageAdministration(parts)
        self.subscription_administration = SubscriptionAdministration(parts)
        for name, stored in state.topics.items():
            self.topics.restore(TopicName.parse(name), stored)
        count = config.transaction_coordinators if owner is None else 0
        self.coordinators = Coordinators(self.services, self.topics, self.authorization, count, state)
        self.transaction_administration = TransactionAdministration(parts, self.coordinators)
        self._settle()

    # --- facts ----------------------------------------------------------------------------------------

    def accepted(self, now: int, link: int, peer: str, certificate_role: str | None = None) -> None:
        """A client connected. `link`: the adapter's number for the connection; `peer`: the client's address
        as text; `certificate_role`: the common name of the client's certificate, which the adapter verified.
        """
        self._begin(now)
        assert link not in self.links, "a link's number is used twice"
        self.accepted_connections += 1
        connection = self.links[link] = Connection(self, link, peer, HANDLERS, certificate_role)
        self.links_from[connection.address] = self.links_from.get(connection.address, 0) + 1
        self.faults.attach(connection)

    def authenticate(self, now: int, method: str, data: bytes, certificate_role: str | None = None) -> str:
        """Return the role of credentials that come outside of Pulsar's protocol, such as over HTTP.

        Raises `AuthenticationError`. A broker without authentication gives an empty role.
        """
        self._begin(now)
        if self.authenticator is None:
            return ""
        return self.authenticator.role(method, data, certificate_role)

    def receive_data(self, now: int, link: int, data: bytes) -> None:
        """Bytes arrived. No bytes make this raise; unknown links are ignored."""
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
            connection.terminate(CLIENT_LEFT)
        self._settle()

    def disconnected(self, now: int, link: int, reason: str | TlsError) -> None:
        """The connection is closed; `reason` is for people."""
        self._begin(now)
        connection = self.links.get(link)
        if connection is not None:
            connection.disconnected()
        self._final_bytes.pop(link, None)
        self._settle()

    def persisted(self, now: int, write: int) -> None:
        """The records of `Persist(write, …)` are durable."""
        self._begin(now)
        self._journal.persisted(write)
        self._settle()

    def handle_deadline(self, now: int) -> None:
        """Run what is due. A call too early or once too often is harmless."""
        self._begin(now)
        self.context.deadlines.run(now)
        self._settle()

    def _begin(self, now: int) -> None:
        self.context.now = now

    def _settle(self) -> None:
        if self._housekeeping.when is None and self.topics.by_name:
            self._housekeeping.set(self.context.now + self._housekeeping_interval)
        self._journal.settle()

    def flush(self, now: int) -> None:
        """Hand the cursors that moved to the store, without waiting for `cursor_flush_interval`."""
        self._begin(now)
        self._journal.flush_cursors()
        self._settle()

    def shutdown(self, now: int) -> None:
        """Hand the cursors that moved to the store, and end every connection."""
        self._begin(now)
        self._journal.flush_cursors()
        for connection in list(self.links.values()):
            connection.terminate("the broker shuts down")
        self._settle()

    # --- drains ---------------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        """True when `next_output` returns an output."""
        return bool(self.context.outputs)

    def next_output(self) -> Output | None:
        """Return the next output, in order; None when there is none."""
        outputs = self.context.outputs
        return outputs.popleft() if outputs else None

    def data_to_send(self, link: int) -> Sequence[bytes]:
        """Return chunks to write, each of them once.

        May produce outputs: dispatch to a slow peer resumes.
        """
        connection = self.links.get(link)
        if connection is None:
            return self._final_bytes.pop(link, [])
        chunks = connection.take_outbox()
        self._settle()
        return chunks

    def wants_read(self, link: int) -> bool:
        """True while the adapter should read this link. After False, `ResumeReading` announces the change."""
        connection = self.links.get(link)
        return connection is not None and connection.wants_read

    def next_deadline(self) -> int | None:
        """The moment to call `handle_deadline`; None is never."""
        return self.context.deadlines.next()

    # --- calls of the machines ------------------------------------------------------------------------

    @property
    def wall_time(self) -> int:
        """The wall time at the input being handled, in ms since 1970."""
        return self.services.wall_time

    wall_text = staticmethod(wall_text)

    def connection_closed(self, connection: Connection, final_bytes: list[bytes]) -> None:
        """Discard a connection that ended; `final_bytes` are still to be written."""
        del self.links[connection.link]
        self.links_from[connection.address] -= 1
        if not self.links_from[connection.address]:
            del self.links_from[connection.address]
        if final_bytes:
            self._final_bytes[connection.link] = final_bytes

    def _run_housekeeping(self) -> None:
        """Update rates, expire and trim messages, and discard topics that are not used any more."""
        self._rates.update(self.context.now, counted(self.topics.by_name.values()))
        for topic in list(self.topics.by_name.values()):
            if isinstance(topic, Topic):
                rate = self._rates.of(topic)
                topic.publish_rate_measured(rate.messages_in, rate.bytes_in)
                topic.run_housekeeping()
            elif not topic.producers.by_name and not topic.subscriptions:
                del self.topics.by_name[topic.name]
        self.topic_administration.delete_inactive()
        self._housekeeping.set(self.context.now + self._housekeeping_interval)
