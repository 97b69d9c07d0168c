"""`ConnectionFaults`: the faults of one connection, between its bytes and its handlers.

A command of the client comes here in place of its handler. Frames of the broker come here when the adapter
pulls them. A delay keeps the order of all commands of one producer or consumer, as a slow broker does.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...model.errors import RemoteProtocolError
from ...wire import FrameDecoder
from ..serving.connection import Connection, Handler
from .command_topics import CommandTopics
from .commands import name_of
from .corruption import corrupted
from .delayed_actions import DelayedActions
from .fault_rule import FaultRule

if TYPE_CHECKING:
    from .faults import Faults

NO_LIMIT = 2**31
"""Frames of the broker itself have no limit that could be broken."""


class ConnectionFaults:
    """Made by `Faults` for each connection while there are rules."""

    def __init__(self, faults: "Faults", connection: Connection) -> None:
        self._faults = faults
        self._connection = connection
        self._topics = CommandTopics(connection)
        self._commands = DelayedActions(connection.context)
        self._frames = DelayedActions(connection.context)
        self._decoder = FrameDecoder()
        self._released: list[bytes] = []
        """Frames that were held back and wait for the adapter."""
        self.held_bytes = 0
        """Bytes of frames that are held back."""
        self._cut = False
        """A fault has ended the connection: the client gets nothing more."""

    def stop(self) -> None:
        """The connection has ended."""
        self._commands.discard()
        self._frames.discard()
        self.held_bytes = 0

    def release(self) -> list[bytes]:
        """Carry out what was held back, and return the frames of the broker among it."""
        self._commands.release()
        self._frames.release()
        released, self._released = self._released, []
        return released

    # --- commands of the client -----------------------------------------------------------------------

    def receive(self, number: int, handler: Handler, connection: Connection, command: Any) -> None:
        """Take a command in place of its handler."""
        name = name_of(number)
        about = self._topics.of_client(name, command)
        rule = self._faults.decide("client", name, about.topics)
        delay = 0 if rule is None else rule.delay
        if not delay and not self._commands.holds(about.owner):
            self._carry_out(rule, number, handler, command)
            return
        connection.pending_publishes += 1  # what waits counts, so that a client cannot accumulate it
        self._commands.hold(
            about.owner, delay, partial(self._carry_out_later, rule, number, handler, command)
        )

    def _carry_out_later(self, rule: FaultRule | None, number: int, handler: Handler, command: Any) -> None:
        connection = self._connection
        connection.pending_publishes -= 1
        try:
            self._carry_out(rule, number, handler, command)
        except RemoteProtocolError as error:
            connection.terminate(str(error))
        connection.check_reading()

    def _carry_out(self, rule: FaultRule | None, number: int, handler: Handler, command: Any) -> None:
        connection = self._connection
        match None if rule is None else rule.fault:
            case "drop":
                return
            case "close":
                connection.terminate(f"a rule of faults: {rule!r}")
                return
            case "error":
                assert rule is not None
                self._faults.refusals[number](connection, command, rule.error)
                return
            case "corrupt":
                command = command._replace(payload=corrupted(command.payload, self._faults.rng))
            case "duplicate":
                handler(connection, command)
                if connection.dead:
                    return
        handler(connection, command)

    # --- frames of the broker -------------------------------------------------------------------------

    def transmit(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Return the bytes to write in place of these, which are whole frames."""
        passed, self._released = self._released, []
        data = b"".join(chunks)
        position = 0
        while not self._cut and (frame := self._decoder.decode(data, position, NO_LIMIT)) is not None:
            number, command, end = frame
            self._pass_on(data[position:end], number, command, passed)
            position = end
        return passed

    def _pass_on(self, frame: bytes, number: int, command: Any, passed: list[bytes]) -> None:
        name = name_of(number)
        about = self._topics.of_broker(name, command)
        rule = self._faults.decide("broker", name, about.topics)
        delay = 0 if rule is None else rule.delay
        if self._connection.dead or (not delay and not self._frames.holds(about.owner)):
            self._write(rule, frame, command, passed)
            return
        self.held_bytes += len(frame)
        self._frames.hold(about.owner, delay, partial(self._write_later, rule, frame, command))
        self._connection.announce()  # an adapter that pulls bytes looks at the deadline only after an output

    def _write_later(self, rule: FaultRule | None, frame: bytes, command: Any) -> None:
        self.held_bytes -= len(frame)
        if not self._cut:
            self._write(rule, frame, command, self._released)
            self._connection.announce()

    def _write(self, rule: FaultRule | None, frame: bytes, command: Any, passed: list[bytes]) -> None:
        match None if rule is None else rule.fault:
            case "drop":
                return
            case "close" | "half frame" as fault:
                self._cut = True
                if fault == "half frame":
                    passed.append(frame[: len(frame) // 2])
                self._connection.terminate(f"a rule of faults: {rule!r}")
                return
            case "corrupt":
                size = len(frame) - len(command.payload)
                frame = frame[:size] + corrupted(command.payload, self._faults.rng)
            case "duplicate":
                passed.append(frame)
        passed.append(frame)
