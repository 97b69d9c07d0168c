"""A closed client: it opens nothing, asks nothing, and ignores what a network still reports.

Owns the commands and facts that are tried (INV-N17). Nothing follows in the life of that client, so they may
take ids.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, ReaderSpec, TableViewSpec
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.errors import ClosedError, CredentialsFailed, CryptoError, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.model.secret import Secret

from ...engine.failures import ViolationError
from .refusals import Call, check_refusals

if TYPE_CHECKING:
    from ...engine.nodes.client_node import ClientNode

TOPIC = "persistent://public/default/late"

NEVER_GIVEN = 1 << 40
"""A number that no client of a world gives to a handle, a request or a link."""

OPENING: dict[str, Call] = {
    "open_producer": lambda client, now, _: client.open_producer(now, ProducerSpec(topic=TOPIC)),
    "subscribe": lambda client, now, _: client.subscribe(now, ConsumerSpec(topic=TOPIC, subscription="late")),
    "open_reader": lambda client, now, _: client.open_reader(now, ReaderSpec(topic=TOPIC, start=EARLIEST)),
    "open_table_view": lambda client, now, _: client.open_table_view(now, TableViewSpec(topic=TOPIC)),
    "partitions": lambda client, now, _: client.partitions(now, TOPIC),
    "topics": lambda client, now, _: client.topics(now, "public/default"),
    "definition": lambda client, now, _: client.definition(now, TOPIC),
    "update_service_url": lambda client, now, _: client.update_service_url(now, "pulsar://late:6650"),
}
"""Commands that open something, or ask."""

UNKNOWN: dict[str, Call] = {
    "close": lambda client, now, handle: client.close(now, handle),
    "abandon": lambda client, now, handle: client.abandon(now, handle),
    "explain": lambda client, now, handle: client.explain(now, handle),
}
"""Commands that need an id which the client has given."""

FACTS: dict[str, Call] = {
    "connected": lambda client, now, link: client.connected(now, link),
    "receive_data": lambda client, now, link: client.receive_data(now, link, b"\0\0\0\1late"),
    "receive_eof": lambda client, now, link: client.receive_eof(now, link),
    "disconnected": lambda client, now, link: client.disconnected(now, link, "late"),
    "credentials": lambda client, now, link: client.provide_credentials(now, link, Secret(b"late")),
    "no credentials": lambda client, now, link: client.refuse_credentials(
        now, link, CredentialsFailed("late")
    ),
    "key": lambda client, now, request: client.provide_encryption_key(
        now, request, EncryptionKeyInfo(Secret(b"late"))
    ),
    "no key": lambda client, now, request: client.refuse_encryption_key(now, request, CryptoError("late")),
    "deadline": lambda client, now, _: client.handle_deadline(now),
}
"""Facts that may be late."""


def check_closed_client(node: "ClientNode") -> None:
    """INV-N17: the client of the node is closed and quiet."""
    client, now, name = node.client, node.world.clock.now, f"{node.name} is closed"
    check_refusals(name, client, now, 0, OPENING, ClosedError)
    check_refusals(name, client, now, NEVER_GIVEN, UNKNOWN, LocalProtocolError)
    for what, fact in FACTS.items():
        for link in (1, NEVER_GIVEN):
            fact(client, now, link)
            if client.has_output or client.next_deadline() is not None or client.data_to_send(link):
                raise ViolationError("INV-N17", f"{name}: the fact {what} of {link} has a result")
    for handle in (None, 1):
        request = client.close(now, handle)
        answers = [client.next_output(), client.next_output()]
        if answers != [RequestDone(request, None), None]:
            raise ViolationError("INV-N17", f"{name} and answers a close of {handle} by {answers}")
    if client.links or client.memory_held:
        raise ViolationError(
            "INV-N17", f"{name} and has the links {client.links}, {client.memory_held} bytes"
        )
