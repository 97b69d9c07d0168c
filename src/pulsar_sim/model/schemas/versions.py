"""`Versions`: the versions that brokers have confirmed, and which definitions may follow each other.

Owns what a topic's strategy allows, computed from `Definition.reads`. A version that a broker returned to a
producer is durable: it never means another definition, and a definition has one version, until an
administrator deletes them (INV-S6). A definition is registered, and a consumer let in, as the strategy says
(INV-S7).
"""

from dataclasses import dataclass, field

from ...engine.failures import ViolationError
from .definition import COMPATIBLE, Definition

ANY = "ALWAYS_COMPATIBLE"
"""The strategy that lets every definition follow."""


@dataclass(slots=True, eq=False)
class ConfirmedVersions:
    """One topic."""

    known: dict[int, Definition] = field(default_factory=dict)
    """The confirmed versions since the last deletion."""
    tried: dict[Definition, int] = field(default_factory=dict)
    """Definitions that may have a version, each with the last version known when it was tried first: its own
    comes after that."""
    gone: int = -1
    """The last version known at a deletion: no number up to it is used again."""
    deleted_at: int = -1
    """Virtual time of the last deletion."""


class Versions:
    """The versions of all topics."""

    def __init__(self) -> None:
        self._topics: dict[str, ConfirmedVersions] = {}

    def of(self, topic: str) -> ConfirmedVersions:
        return self._topics.setdefault(topic, ConfirmedVersions())

    def try_out(self, topic: str, definition: Definition) -> None:
        """A broker is asked to register a definition."""
        found = self.of(topic)
        found.tried.setdefault(definition, max(found.known, default=-1))

    def delete(self, topic: str, now: int) -> None:
        """An administrator deletes all versions."""
        found = self.of(topic)
        found.gone = max([found.gone, *found.known])
        found.known.clear()
        found.tried.clear()
        found.deleted_at = now

    def may_be_forgotten(self, topic: str) -> None:
        """The broker of the topic dies: a deletion may not have been durable."""
        self.of(topic).gone = -1

    def returned(self, topic: str, version: bytes, definition: Definition, strategy: str) -> None:
        """INV-S6, INV-S7: a broker returns the version of a definition to a producer."""
        known = self.of(topic).known
        number = int.from_bytes(version, "big")
        if number <= self.of(topic).gone:
            raise ViolationError("INV-S6", f"{topic}: version {number} is used again after a deletion")
        if number in known:
            if known[number] is not definition:
                raise ViolationError(
                    "INV-S6", f"{topic}: version {number} is {definition.name}, it was {known[number].name}"
                )
            return
        if definition in known.values():
            raise ViolationError("INV-S6", f"{topic}: {definition.name} gets another version, {number}")
        before = self.of(topic).tried.get(definition, -1)
        if number <= before:
            raise ViolationError(
                "INV-S6", f"{topic}: version {number} is new, and {before} was there already"
            )
        for earlier, other in known.items():
            counts = earlier == number - 1 or (earlier < number and strategy.endswith("_TRANSITIVE"))
            if counts and not may_follow(definition, other, strategy):
                raise ViolationError(
                    "INV-S7", f"{topic}: {definition.name} follows {other.name} with the strategy {strategy}"
                )
        known[number] = definition

    def refused(self, topic: str, definition: Definition) -> None:
        """INV-S7: a broker registers no version for a definition."""
        found = self.of(topic)
        if definition in found.known.values():
            raise ViolationError("INV-S7", f"{topic}: {definition.name} is refused, and has a version")
        if definition in COMPATIBLE and all(each in COMPATIBLE for each in found.tried):
            raise ViolationError("INV-S7", f"{topic}: {definition.name} is refused, and fits all others")

    def answers(self, topic: str, version: bytes, definition: Definition | None) -> None:
        """INV-S6: a broker answers a question for a version; None is a refusal."""
        known = self.of(topic).known.get(int.from_bytes(version, "big"))
        if known is not None and definition is not known:
            said = "nothing" if definition is None else definition.name
            raise ViolationError("INV-S6", f"{topic}: version {version.hex()} is {known.name}, not {said}")

    def lets_in(self, topic: str, reader: Definition, strategy: str) -> None:
        """INV-S7: a broker lets a consumer in, which reads at least one definition of the topic."""
        tried = self.of(topic).tried
        if strategy != ANY and not any(reader.reads(each) for each in tried):
            raise ViolationError("INV-S7", f"{topic}: a consumer of {reader.name} is let in with {strategy}")

    def keeps_out(self, topic: str, reader: Definition) -> None:
        """INV-S7: a broker refuses a consumer, which does not read all definitions of the topic."""
        found = self.of(topic)
        if found.deleted_at < 0 and all(reader.reads(each) for each in found.tried):
            raise ViolationError("INV-S7", f"{topic}: a consumer of {reader.name} is refused")


def may_follow(new: Definition, old: Definition, strategy: str) -> bool:
    """True when the strategy lets `new` follow `old`."""
    direction = strategy.removesuffix("_TRANSITIVE")
    if direction == ANY:
        return True
    return (direction == "FORWARD" or new.reads(old)) and (direction == "BACKWARD" or old.reads(new))
