"""`BrokerFaults`: the rules of faults of a running broker."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from pulsar_sansio import FaultKind, FaultRule, ServerError

if TYPE_CHECKING:
    from .server import BrokerDriver


class BrokerFaults:
    """Rules take effect at once, also on connections that are open."""

    def __init__(self, driver: "BrokerDriver") -> None:
        self._driver = driver

    @property
    def rules(self) -> Sequence[FaultRule]:
        """All rules, in the order in which they are tried."""
        return self._driver.machine.faults.rules

    def add(
        self,
        command: str,
        fault: FaultKind = "count",
        *,
        topic: str = "*",
        code: ServerError | str | None = None,
        message: str = "a rule of faults",
        seconds: float | None = None,
        sent_by: Literal["client", "broker"] | None = None,
        after: int = 0,
        times: int | None = None,
        probability: float = 1.0,
    ) -> FaultRule:
        """Add a rule behind the others; `fired` and `counts` of the result tell what it did.

        The first rule that fires decides; `count` never does.
        `command`: Pulsar's name, such as "SEND" or "SEND_RECEIPT"; "*" is every command. `sent_by` is needed
        only for the four names that both sides send: PING, PONG, CLOSE_PRODUCER and CLOSE_CONSUMER.
        `fault`: "count" changes nothing. "error" answers a client's command with `code`, a `ServerError` or
        its name, and `message`. "delay" holds it back for `seconds`, and with it what follows of its producer
        or consumer. "drop" loses it, "close" ends the connection in its place. "half frame" writes the first
        half of it and ends the connection. "corrupt" changes a bit of the payload or checksum of a SEND or
        MESSAGE. "duplicate" handles or writes it twice.
        `topic`: a name, which means its partitions, too, or a pattern with `*`. `after`: so many commands
        pass first; `times`: the rule fires at most so often; `probability`: for each command, drawn from the
        broker's seed. Raises `InvalidConfiguration`, also for a fault that the command cannot have.
        """
        add = partial(
            self._driver.machine.faults.add,
            topic=topic,
            code=code,
            message=message,
            seconds=seconds,
            sent_by=sent_by,
            after=after,
            times=times,
            probability=probability,
        )
        rule: FaultRule = self._driver.command(add, command, fault)
        return rule

    def remove(self, rule: FaultRule) -> None:
        """Remove one rule. Raises `InvalidConfiguration` for one that this broker does not have."""
        self._driver.command(self._driver.machine.faults.remove, rule)

    def clear(self) -> None:
        """Remove all rules, and carry out at once what they delayed."""
        self._driver.command(self._driver.machine.faults.clear)
