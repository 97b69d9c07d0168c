"""`Script`: the steps of a conversation so far, and what its clients have opened."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from pulsar_sansio.wire import proto
from tests.differential.steps import NAMESPACE, Frame, Open, Pause, Step

Type = proto.BaseCommand.Type
SubType = proto.CommandSubscribe.SubType

FAILOVER_PAUSE = 1.4
"""Seconds until a broker has told the consumers of a Failover subscription which of them is active."""


class OpenProducer(NamedTuple):
    """A producer that a client has opened. `name`: None where the broker chooses it."""

    connection: int
    producer_id: int
    topic: str
    name: str | None


class OpenConsumer(NamedTuple):
    """A consumer that a client has opened. `kind`: the type of its subscription."""

    connection: int
    consumer_id: int
    topic: str
    subscription: str
    kind: int


class Sent(NamedTuple):
    """A message. `size`: the number of messages in its batch; 1 for one that is no batch."""

    number: int
    topic: str
    size: int


def topic(name: str) -> str:
    return f"persistent://{NAMESPACE}/{name}"


class Script:
    """The script of one conversation. `kinds` and `subscriptions` are those of its consumers."""

    def __init__(
        self, random: Random, topics: list[str], kinds: tuple[int, ...], subscriptions: tuple[str, ...]
    ) -> None:
        self.random = random
        self.topics = topics
        self.kinds = kinds
        self.subscriptions = subscriptions
        self.steps: list[Step] = []
        self.connections: list[int] = []
        self.opened = 0
        self.requests = 0
        self.producers: list[OpenProducer] = []
        self.consumers: list[OpenConsumer] = []
        self.sent: list[Sent] = []
        self.sequence_ids: dict[tuple[int, int], int] = {}
        self.ids = 0
        self.transactions = 0
        self.added: set[tuple[str, int]] = set()
        """Topics and transactions that have them."""
        self.watchers = 0
        self.found: set[str] = set()
        """Topics that were looked up; a Java broker serves no others."""

    def frame(self, connection: int, number: int, command: Any) -> None:
        self.steps.append(Frame(connection, number, command))

    def request(self) -> int:
        self.requests += 1
        return self.requests

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def topic(self) -> str:
        return self.random.choice(self.topics)

    def connection(self) -> int:
        return self.random.choice(self.connections)

    def find(self, connection: int, name: str) -> None:
        """Look a topic up before its first use."""
        if name not in self.found:
            self.found.add(name)
            command = proto.CommandLookupTopic(topic=name, request_id=self.request())
            self.frame(connection, Type.LOOKUP, command)

    def one_of(self, open_ones: list[Any], make: Callable[["Script"], None]) -> Any:
        """Return an open producer or consumer; the first one is made."""
        if not open_ones:
            make(self)
        return self.random.choice(open_ones)

    def connect(self) -> None:
        connection = self.opened
        self.opened += 1
        self.connections.append(connection)
        self.steps.append(Open(connection))
        self.frame(
            connection,
            Type.CONNECT,
            proto.CommandConnect(
                client_version="differential", protocol_version=21, auth_method_name="none", auth_data=b""
            ),
        )

    def lose(self, connection: int) -> None:
        """Forget a connection that has ended."""
        self.connections.remove(connection)
        self.producers = [each for each in self.producers if each.connection != connection]
        consumers = [each for each in self.consumers if each.connection == connection]
        self.consumers = [each for each in self.consumers if each.connection != connection]
        self.wait_failover(consumers)
        if not self.connections:
            self.connect()

    def wait_failover(self, consumers: list[OpenConsumer]) -> None:
        if any(each.kind == SubType.Failover for each in consumers):
            self.steps.append(Pause(FAILOVER_PAUSE))
