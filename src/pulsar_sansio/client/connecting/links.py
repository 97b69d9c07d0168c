"""`Links`: every link of a client, whatever runs over it.

The root passes the facts about a link to its owner: a connection to a broker, or an HTTP exchange.
"""

from typing import Protocol

from ...model.errors import PulsarError
from ...model.service_url import Address
from ..security.credential_exchange import CredentialExchange


class LinkOwner(Protocol):
    """The machine that runs over one link."""

    link: int
    physical: Address
    """The address of the link's other end."""
    ready: bool
    """True when the other end takes requests."""
    credentials: CredentialExchange

    def opened(self) -> None:
        """The link is open, and verified where it is encrypted."""

    def receive(self, data: bytes) -> None:
        """Bytes came. Wrong bytes end the link and never raise."""

    def receive_eof(self) -> None:
        """The peer will send nothing more."""

    def close(self, cause: PulsarError, *, already_gone: bool = False) -> None:
        """End the link; a second call does nothing.

        `already_gone`: the driver reported the end, so no `Disconnect` is emitted.
        """

    def data_to_send(self) -> list[bytes]:
        """Return the chunks to write, each once."""


class Links:
    """The links of one client."""

    __slots__ = ("left", "open")

    def __init__(self) -> None:
        self.open: dict[int, LinkOwner] = {}
        """Every link that the driver was asked for and that has not ended."""
        self.left: dict[int, list[bytes]] = {}
        """Chunks that were still unwritten when the client ended a link, by link."""

    def ended(self, owner: LinkOwner, *, already_gone: bool) -> None:
        """Discard an ended link. `already_gone`: see `LinkOwner.close`."""
        del self.open[owner.link]
        if not already_gone and (chunks := owner.data_to_send()):
            self.left[owner.link] = chunks

    def is_ready(self, address: Address) -> bool:
        """Tell whether a link to that address can be used now."""
        return any(each.ready and each.physical == address for each in self.open.values())

    def close_all(self, cause: PulsarError) -> None:
        """End every link (rule POOL-12)."""
        for owner in list(self.open.values()):
            owner.close(cause)
