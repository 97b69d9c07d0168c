"""The tables of a store, a kind of record each.

A number in place of a topic's name is `topic.number`. An entry's `id` is `ledger.number` times 2 ** 32 plus
the entry id, so the entries of a ledger are one range of the table. `bytes_before` is the number of bytes of
the ledger's entries before it, so the sizes of ledgers and backlogs need no sum. Lists are JSON, with ack
sets as hexadecimals. A text that is no Unicode (half of a surrogate pair) is a blob. A number of more than 64
bits is text.

A change of these tables, or of the meaning of a value, needs a new `FORMAT`, and a step in `migration`.
"""

APPLICATION_ID = 0x50755472
"""The mark of our files in SQLite's header: "PuTr"."""

FORMAT = 2
"""The version of the tables, `user_version` in SQLite's header."""

ENTRY_BITS = 32
"""The bits of an entry id within the id of its row."""

_ENTRY = """
    messages INTEGER NOT NULL,
    publish_time NOT NULL,
    received_at INTEGER NOT NULL,
    last_index INTEGER NOT NULL,
    deliver_at,
    chunk_of TEXT,
    coordinator,
    transaction_number,
    commits INTEGER,
    data BLOB NOT NULL
"""

SPECIAL = "deliver_at IS NOT NULL OR chunk_of IS NOT NULL OR coordinator IS NOT NULL"
"""The condition of entries that are delayed, chunks, or of a transaction."""

ENTRIES = (
    f"CREATE TABLE entry (id INTEGER PRIMARY KEY, bytes_before INTEGER NOT NULL, {_ENTRY})",
    f"CREATE INDEX special_entry ON entry (id) WHERE {SPECIAL}",
)
"""The table of entries, and the index by which a start finds the few that it needs to know."""

TABLES = f"""
CREATE TABLE broker (incarnation INTEGER NOT NULL, next_ledger_id INTEGER NOT NULL, syncs INTEGER NOT NULL);
INSERT INTO broker VALUES (0, 0, 0);
CREATE TABLE tenant (tenant TEXT PRIMARY KEY, admin_roles TEXT NOT NULL);
CREATE TABLE policies (scope TEXT PRIMARY KEY, policies TEXT NOT NULL);
CREATE TABLE properties (scope TEXT PRIMARY KEY, properties TEXT NOT NULL);
CREATE TABLE permission (scope TEXT PRIMARY KEY, roles TEXT NOT NULL, subscriptions TEXT NOT NULL);
CREATE TABLE partitioned_topic (topic TEXT PRIMARY KEY, partitions INTEGER NOT NULL);
CREATE TABLE schema_version (
    topic TEXT NOT NULL,
    version INTEGER NOT NULL,
    type INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    properties TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    deleted INTEGER NOT NULL
);
CREATE INDEX schema_of_topic ON schema_version (topic);
CREATE TABLE topic (
    number INTEGER PRIMARY KEY,
    topic TEXT NOT NULL UNIQUE,
    epoch,
    terminated_at INTEGER,
    migrated_to TEXT
);
CREATE TABLE ledger (
    number INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    ledger_id INTEGER NOT NULL,
    first_offset INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    first_index INTEGER NOT NULL,
    UNIQUE (topic, ledger_id)
);
{ENTRIES[0]};
{ENTRIES[1]};
CREATE TABLE cursor (
    topic INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    mark_delete INTEGER NOT NULL,
    acknowledged TEXT NOT NULL,
    partly TEXT NOT NULL,
    properties TEXT NOT NULL,
    UNIQUE (topic, subscription)
);
CREATE TABLE sequence (
    topic INTEGER NOT NULL, producer TEXT NOT NULL, sequence_id NOT NULL, UNIQUE (topic, producer)
);
CREATE TABLE pending_ack (
    topic INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    coordinator NOT NULL,
    transaction_number NOT NULL,
    individual TEXT NOT NULL,
    cumulative TEXT
);
CREATE INDEX pending_ack_of_subscription ON pending_ack (topic, subscription);
CREATE TABLE compacted (topic INTEGER PRIMARY KEY, ledger_id INTEGER NOT NULL, horizon INTEGER NOT NULL);
CREATE TABLE compacted_entry (
    topic INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    ledger_id INTEGER NOT NULL,
    entry_id INTEGER NOT NULL,
    {_ENTRY}
);
CREATE INDEX compacted_entry_of_topic ON compacted_entry (topic);
CREATE TABLE coordinator (coordinator PRIMARY KEY, next_transaction NOT NULL);
CREATE TABLE open_transaction (
    coordinator NOT NULL,
    transaction_number NOT NULL,
    owner TEXT NOT NULL,
    timeout NOT NULL,
    opened_at INTEGER NOT NULL,
    UNIQUE (coordinator, transaction_number)
);
CREATE TABLE transaction_part (
    coordinator NOT NULL, transaction_number NOT NULL, topics TEXT NOT NULL, subscriptions TEXT NOT NULL
);
CREATE INDEX part_of_transaction ON transaction_part (coordinator, transaction_number);
"""

ENTRY_COLUMNS = (
    "messages, publish_time, received_at, last_index, deliver_at, chunk_of, coordinator, transaction_number, "
    "commits, data"
)
"""The columns that `entry` and `compacted_entry` share. The payload is last: SQLite reads the others without
it."""
