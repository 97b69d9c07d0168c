"""`JointLife`: the life of one producer or consumer that is made of several parts.

A `PartitionedProducer` has a part for each partition, a `MultiTopicsConsumer` one for each topic and
partition. Both open together, fail together and close together. The owner opens and closes its parts, and
says here what became of them. The life keeps the state (see `joint_states`), tells what it allows, and
reports the one end to the application.
"""

from collections.abc import Callable

from ...core.context import Context
from ...model.errors import ClosedError, PulsarError
from ..outputs import Closed, ConsumerFailed, Output, ProducerFailed
from . import joint_states as states
from .joint_attachment import JointAttachment
from .joint_states import TRANSITIONS, JointInput, JointState


class JointLife:
    """`failed`: the output for a whole that never was ready. `ended(handle, error)`: called once, at the
    end."""

    __slots__ = ("_context", "_ended", "_failed", "_handle", "attachment", "state")

    def __init__(
        self,
        context: Context[Output],
        handle: int,
        failed: type[ConsumerFailed] | type[ProducerFailed],
        ended: Callable[[int, PulsarError | None], None],
    ) -> None:
        self._context = context
        self._handle = handle
        self._failed = failed
        self._ended = ended
        self.state: JointState = states.Opening()
        self.attachment = JointAttachment(context, handle, lambda: self.is_ready)

    @property
    def is_opening(self) -> bool:
        """True while some parts are not open yet, and none has failed."""
        return isinstance(self.state, states.Opening)

    @property
    def is_ready(self) -> bool:
        """True from the report that the whole is open until the application asks for the end."""
        return isinstance(self.state, states.Ready)

    @property
    def is_failing(self) -> bool:
        """True while the other parts are closed because one could not be opened."""
        return isinstance(self.state, states.Failing)

    @property
    def is_over(self) -> bool:
        return isinstance(self.state, states.Over)

    @property
    def delivers(self) -> bool:
        """True from the report that the whole is open until it closes, unsubscribing included."""
        return isinstance(self.state, states.Ready | states.Unsubscribing)

    @property
    def takes_commands(self) -> bool:
        """True until the whole fails or closes."""
        return isinstance(self.state, states.Opening | states.Ready | states.Unsubscribing)

    def check_open(self, text: str) -> None:
        """Raise `ClosedError` with a text once the whole fails or closes."""
        if not self.takes_commands:
            error = ClosedError(text)
            if isinstance(self.state, states.Failing):
                error.__cause__ = self.state.error
            raise error

    def became_ready(self) -> None:
        """All parts are open."""
        self._move(JointInput.ALL_READY, states.Ready())

    def fail(self, error: PulsarError) -> None:
        """One part cannot be opened; the owner closes the others."""
        self._move(JointInput.PART_FAILED, states.Failing(error))

    def unsubscribe(self, request: int) -> None:
        """All parts are asked to unsubscribe."""
        self._move(JointInput.UNSUBSCRIBE, states.Unsubscribing(request))

    def is_unsubscribing(self, request: int) -> bool:
        return isinstance(self.state, states.Unsubscribing) and self.state.request == request

    def refused(self) -> None:
        """A part stays subscribed: the whole continues."""
        self._move(JointInput.REFUSED, states.Ready())

    def close(self) -> None:
        """The application closes the whole, and the owner its parts."""
        self._move(JointInput.CLOSE, states.Closing(not self.is_opening))

    def over(self, error: PulsarError | None, closed: str) -> None:
        """All parts have ended: report the one end. `error`: the cause while the whole was ready. `closed`:
        the text for an application that closed before the whole was ready."""
        state = self.state
        self._move(JointInput.ALL_GONE, states.Over())
        match state:
            case states.Failing(failure):
                error = failure
                self._context.emit(self._failed(self._handle, failure))
            case states.Closing(was_ready=False):
                self._context.emit(self._failed(self._handle, ClosedError(closed)))
            case _:
                self._context.emit(Closed(self._handle, error))
        self._ended(self._handle, error)

    def _move(self, event: JointInput, following: JointState) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
