"""Rules about questions and answers: ids, kinds, and what an answer has to say."""

from typing import Any

from ...model.errors import InvalidTopicName
from ...model.topic_name import TopicName
from ...wire import crc32c
from .. import commands as c
from ..findings import Finding, Side
from ..registry import rule
from ..state.state import State
from ..traits import UNSETTLED

MAX_REDIRECTS = 20
"""The redirects that one lookup may follow (GAP-25)."""


@rule("CHECK-14", *c.REQUESTS, side=Side.CLIENT)
def request_ids_are_free(state: State, command: Any) -> Finding:
    """A request id is not outstanding already; lookups and all other requests are two number spaces."""
    request_id = command.request_id
    if request_id is None:
        return None
    kind = state.kind
    outstanding = state.requests_of(kind).get(request_id)
    if outstanding is None:
        return None
    return (
        f"request {request_id} is outstanding since frame {outstanding.frame} ({c.name_of(outstanding.kind)})"
    )


def _about_the_connection(answer: Any) -> bool:
    """ERROR with the request id -1, and an ACK_RESPONSE without one, answer no question."""
    return bool(answer.request_id == c.NONE_ID)


@rule("CONN-07", *c.ANSWER_KINDS, side=Side.BROKER, traits=UNSETTLED)
def answers_have_a_question(state: State, answer: Any) -> Finding:
    """An answer has a question: a request with its id was asked on this connection."""
    if state.request is not None or _about_the_connection(answer):
        return None
    key = (state.kind in c.LOOKUP_ANSWERS, answer.request_id)
    space = state.lookups if key[0] else state.general
    if key in state.answered or key in state.cancelled or space.overflowed:
        return None
    if state.kind == c.ERROR and (True, answer.request_id) in state.answered:
        return None
    return f"no request {answer.request_id} was asked"


@rule("CONN-18", *c.ANSWER_KINDS, side=Side.BROKER, traits=UNSETTLED)
def answers_come_once(state: State, answer: Any) -> Finding:
    """Each request ends exactly once: it is not answered again."""
    if state.request is not None or _about_the_connection(answer):
        return None
    key = (state.kind in c.LOOKUP_ANSWERS, answer.request_id)
    kind = state.answered.get(key)
    if kind is None and state.kind == c.ERROR:
        kind = state.answered.get((True, answer.request_id))
    return None if kind is None else f"request {answer.request_id} ({c.name_of(kind)}) was answered already"


@rule("CHECK-15", *c.ANSWER_KINDS, side=Side.BROKER)
def answers_are_of_the_right_kind(state: State, answer: Any) -> Finding:
    """A request is answered by the command that belongs to it, or by ERROR where that is allowed."""
    request = state.request
    if request is None or state.kind in c.ANSWERS[request.kind]:
        return None
    return f"{c.name_of(request.kind)} {answer.request_id} is answered by {c.name_of(state.kind)}"


@rule(
    "CHECK-16",
    c.ACK_RESPONSE, c.WATCH_TOPIC_LIST_SUCCESS, c.ADD_PARTITION_TO_TXN_RESPONSE, c.END_TXN_RESPONSE,
    c.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, c.NEW_TXN_RESPONSE, c.END_TXN_ON_PARTITION_RESPONSE,
    c.END_TXN_ON_SUBSCRIPTION_RESPONSE,
)  # fmt: skip
def answers_repeat_the_ids(state: State, answer: Any) -> Finding:
    """An answer repeats the ids of its request: consumer, watcher, transaction, coordinator."""
    request = state.request
    if request is None or state.kind not in c.ANSWERS[request.kind]:
        return None
    asked = request.command
    if state.kind == c.ACK_RESPONSE:
        names: tuple[tuple[str, str], ...] = (("consumer_id", "consumer_id"),)
    elif state.kind == c.WATCH_TOPIC_LIST_SUCCESS:
        names = (("watcher_id", "watcher_id"),)
    elif state.kind == c.NEW_TXN_RESPONSE:
        names = (("txnid_most_bits", "tc_id"),)
    elif answer.HasField("error"):
        return None
    else:
        names = (("txnid_most_bits", "txnid_most_bits"), ("txnid_least_bits", "txnid_least_bits"))
    for theirs, ours in names:
        if getattr(answer, theirs) != getattr(asked, ours):
            return f"{theirs} is {getattr(answer, theirs)}, the request has {getattr(asked, ours)}"
    return None


@rule("CHECK-17", c.LOOKUP_RESPONSE, c.PARTITIONED_METADATA_RESPONSE)
def failures_have_a_code(state: State, answer: Any) -> Finding:
    """LOOKUP_RESPONSE and PARTITIONED_METADATA_RESPONSE say how it went, and on failure why."""
    if not answer.HasField("response"):
        return "the field response is missing"
    if answer.response == answer.Failed and not answer.HasField("error"):
        return "Failed without an error code"
    return None


@rule("CHECK-18", c.ACK_RESPONSE, c.GET_SCHEMA_RESPONSE, c.GET_OR_CREATE_SCHEMA_RESPONSE)
def result_or_error(state: State, answer: Any) -> Finding:
    """An answer has its result or an error with its text, never both or neither."""
    if state.kind == c.ACK_RESPONSE:
        if answer.HasField("error") != answer.HasField("message"):
            return "an error without its message, or a message without its error"
        return None
    result = answer.HasField("schema" if state.kind == c.GET_SCHEMA_RESPONSE else "schema_version")
    if result == answer.HasField("error_code"):
        return "a schema and an error" if result else "neither a schema nor an error"
    return None


# --- lookups ---------------------------------------------------------------------------------------


@rule("LOOKUP-05", c.LOOKUP_RESPONSE)
def lookups_name_a_broker(state: State, answer: Any) -> Finding:
    """Connect and Redirect name the broker's URL."""
    if answer.response not in (answer.Connect, answer.Redirect):
        return None
    if answer.brokerServiceUrl or answer.brokerServiceUrlTls:
        return None
    return "neither brokerServiceUrl nor brokerServiceUrlTls"


@rule("WIRE-03", c.PARTITIONED_METADATA_RESPONSE)
def partitions_are_counted(state: State, answer: Any) -> Finding:
    """A successful answer about partitions has their number."""
    if answer.response != answer.Success or not answer.HasField("response") or answer.HasField("partitions"):
        return None
    return "Success without partitions"


@rule("LOOKUP-03", c.LOOKUP)
def lookups_begin_without_authority(state: State, lookup: Any) -> Finding:
    """A lookup begins with authoritative = false; true only follows a redirect that said so."""
    if not lookup.authoritative or state.memory.redirects.get(lookup.topic):
        return None
    if state.memory.redirects.overflowed:
        return None
    return f"an authoritative LOOKUP of {lookup.topic}, and no redirect asked for it"


@rule("GAP-25", c.LOOKUP)
def redirects_are_bounded(state: State, lookup: Any) -> Finding:
    """A lookup follows at most 20 redirects."""
    if not lookup.authoritative:
        return None
    followed = min(state.memory.redirects.get(lookup.topic) or [0])
    return None if followed <= MAX_REDIRECTS else f"redirect {followed} of one lookup is followed"


@rule(
    "TOPIC-01",
    c.PRODUCER, c.SUBSCRIBE, c.LOOKUP, c.PARTITIONED_METADATA, c.GET_SCHEMA, c.GET_OR_CREATE_SCHEMA,
)  # fmt: skip
def topics_have_their_full_name(state: State, command: Any) -> Finding:
    """Topics go over the wire in their full form, domain://tenant/namespace/local."""
    topic = command.topic
    try:
        TopicName.parse(topic)
    except InvalidTopicName as error:
        # A name over four parts is an old one, a pattern may be looked up like a name: both are full.
        return None if topic.count("/") > 4 or state.kind == c.LOOKUP else str(error)
    return None if "://" in topic else f"the topic {topic!r} is a short name"


# --- lists of topics -------------------------------------------------------------------------------


def _hash_of(topics: list[str]) -> str:
    return crc32c(",".join(sorted(topics)).encode()).to_bytes(4, "little").hex()


@rule("CHECK-19", c.GET_TOPICS_OF_NAMESPACE_RESPONSE)
def unchanged_lists_are_empty(state: State, answer: Any) -> Finding:
    """A list of topics that has not changed is not sent."""
    return f"changed=false with {len(answer.topics)} topics" if not answer.changed and answer.topics else None


@rule("CHECK-20", c.GET_TOPICS_OF_NAMESPACE_RESPONSE, c.WATCH_TOPIC_LIST_SUCCESS)
def hashes_fit_their_lists(state: State, answer: Any) -> Finding:
    """topics_hash is the hash of the topics that come with it."""
    topics = list(answer.topics if state.kind == c.GET_TOPICS_OF_NAMESPACE_RESPONSE else answer.topic)
    if not topics or not answer.topics_hash or answer.topics_hash == _hash_of(topics):
        return None
    return f"topics_hash is {answer.topics_hash}, of these topics it would be {_hash_of(topics)}"


@rule("CHECK-21", c.WATCH_TOPIC_UPDATE)
def updates_have_a_watcher(state: State, update: Any) -> Finding:
    """WATCH_TOPIC_UPDATE names a watcher that is open."""
    if state.watchers.get(update.watcher_id) or state.watchers.overflowed:
        return None
    return f"watcher {update.watcher_id} is not open"


@rule("CHECK-22", c.WATCH_TOPIC_LIST_CLOSE)
def closed_watchers_were_open(state: State, close: Any) -> Finding:
    """WATCH_TOPIC_LIST_CLOSE names a watcher that was asked for on this connection."""
    if close.watcher_id in state.watchers or state.watchers.overflowed:
        return None
    return f"watcher {close.watcher_id} is unknown"
