"""`FaultRule`: one rule of faults, when it applies to a command, and how often it has fired."""

from typing import Literal, get_args

from ...core.rng import Rng
from ...model.config import nanoseconds_of
from ...model.errors import BrokerError, InvalidConfiguration, ServerError, broker_error
from ...model.topic_name import is_text
from ..topic_pattern import TopicPattern
from .commands import ANY, BY_SENDER, FROM_BROKER, FROM_CLIENT, NOT_REFUSABLE, WITH_PAYLOAD, Sender, Subject

FaultKind = Literal["count", "error", "delay", "drop", "close", "half frame", "corrupt", "duplicate"]

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

MAX_DELAY = 86_400.0
"""Seconds: a longer delay is a command that is dropped."""

MAX_TEXT = 4096
"""The number of characters of an error's message."""

MAX_COUNTED = 10_000
"""Pairs of command and topic that one rule counts apart; further topics are counted together, as `*`."""

_BITS = 53
"""The precision of a probability: that of a float."""


class FaultRule:
    """A rule. `Faults.add` makes it, and has the meaning of the arguments.

    Raises `InvalidConfiguration`, also for a fault that the command cannot have.
    """

    def __init__(
        self,
        number: int,
        command: str,
        fault: FaultKind,
        *,
        topic: str,
        code: ServerError | str | None,
        message: str,
        seconds: float | None,
        sent_by: Sender | None,
        after: int,
        times: int | None,
        probability: float,
    ) -> None:
        self.number = number
        """Tells the rules of one broker apart."""
        self.command = command
        self.fault: FaultKind = fault
        self.senders = _senders(command, sent_by)
        self._pattern = TopicPattern(topic)
        self.topic = topic
        self._check_fault()
        self.code = _code(fault, code)
        if not is_text(message) or len(message) > MAX_TEXT:
            raise InvalidConfiguration(f"message: a text of at most {MAX_TEXT} characters")
        self.message = message
        self.delay = _delay(fault, seconds)
        """The delay in nanoseconds; 0 for other faults."""
        _check_whole("after", after, 0)
        if times is not None:
            _check_whole("times", times, 1)
        self.after, self.times = after, times
        if (
            isinstance(probability, bool)
            or not isinstance(probability, (int, float))
            or not 0 < probability <= 1
        ):
            raise InvalidConfiguration(f"probability: more than 0 and at most 1, not {probability!r}")
        self.probability = probability
        self._bar = round(probability * 2**_BITS)
        self._seen = 0
        self.fired = 0
        """The number of commands to which the fault was done, or that were counted."""
        self.counts: dict[str, dict[str, int]] = {}
        """Command -> full name of the topic -> how often the rule fired. A command without a topic has an
        empty name, as has one whose topic the broker cannot tell."""
        self._counted = 0

    def _check_fault(self) -> None:
        """Raise `InvalidConfiguration` for a fault that the command cannot have."""
        command, fault = self.command, self.fault
        if fault not in KINDS:
            raise InvalidConfiguration(f"fault: one of {', '.join(KINDS)}, not {fault!r:.100}")
        if fault == "error" and (command == ANY or "broker" in self.senders or command in NOT_REFUSABLE):
            raise InvalidConfiguration(
                f"a broker cannot answer {command} with an error: it answers commands of clients, except "
                f"{', '.join(NOT_REFUSABLE)}"
            )
        if fault == "half frame" and self.senders != ("broker",):
            raise InvalidConfiguration(f"half frame: a fault of what the broker sends, and {command} is not")
        if fault == "corrupt" and command not in WITH_PAYLOAD:
            raise InvalidConfiguration(f"corrupt: a fault of {' and '.join(WITH_PAYLOAD)}, not of {command}")
        if fault == "duplicate" and command in ("CONNECT", "CONNECTED", ANY):
            raise InvalidConfiguration(f"duplicate: a handshake happens once, so {command} has no such fault")
        if not self._pattern.every and command != ANY:
            subjects = [BY_SENDER[sender][command] for sender in self.senders]
            if all(subject is Subject.NONE for subject in subjects):
                raise InvalidConfiguration(f"topic: {command} names no topic")

    @property
    def error(self) -> BrokerError:
        """The refusal of a rule whose fault is `error`."""
        assert self.code is not None
        return broker_error(self.code, self.message)

    def applies_to(self, sender: Sender, command: str, topics: tuple[str, ...]) -> bool:
        """Return True for a command that the rule names, by its topic as well."""
        if self.command not in (command, ANY) or sender not in self.senders:
            return False
        return self._pattern.every or any(map(self._pattern.matches, topics))

    def fires(self, rng: Rng) -> bool:
        """Decide on one command that the rule applies to. Only a probability below 1 draws a number."""
        self._seen += 1
        if self._seen <= self.after or (self.times is not None and self.fired >= self.times):
            return False
        return self.probability == 1 or rng.getrandbits(_BITS) < self._bar

    def count(self, command: str, topics: tuple[str, ...]) -> None:
        """Record that the rule fired."""
        self.fired += 1
        by_topic = self.counts.setdefault(command, {})
        for topic in topics or ("",):
            if topic not in by_topic:
                if self._counted >= MAX_COUNTED:
                    topic = "*"
                self._counted += topic not in by_topic
            by_topic[topic] = by_topic.get(topic, 0) + 1

    def __repr__(self) -> str:
        return (
            f"<FaultRule {self.number}: {self.command} {self.fault}, topic {self.topic}, fired {self.fired}>"
        )


def _senders(command: str, sent_by: Sender | None) -> tuple[Sender, ...]:
    """Return the sides whose commands of this name the rule means."""
    if sent_by not in (None, *BY_SENDER):
        raise InvalidConfiguration(f"sent_by: 'client', 'broker' or None, not {sent_by!r:.100}")
    if command == ANY:
        return tuple(BY_SENDER) if sent_by is None else (sent_by,)
    senders = tuple(sender for sender, commands in BY_SENDER.items() if command in tuple(commands))
    if not senders:
        known = ", ".join(sorted({*FROM_CLIENT, *FROM_BROKER}))
        raise InvalidConfiguration(f"command: {ANY} or one of {known}; not {command!r:.100}")
    if sent_by is not None:
        if sent_by not in senders:
            raise InvalidConfiguration(f"sent_by: {command} is a command of the {senders[0]}")
        return (sent_by,)
    if len(senders) > 1:
        raise InvalidConfiguration(f"sent_by: 'client' or 'broker', because both send {command}")
    return senders


def _code(fault: FaultKind, code: ServerError | str | None) -> ServerError | None:
    if fault != "error":
        if code is not None:
            raise InvalidConfiguration(f"code: the fault {fault} has none")
        return None
    names = ServerError.__members__
    name = code.name if isinstance(code, ServerError) else code
    if not isinstance(name, str) or name not in names:
        raise InvalidConfiguration(f"code: one of {', '.join(names)}; not {code!r:.100}")
    return names[name]


def _delay(fault: FaultKind, seconds: float | None) -> int:
    if fault != "delay":
        if seconds is not None:
            raise InvalidConfiguration(f"seconds: the fault {fault} has none")
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= MAX_DELAY:
        raise InvalidConfiguration(f"seconds: more than 0 and at most {MAX_DELAY:g}, not {seconds!r}")
    return nanoseconds_of(seconds)


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidConfiguration(f"{name}: a whole number from {least} on, not {value!r:.100}")
