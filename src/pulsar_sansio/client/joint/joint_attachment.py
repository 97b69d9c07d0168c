"""`JointAttachment`: one consumer or producer is attached when all its partitions and topics are."""

from collections.abc import Callable, Iterable

from ...core.context import Context
from ...model.errors import PulsarError
from ..outputs import Attached, Detached, Output


class JointAttachment:
    """Counts the parts that were ready and are detached. `is_ready()`: the application knows that the whole
    is open."""

    __slots__ = ("_context", "_handle", "_is_ready", "detached")

    def __init__(self, context: Context[Output], handle: int, is_ready: Callable[[], bool]) -> None:
        self._context = context
        self._handle = handle
        self._is_ready = is_ready
        self.detached = 0

    def on_ready(self, causes: Iterable[PulsarError | None]) -> None:
        """The whole is ready: emit `Detached` when a part is detached already. `causes`: those of all parts,
        None for a part that is attached."""
        if self.detached:
            cause = next(each for each in causes if each is not None)
            self._context.emit(Detached(self._handle, cause))

    def on_detached(self, cause: PulsarError) -> None:
        """One part has lost its connection."""
        self.detached += 1
        if self.detached == 1 and self._is_ready():
            self._context.emit(Detached(self._handle, cause))

    def on_attached(self) -> None:
        """One part is connected again."""
        self.on_ended(True)

    def on_ended(self, goes_on: bool) -> None:
        """A part that was detached has ended. `goes_on`: the whole has other parts, or may get some."""
        self.detached -= 1
        if not self.detached and goes_on and self._is_ready():
            self._context.emit(Attached(self._handle))
