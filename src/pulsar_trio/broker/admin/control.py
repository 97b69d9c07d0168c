"""The control of a broker by tests of applications: faults, waiting for a state, reset and snapshots.

Only a broker with `test_control` has these paths, which are not Pulsar's. The pytest plugin
`pulsar_trio_pytest` is their client.
"""

from contextlib import suppress
from typing import Any, Protocol

from pulsar_sansio import FaultRule, NotApplicable, NotFound, StoredState, TopicName, WantedState

from .messages import NO_CONTENT, Answer, Refused, Request, json_answer, path_number
from .routes import AdministeredBroker, NotYet, Route

MAX_SNAPSHOTS = 100
"""Snapshots that the broker keeps; it discards the oldest one beyond it."""

MAX_TIMEOUT = 3600.0
"""Seconds that a request may wait for a state."""

RULE_FIELDS = frozenset(
    {"command", "fault", "topic", "code", "message", "seconds", "sent_by", "after", "times", "probability"}
)
STATE_FIELDS = frozenset({"producers", "consumers", "backlog", "topic", "subscription"})


class ControlledBroker(AdministeredBroker, Protocol):
    """The broker as this module sees it."""

    async def changed(self) -> None:
        """Wait until the machine has done something."""

    def snapshot(self) -> StoredState:
        """Return a copy of all that the broker stores."""
        ...

    def restore(self, state: StoredState | None) -> None:
        """Go on with a copy of this state; None is that of the start."""


class Control:
    """The handlers, and the snapshots of one broker."""

    def __init__(self, broker: ControlledBroker) -> None:
        self._broker = broker
        self._snapshots: dict[int, StoredState] = {}
        self._taken = 0
        self.routes: list[Route] = [
            ("GET", "/test/v1/faults", self._list_rules),
            ("POST", "/test/v1/faults", self._add_rule),
            ("DELETE", "/test/v1/faults", self._clear_rules),
            ("DELETE", "/test/v1/faults/{number}", self._remove_rule),
            ("POST", "/test/v1/until", self._wait),
            ("POST", "/test/v1/reset", self._reset),
            ("POST", "/test/v1/snapshots", self._take_snapshot),
            ("POST", "/test/v1/snapshots/{number}/restore", self._restore_snapshot),
            ("DELETE", "/test/v1/namespaces/{tenant}/{namespace}", self._delete_namespace),
        ]

    # --- faults ---------------------------------------------------------------------------------------

    def _list_rules(self, broker: AdministeredBroker, request: Request) -> Answer:
        return json_answer([_rule_json(rule) for rule in broker.machine.faults.rules])

    def _add_rule(self, broker: AdministeredBroker, request: Request) -> Answer:
        given = _fields(request, RULE_FIELDS)
        if "command" not in given:
            raise Refused(400, "the rule has no command")
        rule: FaultRule = broker.command(lambda now: broker.machine.faults.add(now, **given))
        return json_answer(_rule_json(rule), 201)

    def _clear_rules(self, broker: AdministeredBroker, request: Request) -> Answer:
        broker.command(broker.machine.faults.clear)
        return NO_CONTENT

    def _remove_rule(self, broker: AdministeredBroker, request: Request) -> Answer:
        number = path_number(request.text("number"))
        for rule in broker.machine.faults.rules:
            if rule.number == number:
                broker.command(broker.machine.faults.remove, rule)
                return NO_CONTENT
        raise Refused(404, f"no rule {number}")

    # --- state ----------------------------------------------------------------------------------------

    def _wait(self, broker: AdministeredBroker, request: Request) -> Answer:
        """Answer when the broker has the numbers, or with 408 and those it has. Raises `NotYet`."""
        given = _fields(request, STATE_FIELDS | {"timeout"})
        timeout = given.pop("timeout", 60.0)
        if not isinstance(timeout, (int, float)) or not 0 <= timeout <= MAX_TIMEOUT:
            raise Refused(400, f"timeout: seconds from 0 to {MAX_TIMEOUT:g}, not {timeout!r:.100}")
        different = broker.machine.topic_administration.differences(WantedState(**given))
        if not different:
            return NO_CONTENT
        if request.waited >= timeout:
            raise Refused(408, f"after {timeout:g} s: {different}")
        raise NotYet(self._broker.changed, timeout)

    def _reset(self, broker: AdministeredBroker, request: Request) -> Answer:
        self._broker.restore(None)
        return NO_CONTENT

    def _take_snapshot(self, broker: AdministeredBroker, request: Request) -> Answer:
        self._taken += 1
        self._snapshots[self._taken] = self._broker.snapshot()
        if len(self._snapshots) > MAX_SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        return json_answer({"snapshot": self._taken}, 201)

    def _restore_snapshot(self, broker: AdministeredBroker, request: Request) -> Answer:
        number = path_number(request.text("number"))
        if number not in self._snapshots:
            raise Refused(404, f"no snapshot {number}; the broker keeps the last {MAX_SNAPSHOTS}")
        self._broker.restore(self._snapshots[number])
        return NO_CONTENT

    def _delete_namespace(self, broker: AdministeredBroker, request: Request) -> Answer:
        """Delete a namespace with its topics, though clients use them."""
        namespace = request.namespace
        topics = broker.machine.topic_administration
        for topic in [*topics.partitioned_topics(namespace), *topics.topics(namespace)]:
            with suppress(NotFound, NotApplicable):  # a partition, which the partitioned topic took along
                broker.command(topics.delete_topic, str(TopicName.parse(topic)), True)
        broker.command(broker.machine.administration.delete_namespace, namespace)
        return NO_CONTENT


def _rule_json(rule: FaultRule) -> dict[str, Any]:
    return {
        "number": rule.number,
        "command": rule.command,
        "fault": rule.fault,
        "topic": rule.topic,
        "fired": rule.fired,
        "counts": rule.counts,
    }


def _fields(request: Request, known: frozenset[str]) -> dict[str, Any]:
    """Return the body. Raises `Refused` for a field that is not known."""
    given = request.json_object()
    unknown = sorted(given.keys() - known)
    if unknown:
        raise Refused(400, f"unknown: {', '.join(unknown)[:200]}; there are {', '.join(sorted(known))}")
    return given
