"""Tables of released state by moment, one line for each class.

A line gives attributes of a class and its subclasses with their values at that moment. A value is "empty" (a
container, a text, bytes), "unset" (a timer), "incomplete" (a dict of batches that have messages to
acknowledge), "in:" with the container that holds it unless it is None, or a literal. Each attribute named
here has other values at other times. The tables were read off two thousand correct worlds. When a machine
changes, its line changes too.
"""

from ast import literal_eval

ENDED = """
AckCommands: _owner=None _single=None
AckGrouping: _connection=None flush_at=0
AckTracker: _parts=empty _position=None _position_record=None
Admission: _single_encoder=None
BlockedWatch: _connection=None
Consumer: connection=None
CopyProducer: _producer=None
DecodingSources: _asker=None _connection=None
Decryption: _request=None _waits_since=None awaited=None
DeliveryCounts: _messages=0
EntryBuilder: connection=None
EntryEncryption: _failed=None _proceed=None
InnerContext: _closed=True
JointAttachment: detached=0
KeyBatches: _extra=0 count=0 highest=-1 size=0
MemberTopic: query=None
MergedQueue: announced=False run_length=0
MeteredQueue: bytes_waiting=0
OpenBatch: _extra=0 _lent=0 _members=0 _size=0 _size_then=0 _space_then=0 explicit_highest=-1 first=empty
OpenBatch: first_ticket=0 lowest=0 publish_time=0 room=0 run_first=0 shared=((),None,None) space=0
PartitionSender: _current=None
Permits: _beyond_bytes=0 _beyond_entries=0 _grant=None at_broker=0 unreported=0
Positions: _connection=None _question=None _rollback=0 _sought_time=None _to_last=False
ProducerInterception: _refused=None
Query: cancelled=True
ReceiverQueue: _current=None _left_after=0 _singles=None _waiting=0 announced=False run_length=0
Redelivery: _connection=None
ScaledPermits: _grant=None at_broker=0 unreported=0
Seeking: _leaving=True _pending=None _unanswered=None current=None
SendWindow: _first_chunk=None messages=0
TableView: _over=True
TopicListWatcher: _closed=True
ZeroQueuePermits: _grant=None at_broker=0
"""
"""A producer, a consumer or a table view has ended."""

DETACHED = """
AckGrouping: _connection=None _last_sent=None _slot=unset _unconfirmed=empty flush_at=0
AckTracker: _sent=None
AcknowledgementTimeout: _slot=unset
BlockedWatch: _connection=None _slot=unset
Consumer: connection=None end_of_topic=False is_active=None is_positioned=False
DecodingSources: _asker=None _connection=None
Decryption: _waits_since=None
EncryptedArrival: _waiting=empty
HeldBack: _seen=empty _slot=unset
LastMessage: _connection=None
NegativeAcknowledgements: _at=empty _moments=empty _when=empty
Permits: _beyond_bytes=0 _beyond_entries=0 _grant=None at_broker=0 unreported=0
Positions: _connection=None _held=False _rollback=0 _to_last=False
Positions: _ask_again=unset
Question: asked=None
Redelivery: _connection=None _expired=empty _slot=unset
RedeliverySchedule: _at=empty _moments=empty _when=empty
ScaledPermits: _grant=None at_broker=0 unreported=0
Seeking: _connection=None _unanswered=None
TransactionalAcks: _connection=None
ZeroQueuePermits: _grant=None at_broker=0
"""
"""A consumer has lost its connection, and has no other one yet."""

LINK_ENDED = """
Connection: _ended=True _timer=unset consumers=empty pending=empty producers=empty ready=False watchers=empty
Connection: unwritten=empty
CredentialExchange: _asked=None
HttpExchange: _timer=unset ready=False
LookupQueue: _in_flight=0 _waiting=empty
ReceiveBuffer: _length=0 _needed=0 _pieces=empty
"""
"""A client's connection has ended."""

CLOSED = """
LookupQueue: _in_flight=0
MemoryLimit: blocked=False turn=0
OpenHandles: closed_client=True
ReceivedMemory: bytes_waiting=0
_Timeouts: _done=0
"""
"""A client is closed."""

RESTING = """
AckGrouping: _unconfirmed=empty
AckTracker: _batches=incomplete _parts=empty
Admission: waits_for_memory=False was_full=False
Attachment: _give_up_at=unset was_attached=True
Client: _close_requests=empty _client_close_requests=empty
Connection: _unread_answers=0 unwritten=empty
Context: outputs=empty
CopyProducer: _in_flight=empty _waiting=empty
DecodingSources: _asker=None
Decryption: _request=None _waits_since=None awaited=None
DeliveryStart: since=None
EncryptedArrival: _waiting=empty
EntryBuilder: _batch_timer=unset
EntryEncryption: _failed=None _infos=empty _proceed=None _requests=empty
GatheredRequests: _asked=empty
InnerContext: _slot=unset
InnerContext: outputs=empty
KeyBatches: _batches=empty _extra=0 count=0 highest=-1 size=0
KeyRequests: _pending=empty
LastMessage: _open=empty _slot=unset
LetterTopics: _pending_copies=empty _moves=0 _requests=empty _slot=unset
Member: ready=True
MemberTopic: growth=empty missing=empty query=None
MemberTopic: opened=True
MemoryLimit: _borrowers=empty _to_notify=empty blocked=False turn=0
MergedQueue: run_length=0
MergedQueue: _has_turn=empty _turns=empty announced=False
MeteredQueue: bytes_waiting=0
OpenBatch: _extra=0 _lent=0 _members=0 _size=0 _size_then=0 _space_then=0 explicit_highest=-1 first=empty
OpenBatch: first_ticket=0 lowest=0 publish_time=0 room=0 run_first=0 shared=((),None,None) space=0
OpenBatch: _parts=empty run=empty
OpenHandles: closing=False
Partition: detached=None ready=True
PartitionSender: was_full=False
PartitionedProducer: _growth=empty _missing=empty _query=None _unnamed=empty
PatternTopics: _query=None
Permits: _beyond_bytes=0 _beyond_entries=0
Permits: paused=False
PositionRequests: _open=empty
Positions: _ask_again=unset _held=False _question=None _rollback=0 _sought_time=None
Positions: _to_last=False _unknown=False
ProducerInterception: _messages=empty
ReceivedMemory: bytes_waiting=0
ReceiverQueue: _current=None _items=empty _left_after=0 _singles=None _waiting=0 announced=False
ReceiverQueue: run_length=0
ScaledPermits: paused=False
Seeking: _pending=None _slot=unset _unanswered=None current=None waiting=empty
SendWindow: _first_chunk=None _flushes=empty entries=empty messages=0
TableView: _answers=empty _catching_up=empty _loading=False
TopicListWatcher: _retry=unset
TopicQueries: _queries=empty
TopicVersions: asked=empty
UnsealedMessages: messages=empty
Unsubscription: _open=empty
"""
"""A client is open, all messages sent are stored, and all delivered messages are acknowledged."""

BROKER_RESTING = """
Compaction: _work=None
Connection: _outbox=empty _unsent=0 pending_publishes=0 unread=0
Consumer: blocked=False pending=empty saved_permits=0
Context: outputs=empty
Delays: _heap=empty _timer=unset _waiting=empty
Journal: _cursors_written=empty _dirty_due=False _effects=empty _publishes=empty _waiting_effects=empty
Journal: _waiting_publishes=empty records=empty
KeepAlive: _probe=unset _waiters=empty
KeyShared: _held=empty _held_count=0 _holders=empty _short_of_room=empty _slots=empty
NonPersistentSubscription: _active=in:consumers
Ownership: _departed=empty
Producer: _after_receipts=empty pending=0
Producers: waiting=empty
Shared: _chunk_holders=empty _chunks_held=empty _replay=empty _replaying=empty
Shared: blocked=False outstanding=0 redeliveries=empty
SingleActive: active=in:consumers
Topic: _pending=empty _sequences_moved=empty
TopicRegistry: releasing=empty
Watchers: _updates=unset
"""
"""A broker, when all messages sent are stored and all delivered messages are acknowledged."""

BROKER_LINK_ENDED = """
Connection: consumers=empty producers=empty writable=False
ConnectionAuthentication: _then=None _timer=unset
KeepAlive: _probe=unset _timer=unset _waiters=empty
ReceiveBuffer: _length=0 _needed=0 _pieces=empty
"""
"""A broker's connection has ended."""

ALONE = """
Broker: links=empty
Compaction: _work=None
Connection: _outbox=empty _unsent=0 pending_publishes=0 unread=0 writable=False
Consumer: blocked=False closed=True pending=empty saved_permits=0
Context: outputs=empty
Delays: _heap=empty _timer=unset _waiting=empty
KeyShared: _chunk_holders=empty _chunks_held=empty _held=empty _held_count=0 _holders=empty _slots=empty
KeyShared: _short_of_room=empty
Ownership: _departed=empty
Producer: _after_receipts=empty closing=True pending=0
Producers: by_name=empty exclusive=None waiting=empty
Shared: _replay=empty _replaying=empty blocked=False consumers=empty outstanding=0 redeliveries=empty
SingleActive: _change=unset _order=empty _ranks=empty active=None consumers=empty
Subscription: _unaware_of_end=empty
Topic: _pending=empty _sequences_moved=empty served=empty
TopicRegistry: releasing=empty
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
    "UnsealedMessages": "_in_batches",
    "TransactionalAcks": "_unanswered",  # until the answers come
    "ClosedHandles": "_causes _statistics",
    "Connection": "_handlers",
}
"""Containers that an end does not empty: nothing reads them, or they still answer questions."""


WORDS = frozenset({"empty", "unset", "incomplete"})
"""Values of a table that are no literals."""


def parsed(table: str) -> dict[str, list[tuple[str, object]]]:
    """Return the attributes of each class, each with one of `WORDS` or a value."""
    found: dict[str, list[tuple[str, object]]] = {}
    for line in table.strip().splitlines():
        name, _, attributes = line.partition(": ")
        for each in attributes.split():
            attribute, _, text = each.partition("=")
            value = (
                text if text in ("empty", "unset", "incomplete") or text[:3] == "in:" else literal_eval(text)
            )
            found.setdefault(name, []).append((attribute, value))
    return found
