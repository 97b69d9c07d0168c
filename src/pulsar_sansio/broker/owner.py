"""`Owner`: tells one broker of several which broker serves a topic."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OtherBroker:
    """Another broker: it serves a topic, or knows more about the broker that does.

    `service_url`, `service_url_tls`: its addresses. `redirect`: a client repeats its lookup there
    (LOOKUP-06), with the flag `authoritative`; otherwise the client connects there.
    """

    service_url: str
    service_url_tls: str | None = None
    redirect: bool = False
    authoritative: bool = True


class Owner(Protocol):
    """Tells which broker serves a topic that this broker does not serve."""

    def __call__(self, topic: str, authoritative: bool) -> OtherBroker | None:
        """Return None where the topic exists on no broker and this one may create it.

        `topic`: a full name; `authoritative`: the flag of the lookup. Raises `ServiceNotReady` while no
        broker can be named.
        """
        ...
