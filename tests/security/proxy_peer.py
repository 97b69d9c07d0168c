"""`ProxyPeer`: a connection whose CONNECT has the fields of a Pulsar proxy, true or false."""

import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from pulsar_sansio.wire import FrameDecoder, max_frame_size, proto
from pulsar_sansio.wire.command_frame import frame_command
from tests.patience import PATIENCE

Type = proto.BaseCommand
LIMIT = max_frame_size(64 * 1024)
TOPIC = "persistent://public/default/behind-a-proxy"


class ProxyPeer:
    """A connection with the token of a role. `fields`: those of CONNECT that a proxy fills in."""

    def __init__(self, port: int, token: str, **fields: Any) -> None:
        self._socket = socket.create_connection(("localhost", port), PATIENCE)
        self._decoder = FrameDecoder()
        self._received = b""
        connect = proto.CommandConnect(
            client_version="test",
            protocol_version=21,
            auth_method_name="token",
            auth_data=token.encode(),
            **fields,
        )
        connect.feature_flags.supports_auth_refresh = True
        self.outcome = self._ask(Type.CONNECT, connect)
        """CONNECTED, or the code and text of the refusal."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def may(self, topic: str = TOPIC) -> set[str]:
        """Ask for a topic in each way; return the ways that are not refused."""
        asked: dict[str, tuple[int, Any]] = {
            "look up": (Type.LOOKUP, proto.CommandLookupTopic(topic=topic, request_id=1)),
            "produce": (Type.PRODUCER, proto.CommandProducer(topic=topic, producer_id=1, request_id=2)),
            "consume": (
                Type.SUBSCRIBE,
                proto.CommandSubscribe(
                    topic=topic,
                    subscription="s",
                    subType=proto.CommandSubscribe.Exclusive,
                    consumer_id=1,
                    request_id=3,
                ),
            ),
        }
        outcomes = {way: self._ask(*command) for way, command in asked.items()}
        refused = {way for way, outcome in outcomes.items() if outcome.startswith("AuthorizationError")}
        allowed = {way for way, outcome in outcomes.items() if not outcome.partition(" ")[2]}
        assert refused | allowed == set(asked), outcomes
        return allowed

    def renew(self, fresh: Callable[[], str]) -> bool:
        """Wait until the broker asks for new credentials, and answer by a fresh token; False when it ends the
        connection."""
        try:
            kind, challenge = self._next()
        except ConnectionResetError:
            return False
        assert kind == Type.AUTH_CHALLENGE
        assert challenge.challenge.auth_data == b"PulsarAuthRefresh"
        response = proto.CommandAuthResponse(client_version="test", protocol_version=21)
        response.response.auth_method_name = "token"
        response.response.auth_data = fresh().encode()
        self._socket.sendall(frame_command(Type.AUTH_RESPONSE, response.SerializeToString()))
        return True

    def _ask(self, number: int, command: Any) -> str:
        """Return the name of the answer, or the code and text of the refusal."""
        self._socket.sendall(frame_command(number, command.SerializeToString()))
        kind, answer = self._next()
        if kind == Type.ERROR or (
            kind == Type.LOOKUP_RESPONSE and answer.response == proto.CommandLookupTopicResponse.Failed
        ):
            return f"{proto.ServerError.Name(answer.error)}: {answer.message}"
        return Type.Type.Name(Type.Type.ValueType(kind))

    def _next(self) -> tuple[int, Any]:
        """Return the next command but PING, which is answered. Raises `ConnectionResetError` at the end."""
        while True:
            while (decoded := self._decoder.decode(self._received, 0, LIMIT)) is None:
                data = self._socket.recv(64 * 1024)
                if not data:
                    raise ConnectionResetError("the broker ended the connection")
                self._received += data
            kind, command, end = decoded
            self._received = self._received[end:]
            if kind != Type.PING:
                return kind, command
            self._socket.sendall(frame_command(Type.PONG, b""))
