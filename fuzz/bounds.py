"""The most memory that a peer can make a machine hold, as a function of its configuration.

Every term names the thing that is held. The bound leaves out what an application holds of its own will:
messages that it took, and messages that it sent and that wait for their receipt. It also leaves out what a
broker stores. Clients are meant to use storage, and the policies and limits of topics bound it.
"""

from collections.abc import Iterable

from pulsar_sansio import BrokerConfig, ClientConfig, ConsumerSpec
from pulsar_sansio.broker.serving.connection import UNSENT_LIMIT_FACTOR
from pulsar_sansio.broker.serving.lookups import MAX_NAME_LENGTH, MAX_PROPERTIES
from pulsar_sansio.client.acknowledging.ack_tracker import MAX_OPEN_BATCHES
from pulsar_sansio.client.connecting.connection import MAX_UNREAD_ANSWERS
from pulsar_sansio.client.delivery.permits import MAX_BYTES_BEYOND_GRANT, MAX_ENTRIES_BEYOND_GRANT
from pulsar_sansio.client.lookup.http_exchange import MAX_HEADERS
from pulsar_sansio.client.lookup.http_lookup import MAX_EXCHANGES, MAX_LISTING
from pulsar_sansio.client.security.credential_exchange import MAX_CHALLENGE
from pulsar_sansio.wire import max_frame_size

FIXED = 4 * 1024 * 1024
"""Bytes of tables and caches that fill as they are used: layouts of batches, sizes of headers, templates of
receipts. Each of them has a number of entries of its own."""

FRAME_COPIES = 4
"""A frame is held as pieces, joined, and as its payload; and the next one may have begun."""

EXPANSION = 16
"""Bytes held for one byte of a batch: the smallest message has 6 bytes, and becomes an object, a reference to
it and a position."""

ENTRY = 2048
"""Bytes of an entry besides its payload: its headers taken apart."""

ANSWER_EXPANSION = 4
"""Bytes held for one byte that waits to be written: answers are small objects."""

RECORD = 512
"""Bytes of the record of a batch that is not wholly acknowledged."""


def fed_bound(fed: int, inflatable: int, limit: int) -> int:
    """The most bytes that a machine may hold after `fed` bytes from peers.

    `inflatable` entries become up to `limit` bytes each. A machine holds only what came over the wire, and
    each byte of it grows by a bounded factor.
    """
    return FIXED + EXPANSION * (fed + inflatable * limit)


def client_bound(config: ClientConfig, consumers: Iterable[ConsumerSpec], links: int) -> int:
    """Bytes that brokers can make a client hold. `links`: connections at one time."""
    limit = max(config.max_message_size, config.max_announced_message_size)
    link = FRAME_COPIES * max_frame_size(limit) + ANSWER_EXPANSION * MAX_UNREAD_ANSWERS + MAX_CHALLENGE
    held = FIXED + links * link
    if config.service_url.startswith("http"):
        held += MAX_EXCHANGES * (MAX_HEADERS + EXPANSION * MAX_LISTING)
    for consumer in consumers:
        granted = consumer.receiver_queue_size * limit
        beyond = min(MAX_ENTRIES_BEYOND_GRANT * limit, MAX_BYTES_BEYOND_GRANT + limit)
        entries = consumer.receiver_queue_size + MAX_ENTRIES_BEYOND_GRANT
        held += (granted + beyond) * EXPANSION + entries * ENTRY
        held += min(MAX_OPEN_BATCHES, entries) * RECORD
    return held


NAME_BYTES = 4 * MAX_NAME_LENGTH
"""Bytes of a name that a client chose."""

PROPERTIES_BYTES = 8 * MAX_PROPERTIES
"""Bytes of one set of properties of a client: objects, and text of up to four bytes a character."""

OBJECT = 4096
"""Bytes of a connection, topic, subscription, producer or consumer besides its names and properties."""


def broker_bound(config: BrokerConfig, stored: int, entries: int) -> int:
    """Bytes that clients can make a broker hold, `stored` bytes in `entries` entries of it being storage.

    Everything that a client can make come into being has a number of its own and a size: connections,
    producers, consumers, topics, subscriptions, their names and their properties.
    """
    frame = max_frame_size(config.max_message_size)
    unsent = config.max_unsent_bytes * UNSENT_LIMIT_FACTOR + 2 * frame
    thing = OBJECT + NAME_BYTES + PROPERTIES_BYTES
    attached = config.max_producers_per_connection + config.max_consumers_per_connection
    connection = OBJECT + FRAME_COPIES * frame + ANSWER_EXPANSION * unsent + attached * thing
    topics = config.max_topics * (thing + config.max_subscriptions_per_topic * thing)
    storage = 2 * stored + entries * ENTRY
    return FIXED + config.max_connections * connection + topics + storage
