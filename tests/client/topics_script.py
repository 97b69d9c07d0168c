"""`TopicsScript`: a consumer of several topics, and a broker that answers its commands.

The broker knows the partitions of each topic. It opens, refuses or ignores each SUBSCRIBE as the test says,
and keeps later commands by topic.
"""

from collections.abc import Sequence
from typing import Any

from pulsar_sansio.client.multi_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_sansio.client.outputs import Connect, ConsumerReady, Disconnect, Output
from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType, TopicsPattern
from pulsar_sansio.wire import MessageCommand, encode_command, proto, topics_hash
from tests.client.broker_script import entry_bytes
from tests.client.script import (
    URL,
    Command,
    Script,
    frame_error,
    frame_lookup,
    frame_partitions,
    frame_partitions_failed,
    frame_success,
    name_of,
)

PREFIX = "persistent://public/default/"


def full(name: str) -> str:
    return name if "://" in name else PREFIX + name


class TopicsScript:
    """One client, one connection, one consumer. Topics are named by their last part.

    `partitions`: the numbers of partitions, of topics that have any. `refuse`: an error for each topic whose
    SUBSCRIBE is refused. `ignore`: topics that get no answer. The broker answers CLOSE_CONSUMER while
    `answer_closes`. It answers UNSUBSCRIBE with the error in `refuse_unsubscribe`, if there is one.
    """

    def __init__(
        self,
        topic: Any = ("a", "b"),
        partitions: dict[str, int] | None = None,
        *,
        script: Script | None = None,
        **spec: Any,
    ) -> None:
        self.script = script or Script()
        self.partitions = partitions or {}
        self.metadata_error: dict[str, int] = {}
        self.refuse: dict[str, int] = {}
        self.ignore: set[str] = set()
        self.answer_closes = True
        self.hold: set[int] = set()
        """Kinds of commands that wait in `held` until `answer_held`."""
        self.held: list[tuple[int, int, Any]] = []
        self.refuse_unsubscribe: dict[str, int] = {}
        self.asked: list[Any] = []
        """SUBSCRIBE commands in their order."""
        self.closed: list[str] = []
        self.questions: list[str] = []
        """Topics whose partitions the client asked for."""
        self.topic_of: dict[int, str] = {}
        self.consumer_of: dict[str, int] = {}
        self.granted: dict[str, int] = {}
        self.commands: list[tuple[str, str, Any]] = []
        """Other commands: kind, topic, the command itself."""
        self.outputs: list[Output] = []
        self.there: set[str] = set()
        """Names of topics and partitions in the broker's lists."""
        self.filters = True
        self.can_watch = True
        self.list_error: int | None = None
        self.watch_error: int | None = None
        self.lists: list[Any] = []
        self.watches: list[Any] = []
        self.watches_closed: list[int] = []
        kind = SubscriptionType.EXCLUSIVE
        spec = {"subscription": "s", "subscription_type": kind, "acknowledgement_group_time": 0.0, **spec}
        self.handle = self.script.client.subscribe(self.script.now, ConsumerSpec(topic, **spec))

    # --- the broker ---

    def answer(self) -> "TopicsScript":
        """Answer everything until the client is quiet."""
        quiet = False
        while not quiet:
            quiet = True
            for output in self.script.said():
                self.outputs.append(output)
                if isinstance(output, Connect):
                    quiet = False
                    self.script.open(output.link)
            for link in self.script.client.links:
                for kind, command in self.script.commands(link):
                    quiet = False
                    self._answer(link, kind, command)
        return self

    def answer_held(self, most: int = 100) -> None:
        """Answer so many of the commands that wait; the broker holds no later ones."""
        self.hold = set()
        due, self.held = self.held[:most], self.held[most:]
        for each in due:
            self._answer(*each)

    def _answer(self, link: int, kind: int, command: Any) -> None:
        if kind in self.hold:
            self.held.append((link, kind, command))
            return
        feed = self.script.feed
        match kind:
            case Command.CONNECT:
                connected = proto.CommandConnected(server_version="test", protocol_version=21)
                connected.feature_flags.supports_topic_watchers = self.can_watch
                feed(link, encode_command(Command.CONNECTED, connected))
            case Command.PARTITIONED_METADATA:
                name = command.topic.removeprefix(PREFIX)
                self.questions.append(name)
                if name in self.metadata_error:
                    feed(link, frame_partitions_failed(command.request_id, self.metadata_error[name]))
                else:
                    feed(link, frame_partitions(command.request_id, self.partitions.get(name, 0)))
            case Command.LOOKUP:
                feed(link, frame_lookup(command.request_id, URL))
            case Command.SUBSCRIBE:
                self.asked.append(command)
                name = command.topic.removeprefix(PREFIX)
                self.topic_of[command.consumer_id] = name
                self.consumer_of[name] = command.consumer_id
                if name in self.refuse:
                    feed(link, frame_error(command.request_id, self.refuse[name]))
                elif name not in self.ignore:
                    feed(link, frame_success(command.request_id))
            case Command.FLOW:
                name = self.topic_of[command.consumer_id]
                self.granted[name] = self.granted.get(name, 0) + command.message_permits
            case Command.CLOSE_CONSUMER:
                self.closed.append(self.topic_of[command.consumer_id])
                if self.answer_closes:
                    feed(link, frame_success(command.request_id))
            case Command.UNSUBSCRIBE:
                name = self.topic_of[command.consumer_id]
                self.commands.append(("UNSUBSCRIBE", name, command))
                if name in self.refuse_unsubscribe:
                    feed(link, frame_error(command.request_id, self.refuse_unsubscribe[name]))
                else:
                    feed(link, frame_success(command.request_id))
            case Command.GET_TOPICS_OF_NAMESPACE:
                self.lists.append(command)
                if self.list_error is not None:
                    feed(link, frame_error(command.request_id, self.list_error))
                else:
                    feed(link, self.frame_list(command))
            case Command.WATCH_TOPIC_LIST:
                self.watches.append(command)
                if self.watch_error is not None:
                    feed(link, frame_error(command.request_id, self.watch_error))
                else:
                    feed(link, self.frame_watching(command))
            case Command.WATCH_TOPIC_LIST_CLOSE:
                self.watches_closed.append(command.watcher_id)
                feed(link, frame_success(command.request_id))
            case Command.PING:
                feed(link, encode_command(Command.PONG, proto.CommandPong()))
            case _:
                self.commands.append((name_of(kind), self.topic_of[command.consumer_id], command))

    def frame_list(self, command: Any) -> bytes:
        """Answer GET_TOPICS_OF_NAMESPACE."""
        names = sorted(map(full, self.there))
        if self.filters:
            prefix = command.topics_pattern.split("://")[-1].removesuffix(".*")
            names = [name for name in names if name.split("://")[1].startswith(prefix)]
        known = topics_hash(names)
        changed = command.topics_hash != known
        response = proto.CommandGetTopicsOfNamespaceResponse(
            request_id=command.request_id,
            topics=names if changed else [],
            filtered=self.filters,
            topics_hash=known,
            changed=changed,
        )
        return encode_command(Command.GET_TOPICS_OF_NAMESPACE_RESPONSE, response)

    def frame_watching(self, command: Any) -> bytes:
        """Answer WATCH_TOPIC_LIST."""
        prefix = command.topics_pattern.split("://")[-1].removesuffix(".*")
        names = [name for name in sorted(map(full, self.there)) if name.startswith(f"persistent://{prefix}")]
        known = topics_hash(names)
        response = proto.CommandWatchTopicListSuccess(
            request_id=command.request_id,
            watcher_id=command.watcher_id,
            topic=names if command.topics_hash != known else [],
            topics_hash=known,
        )
        return encode_command(Command.WATCH_TOPIC_LIST_SUCCESS, response)

    def update(self, added: Sequence[str] = (), deleted: Sequence[str] = ()) -> None:
        """Send WATCH_TOPIC_UPDATE."""
        self.there = (self.there | set(added)) - set(deleted)
        command = proto.CommandWatchTopicUpdate(
            watcher_id=self.watches[-1].watcher_id,
            new_topics=map(full, added),
            deleted_topics=map(full, deleted),
            topics_hash="00000000",
        )
        self.say(Command.WATCH_TOPIC_UPDATE, command)

    @property
    def link(self) -> int:
        (link,) = self.script.client.links
        return link

    def feed(self, *frames: bytes) -> None:
        self.script.feed(self.link, *frames)
        self.answer()

    def deliver(self, name: str, *payloads: bytes, entry: int = 0) -> None:
        """Send messages of a topic or partition, each in an entry of its own."""
        consumer = self.consumer_of[name]
        self.feed(
            *(
                MessageCommand(consumer, 100 + consumer, number, payload=entry_bytes(payload)).encode()
                for number, payload in enumerate(payloads, entry)
            )
        )

    def say(self, kind: int, command: Any) -> None:
        self.feed(encode_command(kind, command))

    def close_by_broker(self, name: str) -> None:
        """Send CLOSE_CONSUMER of one topic."""
        close = proto.CommandCloseConsumer(consumer_id=self.consumer_of[name], request_id=2**64 - 1)
        self.script.feed(self.link, encode_command(Command.CLOSE_CONSUMER, close))

    def pass_time(self, seconds: float) -> None:
        """Let time pass while the broker answers."""
        while seconds > 0:
            self.script.advance(min(seconds, 1.0))
            seconds -= 1.0
            self.answer()

    # --- the application ---

    @property
    def machine(self) -> MultiTopicsConsumer:
        machine = self.script.client._handles.consumers[self.handle]
        assert isinstance(machine, MultiTopicsConsumer)
        return machine

    def receive(self) -> Any:
        message = self.script.client.receive(self.script.now, self.handle)
        self.answer()
        return message

    def receive_all(self) -> list[Any]:
        messages = []
        while (message := self.receive()) is not None:
            messages.append(message)
        return messages

    def take(self, limit: int = 1_000_000) -> Any:
        messages = self.script.client.take(self.script.now, self.handle, limit)
        self.answer()
        return messages

    def acknowledge(self, what: Any) -> None:
        self.script.client.acknowledge(self.script.now, self.handle, what)
        self.answer()

    def acknowledged(self) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return topic and positions of every ACK since the last call."""
        self.answer()
        return [(name, [id_[:2] for id_ in ack.message_ids]) for _, name, ack in self.said("ACK")]

    def said(self, kind: str | None = None) -> list[tuple[str, str, Any]]:
        """Return the commands since the last call, beyond opening and closing."""
        self.answer()
        commands, self.commands = self.commands, []
        assert kind is None or {each[0] for each in commands} <= {kind}
        return commands

    def told(self) -> list[Output]:
        """Return the outputs for the application since the last call."""
        self.answer()
        outputs, self.outputs = self.outputs, []
        return [output for output in outputs if not isinstance(output, Connect | Disconnect)]


PATTERN = TopicsPattern("w-.*")


def ready(topic: Any = ("a", "b"), partitions: dict[str, int] | None = None, **spec: Any) -> TopicsScript:
    """Open a consumer, and discard the outputs of its opening."""
    world = TopicsScript(topic, partitions, **spec).answer()
    assert isinstance(world.outputs[-1], ConsumerReady)
    world.outputs.clear()
    return world


def partitioned(**spec: Any) -> TopicsScript:
    return ready("p", {"p": 3}, **spec)


def found(*there: str, pattern: TopicsPattern = PATTERN, **spec: Any) -> TopicsScript:
    """Open a consumer of a pattern, with these topics at the broker."""
    world = TopicsScript(pattern, spec.pop("partitions", None), **spec)
    world.there = set(there)
    world.answer()
    assert ConsumerReady(world.handle, pattern.text) in world.outputs
    world.outputs.clear()
    return world


def topics(world: TopicsScript) -> list[str]:
    return [name.removeprefix(PREFIX) for name in world.machine.subscribed]
