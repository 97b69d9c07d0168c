"""The producers, consumers and topic-list watchers of a connection, as the connection sees them."""

from typing import TYPE_CHECKING, Any, Protocol

from ...wire import UniformMessages
from .attachment_owner import AttachmentOwner

if TYPE_CHECKING:
    from ..connecting.connection import Connection


class ConnectedProducer(AttachmentOwner, Protocol):
    """A producer that is registered with a connection."""

    def on_send_error(self, connection: "Connection", command: Any) -> None:
        """SEND_ERROR came for the producer."""
        ...

    @property
    def on_receipt(self) -> Any:
        """The handler of SEND_RECEIPT, called with the connection and the command."""
        ...


class ConnectedConsumer(AttachmentOwner, Protocol):
    """A consumer that is registered with a connection."""

    def on_message(self, connection: "Connection", command: Any) -> None:
        """MESSAGE came for the consumer."""
        ...

    def on_uniform_messages(self, connection: "Connection", entries: UniformMessages) -> bool:
        """A run of uniform messages came; return False to receive each MESSAGE of the run instead."""
        ...

    def on_active_changed(self, is_active: bool) -> None:
        """ACTIVE_CONSUMER_CHANGE came for the consumer."""
        ...

    def on_end_of_topic(self) -> None:
        """REACHED_END_OF_TOPIC came for the consumer."""
        ...


class ConnectionWatcher(Protocol):
    """A topic-list watcher that is registered with a connection."""

    def on_update(self, command: Any) -> None:
        """WATCH_TOPIC_UPDATE came for the watcher."""
        ...

    def lost(self) -> None:
        """The connection ended."""
        ...
