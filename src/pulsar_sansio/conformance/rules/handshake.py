"""Rules about the handshake and keep-alive.

While the handshake lasts, the conversation itself checks its order for every frame (`order_of_client`,
`order_of_broker`). The other rules apply by the kind of command.
"""

import re
from typing import Any

from .. import commands as c
from ..findings import Finding, Side
from ..registry import rule
from ..state.state import State
from ..traits import PINGED

MAX_CHALLENGES = 10
"""Rounds of authentication in one handshake (GAP-33)."""

_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+):[0-9]{1,5}")


@rule("CONN-01", side=Side.CLIENT)
def connect_is_first(state: State, kind: int) -> Finding:
    """CONNECT goes out as the client's first frame."""
    if state.handshake.connect_seen or kind == c.CONNECT:
        return None
    return f"{c.name_of(kind)} before CONNECT"


@rule("CHECK-01", side=Side.CLIENT)
def client_waits_for_connected(state: State, kind: int) -> Finding:
    """Until CONNECTED has come the client sends nothing but AUTH_RESPONSE, PING and PONG."""
    if not state.handshake.connect_seen or state.connected or kind in c.HANDSHAKE_OF_CLIENT:
        return None
    return f"{c.name_of(kind)} before CONNECTED"


@rule("CHECK-02", side=Side.BROKER)
def broker_does_not_begin(state: State, kind: int) -> Finding:
    """Before CONNECT the broker sends nothing, except PONG and an ERROR about the connection itself."""
    if state.handshake.connect_seen or kind in (c.ERROR, c.PONG):
        return None
    return f"{c.name_of(kind)} before CONNECT"


@rule("CONN-03", side=Side.BROKER)
def broker_shakes_hands(state: State, kind: int) -> Finding:
    """After CONNECT only CONNECTED, AUTH_CHALLENGE, ERROR and PING are legal until CONNECTED has come."""
    if not state.handshake.connect_seen or state.connected or kind in c.HANDSHAKE_OF_BROKER:
        return None
    return f"{c.name_of(kind)} before CONNECTED"


@rule("CHECK-03", c.CONNECT)
def connect_once(state: State, connect: Any) -> Finding:
    """CONNECT comes once on a connection."""
    return "a second CONNECT" if state.handshake.connect_seen else None


@rule("CONN-04", c.CONNECTED)
def connected_once(state: State, connected: Any) -> Finding:
    """CONNECTED is legal only as the one answer to CONNECT."""
    return "a second CONNECTED" if state.connected else None


@rule("WIRE-01", c.CONNECTED)
def the_smaller_version(state: State, connected: Any) -> Finding:
    """CONNECTED carries the smaller of both versions, so never one above the client's."""
    offered = state.handshake.client_version
    if connected.protocol_version <= max(offered, 0):
        return None
    return f"CONNECTED says version {connected.protocol_version}, CONNECT offered {offered}"


@rule("CONN-02", c.CONNECT)
def proxy_target(state: State, connect: Any) -> Finding:
    """Behind a proxy CONNECT names the target broker as host:port."""
    target = connect.proxy_to_broker_url
    if not target or _HOST_AND_PORT.fullmatch(target):
        return None
    return f"proxy_to_broker_url is {target!r}, not host:port"


@rule("CHECK-04", c.AUTH_RESPONSE)
def response_to_a_challenge(state: State, response: Any) -> Finding:
    """AUTH_RESPONSE answers an AUTH_CHALLENGE, one for one."""
    return None if state.handshake.challenges else "AUTH_RESPONSE without an AUTH_CHALLENGE"


@rule("CHECK-05", c.AUTH_RESPONSE)
def response_is_complete(state: State, command: Any) -> Finding:
    """AUTH_RESPONSE has both the method's name and its data."""
    response = command.response
    if response.HasField("auth_method_name") and response.HasField("auth_data"):
        return None
    return "AUTH_RESPONSE lacks auth_method_name or auth_data"


@rule("CHECK-06", c.AUTH_CHALLENGE)
def refresh_was_offered(state: State, challenge: Any) -> Finding:
    """New credentials are asked for only on connections whose client offered that (feature flag 1)."""
    if not state.connected or state.handshake.client_flags.supports_auth_refresh:
        return None
    return "AUTH_CHALLENGE after CONNECTED to a client without supports_auth_refresh"


@rule("GAP-33", c.AUTH_RESPONSE)
def bounded_rounds(state: State, response: Any) -> Finding:
    """At most 10 challenges of one handshake are answered."""
    if state.connected or state.handshake.challenge_rounds <= MAX_CHALLENGES:
        return None
    return f"the answer to challenge {state.handshake.challenge_rounds} of one handshake"


# --- keep-alive ------------------------------------------------------------------------------------


@rule("CHECK-07", c.PONG)
def pong_answers_a_ping(state: State, pong: Any) -> Finding:
    """PONG is the answer to a PING, one for one."""
    pings = state.keepalive.of_broker if state.side is Side.CLIENT else state.keepalive.of_client
    return None if pings else "PONG without a PING"


@rule(
    "WIRE-17",
    c.SEND, c.FLOW, c.ACK, c.SEND_RECEIPT, *c.ANSWER_KINDS, traits=PINGED,
)  # fmt: skip
def ping_is_answered_at_once(state: State, command: Any) -> Finding:
    """PING is answered by PONG at once: before anything that answers to a later frame."""
    if state.side is Side.CLIENT:
        pings = state.keepalive.of_broker
        if not pings or pings[0] > _read_by_client(state, command):
            return None
    else:
        pings = state.keepalive.of_client
        if not pings or pings[0] > _read_by_broker(state):
            return None
    return f"the PING of frame {pings[0]} has no PONG, later frames are answered"


def _read_by_client(state: State, command: Any) -> int:
    """The latest frame of the broker without which the command could not have been sent."""
    if state.producer is not None:
        return state.producer.open_since
    consumer = state.consumer
    if consumer is None:
        return -1
    frame = consumer.open_since
    for ledger_id, entry_id, _ in getattr(command, "message_ids", ()):
        delivery = consumer.delivered.get((ledger_id, entry_id))
        if delivery is not None:
            frame = max(frame, delivery.frame)
    return frame


def _read_by_broker(state: State) -> int:
    if state.request is not None:
        return state.request.frame
    if state.producer is not None and state.sent_at >= 0:
        return state.producer.pending[state.sent_at].frame
    return -1


@rule("INV-N7", c.PING, side=Side.CLIENT)
def silent_peer_is_dropped(state: State, ping: Any) -> Finding:
    """A peer from which nothing at all came since the last PING is dropped, not asked again."""
    return "a second PING, and nothing came since the first" if state.keepalive.quiet else None
