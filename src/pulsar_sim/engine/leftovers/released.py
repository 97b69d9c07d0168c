"""Tables of released state by moment, one line for each class.

A line gives attributes of a class and its subclasses with their values at that moment. A value is "empty" (a
container, a text, bytes), "unset" (a timer), "in:" with the container that holds it unless it is None, or a
literal. Each attribute named here has other values at other times. The tables were read off two thousand
correct worlds. When a machine changes, its line changes too.
"""

from ast import literal_eval

ENDED = """
AckTracker: _parts=empty _position=None _position_record=None
AckGrouping: _connection=None flush_at=0
BlockedWatch: _connection=None
Consumer: connection=None
ReceiverQueue: _current=None _left_after=0 _singles=None _waiting=0 announced=False run_length=0
MemberTopic: query=None
InnerContext: _closed=True
Admission: _single_encoder=None
ProducerInterception: _refused=None
KeyBatches: _extra=0 count=0 highest=-1 size=0
CopyProducer: _producer=None
MergedQueue: announced=False run_length=0
MeteredQueue: bytes_waiting=0
OpenBatch: _extra=0 _lent=0 _members=0 _size=0 _size_then=0 _space_then=0 explicit_highest=-1 first=empty
OpenBatch: first_ticket=0 lowest=0 publish_time=0 room=0 run_first=0 shared=((),None,None) space=0
TopicListWatcher: _closed=True
Permits: _beyond_bytes=0 _beyond_entries=0 _grant=None at_broker=0 unreported=0
Positions: _connection=None _question=None _rollback=0 _sought_time=None _to_last=False
Redelivery: _connection=None
EntryBuilder: connection=None
Seeking: _leaving=True _pending=None _unanswered=None current=None
PartitionSender: _current=None
TableView: _over=True
JointAttachment: detached=0
AckCommands: _owner=None _single=None
SendWindow: _first_chunk=None messages=0
"""
"""A producer, a consumer or a table view has ended."""

DETACHED = """
AckTracker: _sent=None
AcknowledgementTimeout: _slot=unset
AckGrouping: _connection=None _last_sent=None _slot=unset _unconfirmed=empty flush_at=0
BlockedWatch: _connection=None _slot=unset
Consumer: connection=None end_of_topic=False is_active=None is_positioned=False
RedeliverySchedule: _at=empty _moments=empty _when=empty
HeldBack: _seen=empty _slot=unset
LastMessage: _connection=None
Permits: _beyond_bytes=0 _beyond_entries=0 _grant=None at_broker=0 unreported=0
Positions: _connection=None _held=False _rollback=0 _to_last=False
Positions: _ask_again=unset
Question: asked=None
Redelivery: _connection=None _expired=empty _slot=unset
Seeking: _connection=None _unanswered=None
"""
"""A consumer has lost its connection, and has no other one yet."""

LINK_ENDED = """
Connection: _ended=True _timer=unset consumers=empty pending=empty producers=empty ready=False watchers=empty
Connection: unwritten=empty
LookupQueue: _in_flight=0 _waiting=empty
ReceiveBuffer: _length=0 _needed=0 _pieces=empty
"""
"""A client's connection has ended."""

CLOSED = """
OpenHandles: closed_client=True
MemoryLimit: blocked=False turn=0
ReceivedMemory: bytes_waiting=0
_Timeouts: _done=0
"""
"""A client is closed."""

RESTING = """
DeliveryStart: since=None
Client: _close_requests=empty _client_close_requests=empty
OpenHandles: closing=False
TopicQueries: _queries=empty
Connection: _unread_answers=0 unwritten=empty
Unsubscription: _open=empty
Context: outputs=empty
MeteredQueue: bytes_waiting=0
GatheredRequests: _asked=empty
MemberTopic: growth=empty missing=empty query=None
InnerContext: _slot=unset
Admission: _unsealed=empty waits_for_memory=False was_full=False
ProducerInterception: _messages=empty
KeyBatches: _batches=empty _extra=0 count=0 highest=-1 size=0
LastMessage: _open=empty _slot=unset
CopyProducer: _in_flight=empty _waiting=empty
LetterTopics: _pending_copies=empty _moves=0 _requests=empty _slot=unset
MemoryLimit: _borrowers=empty _to_notify=empty blocked=False turn=0
MergedQueue: run_length=0
OpenBatch: _extra=0 _lent=0 _members=0 _size=0 _size_then=0 _space_then=0 explicit_highest=-1 first=empty
OpenBatch: first_ticket=0 lowest=0 publish_time=0 room=0 run_first=0 shared=((),None,None) space=0
OpenBatch: _parts=empty run=empty
PartitionedProducer: _growth=empty _missing=empty _query=None _unnamed=empty
PatternTopics: _query=None
Permits: _beyond_bytes=0 _beyond_entries=0
PositionRequests: _open=empty
Positions: _ask_again=unset _held=False _question=None _rollback=0 _sought_time=None
Positions: _to_last=False _unknown=False
ReceivedMemory: bytes_waiting=0
EntryBuilder: _batch_timer=unset
Seeking: _pending=None _slot=unset _unanswered=None current=None waiting=empty
PartitionSender: was_full=False
TableView: _answers=empty _catching_up=empty _loading=False
SendWindow: _first_chunk=None _flushes=empty entries=empty messages=0
"""
"""A client is open, all messages sent are stored, and all delivered messages are acknowledged."""

BROKER_RESTING = """
Ownership: _departed=empty
TopicRegistry: releasing=empty
Compaction: _work=None
Connection: _outbox=empty _unsent=0 pending_publishes=0 unread=0
KeepAlive: _probe=unset _waiters=empty
Consumer: blocked=False pending=empty saved_permits=0
Context: outputs=empty
Delays: _heap=empty _timer=unset _waiting=empty
Journal: _cursors_written=empty _dirty_due=False _effects=empty _publishes=empty _waiting_effects=empty
Journal: _waiting_publishes=empty records=empty
Producer: _after_receipts=empty pending=0
Producers: waiting=empty
Shared: _chunk_holders=empty _chunks_held=empty _replay=empty _replaying=empty
Shared: blocked=False outstanding=0 redeliveries=empty
SingleActive: active=in:consumers
NonPersistentSubscription: _active=in:consumers
KeyShared: _held=empty _held_count=0 _holders=empty _short_of_room=empty _slots=empty
Topic: _pending=empty _sequences_moved=empty
Watchers: _updates=unset
"""
"""A broker, when all messages sent are stored and all delivered messages are acknowledged."""

BROKER_LINK_ENDED = """
KeepAlive: _probe=unset _timer=unset _waiters=empty
Connection: consumers=empty producers=empty writable=False
ReceiveBuffer: _length=0 _needed=0 _pieces=empty
"""
"""A broker's connection has ended."""

ALONE = """
Broker: links=empty
Ownership: _departed=empty
TopicRegistry: releasing=empty
Compaction: _work=None
Connection: _outbox=empty _unsent=0 pending_publishes=0 unread=0 writable=False
Consumer: blocked=False closed=True pending=empty saved_permits=0
Context: outputs=empty
Delays: _heap=empty _timer=unset _waiting=empty
KeyShared: _chunk_holders=empty _chunks_held=empty _held=empty _held_count=0 _holders=empty _slots=empty
KeyShared: _short_of_room=empty
Producer: _after_receipts=empty closing=True pending=0
Producers: by_name=empty exclusive=None waiting=empty
Shared: _replay=empty _replaying=empty blocked=False consumers=empty outstanding=0 redeliveries=empty
SingleActive: _change=unset _order=empty _ranks=empty active=None consumers=empty
Subscription: _unaware_of_end=empty
Topic: _pending=empty _sequences_moved=empty served=empty
Turns: _awake=empty _next=empty _order=empty _ranks=empty
Watchers: _all=empty _updates=unset
"""
"""A broker, when no client is connected."""

KEPT = {
    "AckTracker": "_batches _chunked",  # delivered messages can be acknowledged at any time
    "NegativeAcknowledgements": "_delays",  # part of the spec
    "InnerContext": "outputs",  # no output of it is read any more
    "MemberTopic": "growth missing",  # statistics read the following
    "Partition": "_runs",
    "PartitionedProducer": "_growth _missing _unnamed",
    "PatternTopics": "_names",
    "Router": "_hashes",
    "PartitionSender": "partitions",
    "TableView": "_answers _messages _table",
    "ValueTable": "_messages",  # it keeps its content
    "MultiTopicsConsumer": "_topics",
    "PartitionGrowth": "topics",
    "DeliveryCounts": "_entries",
    "SendWindow": "latencies",
    "Admission": "_in_batches",
    "ClosedHandles": "_causes _statistics",
    "Connection": "_handlers",
}
"""Containers that an end does not empty: nothing reads them, or they still answer questions."""


def parsed(table: str) -> dict[str, list[tuple[str, object]]]:
    """Return the attributes of each class, each with "empty", "unset" or a value."""
    found: dict[str, list[tuple[str, object]]] = {}
    for line in table.strip().splitlines():
        name, _, attributes = line.partition(": ")
        for each in attributes.split():
            attribute, _, text = each.partition("=")
            value = text if text in ("empty", "unset") or text[:3] == "in:" else literal_eval(text)
            found.setdefault(name, []).append((attribute, value))
    return found
