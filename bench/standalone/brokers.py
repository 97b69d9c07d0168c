"""The brokers that are compared can be killed, and started again over their data."""

from types import TracebackType
from typing import Protocol, Self

from tests.real_pulsar import RealPulsar


class Standalone(Protocol):
    """A broker with its store, the only ones on this machine. As a context it ends with the block."""

    name: str

    @property
    def url(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> None:
        """Return when the broker serves clients."""
        ...

    def kill(self) -> None:
        """SIGKILL. The data stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class RealStandalone(RealPulsar):
    """A Java broker with its bookie. Its journal is synced before a receipt, as by default."""

    name = "Apache Pulsar, standalone"

    def __init__(self) -> None:
        super().__init__(long_running=True)

    def __enter__(self) -> Self:
        return self
