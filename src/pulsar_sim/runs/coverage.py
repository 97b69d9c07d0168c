"""The coverage of simulated worlds: state × input of the machines, command × state, and coverage points.

`Recorder` counts while it is entered, by replacing methods and tables of the machines. Outside of it they are
as they were imported, and pay nothing. `Coverage` holds the counts; a campaign adds them up over seeds and
processes. `MAPS` has the pairs that a world can reach: those that are legal by the machines' own tables. This
module refuses to know what a fault is and how anything is shown.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from pulsar_sansio.broker import broker as broker_root
from pulsar_sansio.broker.serving.connection import Connection as BrokerConnection
from pulsar_sansio.client.attaching import attachment_states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.attaching.attachment_states import AttachmentInput
from pulsar_sansio.client.attaching.connection_users import ConnectedConsumer, ConnectedProducer
from pulsar_sansio.client.connecting import connection as connecting
from pulsar_sansio.client.connecting import connection_states
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.connecting.connection_states import ConnectionInput
from pulsar_sansio.client.connecting.requests import REPLIES
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.core.transitions import Transitions
from pulsar_sansio.wire import proto

from ..coverage_points import COVERAGE_POINTS, Condition

T = proto.BaseCommand

Cell: TypeAlias = tuple[str, str, str]
"""Map, row, column."""


def _tables() -> dict[str, Transitions]:
    """The transition tables of the modules that the client is made of, by name."""
    tables = {
        value.name: value
        for module, namespace in sys.modules.items()
        if module.startswith("pulsar_sansio.client.")
        for value in vars(namespace).values()
        if isinstance(value, Transitions)
    }
    return dict(sorted(tables.items()))


TABLES = _tables()


@dataclass(frozen=True, slots=True)
class Map:
    """The pairs that worlds can reach, as a table of which some cells are legal."""

    name: str
    text: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    legal: frozenset[tuple[str, str]]


def _map_of_table(transitions: Transitions) -> Map:
    table = transitions.table
    rows = dict.fromkeys([state for state, _ in table] + list(table.values()))
    inputs = type(next(iter(table))[1])
    return Map(
        transitions.name,
        f"The client's {transitions.name} machine: what happened in which state.",
        tuple(state.__name__ for state in rows),
        tuple(each.name for each in inputs),
        frozenset((state.__name__, each.name) for state, each in table),
    )


# --- commands: where they arrive, and the state of what they are for -------------------------------------

HANDSHAKING, READY = "handshaking", "connected"
AWAITED, UNASKED = "answer awaited", "answer to nothing"
NO_HANDLE, OPENING, OPEN, CLOSING = "for no handle", "for one opening", "for one open", "for one closing"

BEFORE_CONNECT = "before CONNECT"

TO_PRODUCER = frozenset((T.SEND_RECEIPT, T.SEND_ERROR, T.CLOSE_PRODUCER))
TO_CONSUMER = frozenset((T.MESSAGE, T.CLOSE_CONSUMER, T.ACTIVE_CONSUMER_CHANGE, T.REACHED_END_OF_TOPIC))
OF_PRODUCER = frozenset((T.PRODUCER, T.SEND, T.CLOSE_PRODUCER))
OF_CONSUMER = frozenset(
    (
        T.SUBSCRIBE,
        T.FLOW,
        T.ACK,
        T.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        T.SEEK,
        T.GET_LAST_MESSAGE_ID,
        T.CONSUMER_STATS,
        T.UNSUBSCRIBE,
        T.CLOSE_CONSUMER,
    )
)

ANSWERS = ("_on_reply", "_on_error")
"""The methods of the client's connection that take the answers to requests."""

_OWNERS = {attachment_states.Attached: OPEN, attachment_states.Closing: CLOSING}
"""The rows of an owner's states. In any other state an owner that a connection knows is opening."""

TO_CLIENTS, TO_BROKERS = "commands to clients", "commands to brokers"


_NAMES: dict[int, str] = {kind: name for name, kind in T.Type.items()}


def _command(kind: int) -> str:
    return _NAMES.get(kind, f"command {kind}")


def _client_rows(state: type, kind: int) -> tuple[str, ...]:
    """The rows in which a command may be counted that is legal in this state of the connection."""
    if state is connection_states.Handshaking:
        return (HANDSHAKING,)
    if kind == T.MESSAGE:
        return (NO_HANDLE, OPEN, CLOSING)  # while it is opening, the broker has no permits yet
    if kind in TO_PRODUCER or kind in TO_CONSUMER:
        return (NO_HANDLE, OPENING, OPEN, CLOSING)
    if connecting.COMMANDS[state, kind] in ANSWERS:
        return (AWAITED, UNASKED)
    return (READY,)


def _map_to_clients() -> Map:
    legal = [(row, kind) for state, kind in connecting.COMMANDS for row in _client_rows(state, kind)]
    return Map(
        TO_CLIENTS,
        "Commands that arrived at clients, by the state of the connection, the request, or the producer or "
        "consumer that they are for.",
        (HANDSHAKING, READY, AWAITED, UNASKED, NO_HANDLE, OPENING, OPEN, CLOSING),
        tuple(dict.fromkeys(_command(kind) for _, kind in connecting.COMMANDS)),
        frozenset((row, _command(kind)) for row, kind in legal),
    )


def _map_to_brokers() -> Map:
    kinds = list(broker_root.HANDLERS)
    legal = [(BEFORE_CONNECT, kind) for kind in kinds if kind in (T.CONNECT, T.PING, T.PONG)]
    for kind in kinds:
        named = kind in OF_PRODUCER or kind in OF_CONSUMER
        legal += [(row, kind) for row in ((NO_HANDLE, OPENING, OPEN) if named else (READY,))]
    return Map(
        TO_BROKERS,
        "Commands that arrived at brokers, by the state of the connection, or of the producer or consumer "
        "that they name.",
        (BEFORE_CONNECT, READY, NO_HANDLE, OPENING, OPEN),
        tuple(_command(kind) for kind in kinds),
        frozenset((row, _command(kind)) for row, kind in legal),
    )


MAPS: dict[str, Map] = {
    each.name: each for each in [*map(_map_of_table, TABLES.values()), _map_to_clients(), _map_to_brokers()]
}
"""Each map by its name."""


@dataclass(slots=True)
class Coverage:
    """The counts of one or more seeds. They can only be added, in any order."""

    cells: dict[Cell, int] = field(default_factory=dict)
    """The number of times that each pair happened."""
    illegal: dict[Cell, int] = field(default_factory=dict)
    """Pairs that happened though the state's table does not have them: refused, or ended a connection."""
    points: dict[str, int] = field(default_factory=dict)
    """The number of times that each coverage point was reached."""
    seeds: dict[str, int] = field(default_factory=dict)
    """Coverage point -> in how many seeds."""

    def add(self, other: "Coverage") -> None:
        for mine, theirs in (
            (self.cells, other.cells),
            (self.illegal, other.illegal),
            (self.points, other.points),
            (self.seeds, other.seeds),
        ):
            _add(mine, theirs)

    def missing(self, name: str) -> list[tuple[str, str]]:
        """The legal pairs of a map that never happened, in the order of rows and columns."""
        each = MAPS[name]
        return [
            (row, column)
            for row in each.rows
            for column in each.columns
            if (row, column) in each.legal and (name, row, column) not in self.cells
        ]

    @property
    def missing_moves(self) -> list[str]:
        """The moves in the tables of the client's machines that never happened."""
        return [f"{name}: {column} in {row}" for name in TABLES for row, column in self.missing(name)]

    @property
    def missing_points(self) -> list[str]:
        return [name for name in COVERAGE_POINTS if name not in self.points]

    def as_json(self) -> dict[str, Any]:
        """Plain values, the same for the same seeds."""
        return {
            "maps": {name: self._map_as_json(name) for name in MAPS},
            "coverage_points": {
                name: {"times": self.points.get(name, 0), "seeds": self.seeds.get(name, 0)}
                for name in COVERAGE_POINTS
            },
            "coverage_points_missing": self.missing_points,
        }

    def _map_as_json(self, name: str) -> dict[str, Any]:
        each = MAPS[name]
        missing = self.missing(name)
        return {
            "legal": len(each.legal),
            "reached": len(each.legal) - len(missing),
            "missing": [f"{row}, {column}" for row, column in missing],
            "cells": _nested(self.cells, name),
            "illegal": _nested(self.illegal, name),
        }


def _add(mine: dict[Any, int], theirs: Mapping[Any, int]) -> None:
    for key, count in theirs.items():
        mine[key] = mine.get(key, 0) + count


def _nested(cells: dict[Cell, int], name: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (each, row, column), count in sorted(cells.items()):
        if each == name:
            found.setdefault(row, {})[column] = count
    return found


class Recorder:
    """Counts while it is entered; one at a time. `take()` after each seed."""

    def __init__(self) -> None:
        self._moves: defaultdict[tuple[str, type, Enum], int] = defaultdict(int)
        self._illegal: defaultdict[tuple[str, type, Enum], int] = defaultdict(int)
        self._commands: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._points: defaultdict[str, int] = defaultdict(int)
        self._undo: list[tuple[type | ModuleType, str, Any]] = []

    def __enter__(self) -> "Recorder":
        assert not self._undo, "it records already"
        try:
            self._watch_tables()
            self._watch_clients()
            self._watch_brokers()
            self._watch_points()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()

    def take(self) -> Coverage:
        """Take the counts since the last call, as the coverage of one seed."""
        coverage = Coverage(points=dict(self._points), seeds=dict.fromkeys(self._points, 1))
        for mine, moves in ((coverage.cells, self._moves), (coverage.illegal, self._illegal)):
            for (name, state, event), count in moves.items():
                mine[name, state.__name__, event.name] = count
        for (name, row, kind), count in self._commands.items():
            cell = (name, row, _command(kind))
            cells = coverage.cells if (row, cell[2]) in MAPS[name].legal else coverage.illegal
            cells[cell] = count
        for counts in (self._moves, self._illegal, self._commands, self._points):
            counts.clear()
        return coverage

    # --- where it looks ---

    def _replace(self, owner: type | ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
        """`wrap(original)` in the place of an attribute of the class or module itself. Raises `KeyError`
        where there is none: what is watched has to follow the machines."""
        original = vars(owner)[name]
        setattr(owner, name, wrap(original))
        self._undo.append((owner, name, original))

    def _watch_tables(self) -> None:
        moves, illegal = self._moves, self._illegal

        def check(original: Any) -> Any:
            def counted(table: Transitions, state: object, event: Enum, following: object) -> None:
                original(table, state, event, following)
                moves[table.name, type(state), event] += 1

            return counted

        def allows(original: Any) -> Any:
            def counted(table: Transitions, state: object, event: Enum) -> bool:
                allowed: bool = original(table, state, event)
                if not allowed:
                    illegal[table.name, type(state), event] += 1
                return allowed

            return counted

        def close(original: Any) -> Any:
            def counted(attachment: Attachment, *how: bool) -> None:
                state = attachment.state
                if isinstance(state, (attachment_states.Closed, attachment_states.Failed)):
                    illegal[attachment_states.TRANSITIONS.name, type(state), AttachmentInput.CLOSE] += 1
                original(attachment, *how)

            return counted

        def end(original: Any) -> Any:
            def counted(connection: Connection, cause: Any, **options: Any) -> None:
                if isinstance(connection.state, connection_states.Closed):
                    closed = connection_states.Closed
                    illegal[connection_states.TRANSITIONS.name, closed, ConnectionInput.CLOSE] += 1
                original(connection, cause, **options)

            return counted

        self._replace(Transitions, "check", check)
        self._replace(Transitions, "allows", allows)
        self._replace(Attachment, "close", close)
        self._replace(Connection, "close", end)

    def _watch_clients(self) -> None:
        commands = self._commands

        def on_uniform_messages(original: Any) -> Any:
            def counted(consumer: Consumer, connection: Connection, entries: Any) -> bool:
                taken: bool = original(consumer, connection, entries)
                if taken:
                    commands[TO_CLIENTS, OPEN, T.MESSAGE] += len(entries.entry_ids)
                return taken

            return counted

        self._replace(Consumer, "on_uniform_messages", on_uniform_messages)
        for name in dict.fromkeys(connecting.COMMANDS.values()):
            self._replace(Connection, name, partial(_counting, commands, name))

    def _watch_brokers(self) -> None:
        commands = self._commands

        def before_connected(original: Any) -> Any:
            def counted(connection: BrokerConnection, number: int, command: Any) -> None:
                commands[TO_BROKERS, BEFORE_CONNECT, number] += 1
                original(connection, number, command)

            return counted

        def handlers(original: Any) -> Any:
            return {kind: _counting_at_broker(commands, kind, handler) for kind, handler in original.items()}

        self._replace(BrokerConnection, "_before_connected", before_connected)
        self._replace(broker_root, "HANDLERS", handlers)

    def _watch_points(self) -> None:
        """A method is replaced once, however many coverage points are on it."""
        at: dict[tuple[type, str], list[tuple[str, Condition]]] = {}
        for point in COVERAGE_POINTS.values():
            at.setdefault((point.owner, point.method), []).append((point.name, point.reached))
        for (owner, method), conditions in at.items():
            self._replace(owner, method, partial(_judging, self._points, conditions))


def _judging(
    points: "defaultdict[str, int]", conditions: Iterable[tuple[str, Condition]], original: Any
) -> Callable[..., Any]:
    def judged(*arguments: Any, **options: Any) -> Any:
        for name, reached in conditions:
            if reached(*arguments, **options):
                points[name] += 1
        return original(*arguments, **options)

    return judged


def _counting(commands: "defaultdict[tuple[str, str, int], int]", name: str, handler: Any) -> Any:
    """A handler of the client's connection, with a count by what the command is for."""
    kind = next(kind for (_, kind), handled_by in connecting.COMMANDS.items() if handled_by == name)

    def for_owner(connection: Connection, command: Any) -> None:
        owner: ConnectedProducer | ConnectedConsumer | None
        if kind in TO_PRODUCER:
            owner = connection.producers.get(command.producer_id)
        else:
            owner = connection.consumers.get(command.consumer_id)
        row = NO_HANDLE if owner is None else _OWNERS.get(type(owner.attachment.state), OPENING)
        commands[TO_CLIENTS, row, kind] += 1
        handler(connection, command)

    def answer(connection: Connection, command: Any) -> None:
        row = AWAITED if command.request_id in connection.pending else UNASKED
        commands[TO_CLIENTS, row, REPLIES.get(type(command), T.ERROR)] += 1
        handler(connection, command)

    def other(connection: Connection, command: Any) -> None:
        commands[TO_CLIENTS, READY if connection.ready else HANDSHAKING, kind] += 1
        handler(connection, command)

    if kind in TO_PRODUCER or kind in TO_CONSUMER:
        return for_owner
    return answer if name in ANSWERS else other


def _counting_at_broker(
    commands: "defaultdict[tuple[str, str, int], int]", kind: int, handler: Callable[[Any, Any], None]
) -> Callable[[Any, Any], None]:
    """The handler of a command at a broker, with a count by what the command names."""
    of_producer, of_consumer = kind in OF_PRODUCER, kind in OF_CONSUMER
    connected = (TO_BROKERS, READY, kind)
    unknown, opening, known = ((TO_BROKERS, row, kind) for row in (NO_HANDLE, OPENING, OPEN))

    def counted(connection: BrokerConnection, command: Any) -> None:
        if of_producer:
            named: Any = connection.producers.get(command.producer_id)
        elif of_consumer:
            named = connection.consumers.get(command.consumer_id)
        else:
            commands[connected] += 1
            handler(connection, command)
            return
        # What is only reserved has no `ready` yet.
        cell = unknown if named is None else known if getattr(named, "ready", False) else opening
        commands[cell] += 1
        handler(connection, command)

    return counted
