"""`StorageAdministration`: show what topics store, and remove what no subscription needs.

The answers have a Java broker's names. Values that only ledgers of BookKeeper have are left out.
"""

from typing import Any

from ...model.message_id import MessageId
from ...model.topic_name import TopicName
from ..admin_errors import NotApplicable, NotFound
from ..topics.topic import Topic
from .parts import Parts


class StorageAdministration:
    """Commands that concern the entries of topics and the positions in them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._metadata = parts.metadata
        self._settle = parts.settle

    # --- looking --------------------------------------------------------------------------------------

    def internal_info(self, topic: str) -> dict[str, Any]:
        """Return the answer to `GET …/internal-info`: ledgers and cursors, of each partition by its name.

        Raises `NotFound`, or `NotApplicable` for a topic that is not persistent.
        """
        each = {found.name: _info(found) for found in self._persistent(topic)}
        if self._parts.existing(topic) in self._metadata.partitions:
            return {"partitions": each}
        return each[str(TopicName.parse(topic))]

    def stored_backlog(self, topic: str) -> dict[str, Any]:
        """Return the answer to `GET …/backlog`: entries of the topic, and those that subscriptions lack.

        A topic that does not exist has none. Raises `NotFound` where the namespace does not exist, or
        `NotApplicable` for a partitioned topic or one that is not persistent.
        """
        name = TopicName.parse(topic)
        self._metadata.require_namespace(name.namespace_name)
        exists = str(name) in self._parts.topics.by_name or str(name) in self._metadata.partitions
        found = self._parts.persistent_topic(topic) if exists else None
        subscriptions = {} if found is None else found.subscriptions
        ledgers = [] if found is None else found.log.ledgers
        return {
            "storageSize": 0 if found is None else found.log.size,
            "totalMessages": 0 if found is None else found.log.end - found.log.first,
            "messageBacklog": sum(each.backlog for each in subscriptions.values()),
            "topicName": f"{name.namespace_name}/persistent/{name.local}",
            "dataLedgerDetails": [
                {
                    "entries": ledger.end - ledger.first,
                    "timestamp": ledger.opened_at,
                    "size": ledger.size,
                    "ledgerId": ledger.id,
                }
                for ledger in ledgers
            ],
            "cursorDetails": {
                name: {"cursorBacklog": each.backlog, "cursorLedgerId": -1}
                for name, each in subscriptions.items()
            },
            "statGeneratedAt": self._parts.services.wall_time,
        }

    def backlog_size(self, topic: str, position: MessageId) -> int:
        """Return the bytes of all entries after a position. A position before the first entry is all of them.

        Raises `NotFound`, or `NotApplicable` for a partitioned topic or one that is not persistent.
        """
        log = self._parts.persistent_topic(topic).log
        offset = log.exact(position.ledger_id, position.entry_id)
        after = log.offset(position.ledger_id, position.entry_id) if offset is None else offset + 1
        return log.size_from(after) if after < log.end else 0

    def message_id_at_index(self, topic: str, index: int) -> MessageId:
        """Return the id of the entry that holds the message with this index in the topic, counted from 0.

        Raises `NotFound` also where no such message is stored, or `NotApplicable` for a partitioned topic,
        one that is not persistent, and a broker without `broker_entry_metadata`.
        """
        found = self._parts.persistent_topic(topic)
        if not found.services.config.broker_entry_metadata:
            raise NotApplicable("the broker has no broker_entry_metadata")
        offset = found.log.find_index(index)
        if offset is None:
            raise NotFound(f"Message not found for index {index}")
        return MessageId(*found.log.position(offset), found.partition)

    # --- removing -------------------------------------------------------------------------------------

    def truncate(self, now: int, topic: str) -> None:
        """Acknowledge all entries in every subscription except compaction's, and remove closed ledgers,
        whatever retention says.

        Raises `NotFound`, or `NotApplicable` for a topic that is not persistent.
        """
        self._context.now = now
        for each in self._persistent(topic):
            each.skip_everywhere(each.log.durable_end - 1)
            each.trim(retained=False)
        self._settle()

    def trim(self, now: int, topic: str) -> None:
        """Remove closed ledgers that every subscription has acknowledged, as retention allows.

        Raises `NotFound`, or `NotApplicable` for a topic that is not persistent.
        """
        self._context.now = now
        for each in self._persistent(topic):
            each.trim()
        self._settle()

    def _persistent(self, topic: str) -> list[Topic]:
        """Return the topic, or its partitions. Raises `NotFound`, `NotApplicable`."""
        found = self._parts.topics_of(topic)
        persistent = [each for each in found if isinstance(each, Topic)]
        if len(persistent) != len(found) or not TopicName.parse(topic).persistent:
            raise NotApplicable(f"{topic} is not persistent")
        return persistent


def _info(topic: Topic) -> dict[str, Any]:
    info: dict[str, Any] = {
        "ledgers": [
            {"ledgerId": ledger.id, "timestamp": ledger.opened_at, "isOffloaded": False}
            | ({} if ledger is topic.log.ledgers[-1] else _closed(ledger.end - ledger.first, ledger.size))
            for ledger in topic.log.ledgers
        ],
        "cursors": {name: _cursor(topic, name) for name in topic.subscriptions},
    }
    if topic.terminated_at is not None:
        info["terminatedPosition"] = _position(topic, topic.terminated_at - 1)
    return info


def _closed(entries: int, size: int) -> dict[str, int]:
    return {"entries": entries, "size": size}


def _cursor(topic: Topic, subscription: str) -> dict[str, Any]:
    """Describe a cursor. `cursorsLedgerId` is -1: this broker stores cursors with the topic."""
    cursor = topic.subscriptions[subscription].cursor
    described: dict[str, Any] = {"cursorsLedgerId": -1, "markDelete": _position(topic, cursor.mark_delete)}
    ranges = [
        {"lower": _position(topic, first - 1), "upper": _position(topic, last)}
        for first, last in cursor.ranges
    ]
    if ranges:
        described["individualDeletedMessages"] = ranges
    return described


def _position(topic: Topic, offset: int) -> dict[str, int]:
    ledger_id, entry_id = topic.log.position(offset)
    return {"ledgerId": ledger_id, "entryId": entry_id}
