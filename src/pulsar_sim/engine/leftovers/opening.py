"""A client that still opens something is not at rest.

Owns the states of its parts that say so.
"""

from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.client import Client
from pulsar_sansio.client.multi_topics.patterns.topic_list_watcher import TopicListWatcher
from pulsar_sansio.client.multi_topics.patterns.watcher_states import Idle

from .machine_parts import Walk

_OPENING = (
    states.CheckingPartitions,
    states.LookingUp,
    states.Connecting,
    states.Opening,
    states.BackingOff,
)


def is_opening(client: Client) -> bool:
    """True while a producer, a consumer or a watcher of topics is opened, or will be opened again."""
    return any(_is_opening(part) for part in Walk().parts(client))


def _is_opening(part: object) -> bool:
    if isinstance(part, TopicListWatcher):
        return isinstance(part.state, Idle) and part._retry.when is not None
    return isinstance(part, Attachment) and isinstance(part.state, _OPENING)
