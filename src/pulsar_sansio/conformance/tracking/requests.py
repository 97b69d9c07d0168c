"""Change the state for handshake, keep-alive, requests and their answers.

The modules of producers and consumers apply an answer to a producer or a consumer.
"""

from typing import Any

from .. import commands as c
from ..findings import Side
from ..questions import answered, ask
from ..state.state import State, Step
from .consumers import acknowledged, closed_consumer, opened_consumer, refused_consumer, sought
from .producers import closed_producer, learn_schema, refused_producer

# --- handshake and keep-alive ------------------------------------------------------------------------


def _connect(state: State, connect: Any) -> None:
    state.handshake.connect_seen = True
    state.handshake.client_version = state.version = connect.protocol_version
    state.handshake.client_flags = connect.feature_flags


def _connected(state: State, connected: Any) -> None:
    state.connected = True
    state.version = min(connected.protocol_version, state.handshake.client_version)
    state.handshake.broker_flags = connected.feature_flags
    if connected.max_message_size > 0:
        state.max_message_size = connected.max_message_size


def _challenge(state: State, challenge: Any) -> None:
    state.handshake.challenges += 1
    if not state.connected:
        state.handshake.challenge_rounds += 1


def _challenge_response(state: State, response: Any) -> None:
    state.handshake.challenges = max(0, state.handshake.challenges - 1)


def _ping(state: State, ping: Any) -> None:
    if state.side is Side.CLIENT:
        state.keepalive.of_client.append(state.frame)
        state.keepalive.last_of_client = state.frame
        state.keepalive.quiet = True
    else:
        state.keepalive.of_broker.append(state.frame)


def _pong(state: State, pong: Any) -> None:
    if state.side is Side.CLIENT:
        if state.keepalive.of_broker:
            state.read_by_client = max(state.read_by_client, state.keepalive.of_broker.popleft())
    elif state.keepalive.of_client:
        state.read_by_broker = max(state.read_by_broker, state.keepalive.of_client.popleft())


# --- questions and answers ---------------------------------------------------------------------------


def _asking(kind: int) -> Step:
    def step(state: State, command: Any) -> None:
        ask(state, kind, command)

    return step


def _answer(state: State, answer: Any) -> None:
    answered(state, answer)


def _lookup(state: State, lookup: Any) -> None:
    request = ask(state, c.LOOKUP, lookup)
    chains = state.memory.redirects.get(lookup.topic)
    if lookup.authoritative and chains:
        # With several redirects of one topic the checker cannot tell which one the client follows. It may
        # be the shortest chain, and those that are left may be the others but the longest.
        request.followed = min(chains)
        chains.remove(max(chains))


def _lookup_answer(state: State, answer: Any) -> None:
    request = answered(state, answer)
    if request is None or request.kind != c.LOOKUP:
        return
    topic = request.command.topic
    redirects = state.memory.redirects
    if answer.response == answer.Redirect and answer.authoritative:
        redirects[topic] = [*redirects.get(topic, [])[-63:], request.followed + 1]


def _schema_answer(state: State, answer: Any) -> None:
    request = answered(state, answer)
    if request is not None and request.kind == c.GET_OR_CREATE_SCHEMA:
        learn_schema(state, request.command.topic, answer.schema_version)


def _success(state: State, success: Any) -> None:
    request = answered(state, success)
    if request is None:
        return
    kind = request.kind
    if kind == c.SUBSCRIBE:
        opened_consumer(state, request)
    elif kind == c.CLOSE_PRODUCER:
        closed_producer(state, request)
    elif kind in (c.CLOSE_CONSUMER, c.UNSUBSCRIBE):
        closed_consumer(state, request)
    elif kind == c.SEEK:
        sought(state, request)
    elif kind == c.WATCH_TOPIC_LIST_CLOSE:
        state.watchers.pop(request.command.watcher_id, None)


def _error(state: State, error: Any) -> None:
    request = answered(state, error)
    if request is None:
        return
    kind = request.kind
    if kind in (c.PRODUCER, c.CLOSE_PRODUCER):
        refused_producer(state, request)
    elif kind in (c.SUBSCRIBE, c.UNSUBSCRIBE, c.CLOSE_CONSUMER):
        refused_consumer(state, request)
    elif kind == c.SEEK:
        sought(state, request)
    elif kind == c.WATCH_TOPIC_LIST:
        state.watchers.pop(request.command.watcher_id, None)


# --- watchers ----------------------------------------------------------------------------------------


def _watch(state: State, watch: Any) -> None:
    ask(state, c.WATCH_TOPIC_LIST, watch)
    state.watchers.setdefault(watch.watcher_id, False)


def _watching(state: State, success: Any) -> None:
    if answered(state, success) is not None:
        state.watchers[success.watcher_id] = True


# --- the table -------------------------------------------------------------------------------------

STEPS: dict[int, Step] = {
    c.CONNECT: _connect,
    c.CONNECTED: _connected,
    c.AUTH_CHALLENGE: _challenge,
    c.AUTH_RESPONSE: _challenge_response,
    c.PING: _ping,
    c.PONG: _pong,
    **{
        kind: _asking(kind)
        for kind in (
            c.PARTITIONED_METADATA, c.LOOKUP, c.CONSUMER_STATS, c.GET_LAST_MESSAGE_ID,
            c.GET_TOPICS_OF_NAMESPACE, c.GET_SCHEMA, c.GET_OR_CREATE_SCHEMA, c.NEW_TXN,
            c.ADD_PARTITION_TO_TXN, c.ADD_SUBSCRIPTION_TO_TXN, c.END_TXN_ON_PARTITION,
            c.END_TXN_ON_SUBSCRIPTION, c.TC_CLIENT_CONNECT, c.WATCH_TOPIC_LIST_CLOSE,
        )
    },
    **dict.fromkeys(c.ANSWER_KINDS, _answer),
    c.LOOKUP: _lookup,
    c.LOOKUP_RESPONSE: _lookup_answer,
    c.GET_OR_CREATE_SCHEMA_RESPONSE: _schema_answer,
    c.SUCCESS: _success,
    c.ERROR: _error,
    c.ACK_RESPONSE: acknowledged,
    c.WATCH_TOPIC_LIST: _watch,
    c.WATCH_TOPIC_LIST_SUCCESS: _watching,
}  # fmt: skip
