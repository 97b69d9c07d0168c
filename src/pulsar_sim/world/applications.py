"""`Applications`: the applications of a world, by kind.

Owns their lists. The clients that they use, and the phases that tell them what to do, belong to `world`.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.config import SubscriptionType

from ..apps.asking_app import AskingApp
from ..apps.client_process import User
from ..apps.consumer_app import ConsumerApp
from ..apps.multi_topics_app import MultiTopicsApp
from ..apps.nonpersistent_app import NonPersistentApp
from ..apps.producer_app import ProducerApp
from ..apps.roaming.roaming_app import RoamingApp
from ..apps.roaming.roaming_process import RoamingProcess
from ..apps.seeking.multi_topics_seeker import MultiTopicsSeeker
from ..apps.seeking.single_topic_seeker import SingleTopicSeeker
from ..apps.table_view_app import TableViewApp
from ..apps.transacting.transacting_consumer import TransactingConsumer
from ..apps.transacting.transacting_process import TransactingProcess
from ..apps.transacting.transactor import Transactor
from ..apps.transient_app import TransientApp
from ..apps.transient_subscriber import TransientSubscriber

if TYPE_CHECKING:
    from .world import World


class Applications:
    """The applications of a world; there are none before `start`."""

    def __init__(self) -> None:
        self.producers: list[ProducerApp] = []
        self.consumers: list[ConsumerApp] = []
        self.groups: list[MultiTopicsApp] = []
        self.transient_subscribers: list[TransientSubscriber] = []
        self.single_topic_seekers: list[SingleTopicSeeker] = []
        self.tables: list[TableViewApp] = []
        self.nonpersistent: list[NonPersistentApp] = []
        self.multi_topics_seekers: list[MultiTopicsSeeker] = []
        self.roaming: list[RoamingApp] = []
        """At most one application, whose client changes between clusters."""
        self.asking: list[AskingApp] = []
        """At most one application, which asks much at once."""
        self.transacting: list[TransactingConsumer] = []
        """The consumers whose messages are acknowledged in transactions."""
        self.transactors: list[Transactor] = []
        """At most one application, which opens transactions."""

    def start(self, world: "World") -> None:
        """Make and start the applications of the world's profile. The world has its clients already."""
        profile = world.profile
        self.producers = [ProducerApp(world, index, plan) for index, plan in enumerate(profile.producers)]
        self.consumers = [ConsumerApp(world, index, plan) for index, plan in enumerate(profile.consumers)]
        self.groups = [
            MultiTopicsApp(world, group, index, plan)
            for group, each in enumerate(profile.groups)
            for index, plan in enumerate(each.consumers)
        ]
        self.transient_subscribers = [
            TransientSubscriber(world, index, plan)
            for index, plan in enumerate(profile.transient_subscribers)
        ]
        self.single_topic_seekers = [
            SingleTopicSeeker(world, index, plan) for index, plan in enumerate(profile.single_topic_seekers)
        ]
        self.tables = [TableViewApp(world, index, plan) for index, plan in enumerate(profile.tables)]
        self.nonpersistent = [
            NonPersistentApp(world, index, plan) for index, plan in enumerate(profile.nonpersistent_apps)
        ]
        self.multi_topics_seekers = [
            MultiTopicsSeeker(world, index, plan) for index, plan in enumerate(profile.multi_topics_seekers)
        ]
        if isinstance(host := world.hosts[-1], RoamingProcess):
            self.roaming = [RoamingApp(world, host)]
        if profile.web is not None and profile.web.crowd:
            self.asking = [AskingApp(world, world.hosts[0], profile.web.crowd)]
        if isinstance(host := world.hosts[-1], TransactingProcess):
            self._add_transactions(world, host)
        for user in self.users:
            user.start()

    def _add_transactions(self, world: "World", host: TransactingProcess) -> None:
        account = world.transactions
        assert account is not None
        for name, topic, kind in host.plan.subscriptions:
            for _ in range(1 if kind is SubscriptionType.EXCLUSIVE else host.plan.consumers):
                index = len(self.transacting)
                consumer = TransactingConsumer(world, host, index, account, topic, name)
                self.transacting.append(consumer)
        self.transactors = [Transactor(world, host, account, self.transacting)]

    @property
    def receivers(self) -> list[ConsumerApp]:
        """The applications that must receive everything, from one topic or from several."""
        return [*self.consumers, *self.groups]

    @property
    def lasting(self) -> list[ProducerApp | ConsumerApp]:
        """The applications whose messages and subscriptions remain."""
        return [*self.producers, *self.receivers]

    @property
    def transient(self) -> list[TransientApp[Any]]:
        """The applications that leave no subscription behind."""
        return [
            *self.transient_subscribers,
            *self.single_topic_seekers,
            *self.tables,
            *self.multi_topics_seekers,
            *self.nonpersistent,
            *self.roaming,
            *self.transacting,
        ]

    @property
    def users(self) -> list[User]:
        """All applications that use a client."""
        return [*self.lasting, *self.transient, *self.asking, *self.transactors]
