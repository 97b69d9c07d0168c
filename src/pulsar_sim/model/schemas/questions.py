"""`Questions`: the clients' questions for definitions, and the messages that wait for an answer.

Owns which question of which client failed when, as frames and the clock show it. One question for a version
of a topic is open at a time, and none is asked while its answer is kept (INV-S4).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...engine.clock import Clock
from ...engine.failures import ViolationError
from ..records.message_position import Position

Key: TypeAlias = tuple[str, str, bytes]
"""A client process, the name of a topic without its partition, and a version."""


PAUSE = 1_600_000_000
"""Nanoseconds for which a client takes the failure of a question for that of the next one: a second, and what
its timer may be late."""


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question that was written over a wire."""

    key: Key
    asked_at: int


@dataclass(slots=True, eq=False)
class VersionAnswers:
    """The outcomes of the questions for one version."""

    failed_at: int = -1
    """Virtual time of the last failure."""
    keepers: list[Callable[[], bool]] = field(default_factory=list)
    """Consumers that were open when the definition arrived: while one of them is, the client keeps it."""


def whole(topic: str) -> str:
    """Return the name of a topic without its partition."""
    return topic.partition("-partition-")[0]


class Questions:
    """All questions of a world. `timeout`: nanoseconds after which a client gives a question up."""

    def __init__(self, timeout: int, clock: Clock) -> None:
        self._timeout = timeout
        self._clock = clock
        self._open: dict[tuple[int, int], OpenQuestion] = {}
        """Questions by wire and request id."""
        self._answers: dict[Key, VersionAnswers] = {}
        self._clients: dict[str, str] = {}
        """Consumer -> its client process."""
        self._unanswerable: dict[tuple[str, str], None] = {}
        """Consumers and topics that were served by a broker too old for questions."""
        self._arrived: dict[tuple[str, str, Position], int] = {}
        """Entries that no application has taken, by consumer and topic, with the time of their arrival."""

    # --- what the wires show ---

    def subscribes(self, consumer: str, client: str, topic: str, answered: bool) -> None:
        """`answered`: the broker knows GET_SCHEMA."""
        self._clients[consumer] = client
        if not answered:
            self._unanswerable[consumer, topic] = None

    def arrived(self, consumer: str, topic: str, position: Position) -> bool:
        """Return True for an entry that has arrived for the first time."""
        key = consumer, topic, position
        first = key not in self._arrived
        self._arrived.setdefault(key, self._clock.now)
        return first

    def asked(self, wire: int, request_id: int, client: str, topic: str, version: bytes) -> None:
        """INV-S4: a client asks once for what several consumers need, and not for what it knows."""
        key = client, whole(topic), version
        now = self._clock.now
        for question in self._open.values():
            if question.key == key and now < question.asked_at + self._timeout:
                raise ViolationError("INV-S4", f"{client} asks twice for version {version.hex()} of {topic}")
        known = self._answers.get(key)
        if known is not None and any(is_open() for is_open in known.keepers):
            raise ViolationError(
                "INV-S4", f"{client} asks for version {version.hex()} of {topic}, and has it"
            )
        self._open[wire, request_id] = OpenQuestion(key, now)

    def answered(
        self,
        wire: int,
        request_id: int,
        failed: bool,
        keepers: Callable[[str], list[Callable[[], bool]]],
    ) -> None:
        """An answer has arrived. `keepers` returns functions that tell which consumers of a topic are
        open."""
        question = self._open.pop((wire, request_id), None)
        if question is None:
            return
        if self._gives_up(question) or failed:
            self._answer(question.key).failed_at = self._clock.now
        else:
            self._answer(question.key).keepers = keepers(question.key[1])

    def lost(self, wire: int) -> None:
        """A wire is gone, and with it the questions that were asked over it. That alone makes no value
        unavailable."""
        for key in [key for key in self._open if key[0] == wire]:
            self._gives_up(self._open.pop(key))

    def _gives_up(self, question: OpenQuestion) -> bool:
        """True when the client has waited too long for an answer."""
        given_up = question.asked_at + self._timeout
        if self._clock.now < given_up:
            return False
        answers = self._answer(question.key)
        answers.failed_at = max(answers.failed_at, given_up)
        return True

    def _answer(self, key: Key) -> VersionAnswers:
        return self._answers.setdefault(key, VersionAnswers())

    # --- what applications see ---

    def taken(self, consumer: str, topic: str, position: Position) -> int:
        """An application has taken a message of the entry. Return the time of its arrival."""
        return self._arrived.get((consumer, topic, position), 0)

    def is_unsettled(self, consumer: str, topic: str, version: bytes) -> bool:
        """True when no question of the consumer's client for that version was ever answered, or failed."""
        if (consumer, topic) in self._unanswerable:
            return False
        key = self._clients[consumer], whole(topic), version
        for question in list(self._open.values()):
            if question.key == key:
                self._gives_up(question)
        return key not in self._answers

    def is_open(self, consumer: str, topic: str, version: bytes) -> bool:
        """True while the consumer's client waits for the answer to a question for that version."""
        key = self._clients[consumer], whole(topic), version
        return any(question.key == key for question in self._open.values())

    def has_failed(self, consumer: str, topic: str) -> bool:
        """True when any question of the consumer's client has failed, or may not be asked."""
        client = self._clients[consumer]
        for question in list(self._open.values()):
            self._gives_up(question)
        failed = any(key[0] == client and each.failed_at >= 0 for key, each in self._answers.items())
        return failed or (consumer, topic) in self._unanswerable

    def is_settled(self, consumer: str, topic: str, version: bytes, arrived_at: int) -> bool:
        """True when a message of that version, which arrived then, waits for its definition no more, for
        certain: the client has it, or a question for it has failed since."""
        if (consumer, topic) in self._unanswerable:
            return True
        key = self._clients[consumer], whole(topic), version
        for question in list(self._open.values()):
            if question.key == key:
                self._gives_up(question)
        known = self._answers.get(key)
        return known is not None and (
            known.failed_at >= max(0, arrived_at) or any(is_open() for is_open in known.keepers)
        )

    def failed_since(self, consumer: str, topic: str, version: bytes, arrived_at: int) -> bool:
        """True when a question for that version has failed since then or just before, or may not be asked."""
        if (consumer, topic) in self._unanswerable:
            return True
        key = self._clients[consumer], whole(topic), version
        for question in list(self._open.values()):
            if question.key == key:
                self._gives_up(question)
        return key in self._answers and self._answers[key].failed_at >= max(0, arrived_at - PAUSE)
