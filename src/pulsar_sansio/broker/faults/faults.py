"""`Faults`: the rules of one broker, for tests of applications.

Without rules no connection knows of faults, and the path of messages is that of a broker without them. A
rule gives every connection a `ConnectionFaults`; `clear` takes them away.
"""

from collections.abc import Callable, Mapping, Sequence

from ...core.context import Context
from ...core.rng import Rng
from ...model.errors import InvalidConfiguration, ServerError
from ..outputs import Output
from ..serving.connection import Connection, Refusal
from .commands import Sender
from .connection_faults import ConnectionFaults
from .fault_rule import FaultKind, FaultRule

SALT = 0x0FA17
"""Makes the numbers of faults differ from those that the broker draws for itself."""


class Faults:
    """`refusals`: command of a client -> its answer with an error. `links`: the broker's connections."""

    def __init__(
        self,
        context: Context[Output],
        seed: int,
        links: Mapping[int, Connection],
        refusals: Mapping[int, Refusal],
        settle: Callable[[], None],
    ) -> None:
        self._context = context
        self._links = links
        self._settle = settle
        self._rules: list[FaultRule] = []
        self._numbers = 0
        self.refusals = refusals
        self.rng = Rng(seed ^ SALT)
        """Decides about probabilities and damaged bits, and nothing else."""

    @property
    def rules(self) -> Sequence[FaultRule]:
        """All rules, in the order in which they are tried."""
        return tuple(self._rules)

    def add(
        self,
        now: int,
        command: str,
        fault: FaultKind = "count",
        *,
        topic: str = "*",
        code: ServerError | str | None = None,
        message: str = "a rule of faults",
        seconds: float | None = None,
        sent_by: Sender | None = None,
        after: int = 0,
        times: int | None = None,
        probability: float = 1.0,
    ) -> FaultRule:
        """Add a rule behind the others. The first rule that fires decides; `count` never does.

        `command`: Pulsar's name, such as "SEND" or "SEND_RECEIPT"; "*" is every command. `sent_by`: "client"
        or "broker", needed only for the four names that both send.
        `fault`: "count" changes nothing. "error" answers a client's command with `code`, a `ServerError` or
        its name, and `message`. "delay" holds it back for `seconds`, and with it what follows of its producer
        or consumer. "drop" loses it, "close" ends the connection in its place. "half frame" writes the first
        half of it and ends the connection. "corrupt" changes a bit of the payload or checksum of a SEND or
        MESSAGE. "duplicate" handles or writes it twice.
        `topic`: a name, which means its partitions, too, or a pattern with `*`. `after`: so many commands
        pass first; `times`: the rule fires at most so often; `probability`: for each command.
        Raises `InvalidConfiguration`, also for a fault that the command cannot have.
        """
        self._context.now = now
        rule = FaultRule(
            self._numbers + 1,
            command,
            fault,
            topic=topic,
            code=code,
            message=message,
            seconds=seconds,
            sent_by=sent_by,
            after=after,
            times=times,
            probability=probability,
        )
        self._numbers += 1
        self._rules.append(rule)
        for connection in self._links.values():
            self.attach(connection)
        return rule

    def attach(self, connection: Connection) -> None:
        """Put the connection under the rules, if there are any."""
        if self._rules and connection.interposed is None:
            connection.interpose(ConnectionFaults(self, connection))

    def remove(self, now: int, rule: FaultRule) -> None:
        """Remove one rule. Raises `InvalidConfiguration` for one that this broker does not have."""
        if rule not in self._rules:
            raise InvalidConfiguration(f"rule: one of this broker's, not {rule!r:.200}")
        if len(self._rules) == 1:
            self.clear(now)
        else:
            self._rules.remove(rule)

    def clear(self, now: int) -> None:
        """Remove all rules, and carry out at once what they delayed."""
        self._context.now = now
        self._rules.clear()
        for connection in list(self._links.values()):
            if connection.interposed is not None:
                connection.withdraw()
        self._settle()

    def decide(self, sender: Sender, command: str, topics: tuple[str, ...]) -> FaultRule | None:
        """Return the rule that fires for a command, if any, and count."""
        decided: FaultRule | None = None
        for rule in self._rules:
            counts = rule.fault == "count"
            if (
                (counts or decided is None)
                and rule.applies_to(sender, command, topics)
                and rule.fires(self.rng)
            ):
                rule.count(command, topics)
                if not counts:
                    decided = rule
        return decided
