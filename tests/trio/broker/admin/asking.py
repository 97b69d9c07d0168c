"""Requests to a broker's administration without a socket."""

import json
from collections.abc import Callable
from typing import Any

from pulsar_sansio import Broker, BrokerConfig
from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import Answer, Request
from tests.broker.peer import World


class Administrator:
    """A broker without a socket."""

    def __init__(self, config: BrokerConfig | None = None) -> None:
        self.world = World(config or BrokerConfig(web_service_url="http://127.0.0.1:8080"))

    @property
    def machine(self) -> Broker:
        return self.world.broker

    def now(self) -> int:
        return self.world.now

    def command(self, command: Callable[..., Any], *arguments: object) -> Any:
        result = command(self.world.now, *arguments)
        self.world.pump()
        return result

    def answer(self, method: str, target: str, body: object = None) -> Answer:
        """Answer one request; `body` is sent as JSON. `target`: a whole path, or what follows `/admin/v2`."""
        whole = (
            target
            if target.startswith(("/admin/", "/lookup/", "/topics/", "/metrics", "/status"))
            else f"/admin/v2{target}"
        )
        request = Request.parse(method, whole, "application/json")
        request.body = b"" if body is None else json.dumps(body).encode()
        return perform(self, request)

    def ask(self, method: str, target: str, body: object = None) -> tuple[int, Any]:
        """Return the status, and the value of the body or the reason of a refusal."""
        answer = self.answer(method, target, body)
        value: Any = json.loads(answer.body) if answer.body else None
        return answer.status, value["reason"] if answer.status >= 400 else value
