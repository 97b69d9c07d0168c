"""`Host`: the broker as its connections know it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..coordinating.coordinators import Coordinators
    from ..metadata import Metadata
    from ..schemas.registry import Schemas
    from ..security.authenticator import Authenticator
    from ..security.authorization import Authorization
    from ..services import BrokerServices
    from ..topics.registry import TopicRegistry
    from .connection import Connection
    from .topic_list_watch import Watchers


class Host(Protocol):
    """The parts of a broker that commands of clients need."""

    services: "BrokerServices"
    metadata: "Metadata"
    topics: "TopicRegistry"
    schemas: "Schemas"
    watchers: "Watchers"
    coordinators: "Coordinators"
    authenticator: "Authenticator | None"
    authorization: "Authorization"
    links: "dict[int, Connection]"
    links_from: dict[str, int]

    def connection_closed(self, connection: "Connection", final_bytes: list[bytes]) -> None:
        """Discard a connection that ended; `final_bytes` are still to be written."""
