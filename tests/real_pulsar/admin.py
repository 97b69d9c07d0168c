"""Administration of a real Pulsar over its HTTP interface (`http.client`, nothing else).

Owns the paths and what a status means. Calls block; under trio call them by `trio.to_thread.run_sync`.
"""

import http.client
import json
from typing import Any
from urllib.parse import quote


class AdminError(Exception):
    """The broker answered with a status that is no success; `status` and its words in `reason`."""

    def __init__(self, request: str, status: int, reason: str) -> None:
        super().__init__(f"{request}: {status} {reason}")
        self.status = status
        self.reason = reason


class Admin:
    """The administrator's calls. Topics are named in full or, in public/default, by their own part."""

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        self._host = host
        self._port = port
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    # --- topics ----------------------------------------------------------------------------------

    def create_topic(self, topic: str) -> None:
        self.request("PUT", topic_path(topic))

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        self.request("PUT", f"{topic_path(topic)}/partitions", partitions)

    def update_partitions(self, topic: str, partitions: int) -> None:
        self.request("POST", f"{topic_path(topic)}/partitions", partitions)

    def unload(self, topic: str) -> None:
        """Close the topic in the broker; its clients are told, and attach again."""
        self.request("PUT", f"{topic_path(topic)}/unload")

    def terminate(self, topic: str) -> dict[str, int]:
        """No more messages; answers with the last message's id."""
        answer = self.request("POST", f"{topic_path(topic)}/terminate")
        assert isinstance(answer, dict)
        return answer

    def delete_topic(self, topic: str, *, force: bool = False) -> None:
        self.request("DELETE", f"{topic_path(topic)}?force={str(force).lower()}")

    def stats(self, topic: str) -> dict[str, Any]:
        answer = self.request("GET", f"{topic_path(topic)}/stats")
        assert isinstance(answer, dict)
        return answer

    def cursor_states(self, topic: str) -> list[str]:
        """In what state the cursor of each subscription is: NoLedger, SwitchingLedger, Open …"""
        answer = self.request("GET", f"{topic_path(topic)}/internalStats")
        return [cursor["state"] for cursor in answer["cursors"].values()]

    def subscriptions(self, topic: str) -> list[str]:
        answer = self.request("GET", f"{topic_path(topic)}/subscriptions")
        assert isinstance(answer, list)
        return answer

    # --- namespaces --------------------------------------------------------------------------------

    def create_namespace(self, namespace: str) -> None:
        """`namespace` is `tenant/name`. One that exists already is as good."""
        try:
            self.request("PUT", f"/admin/v2/namespaces/{namespace}")
        except AdminError as error:
            if error.status != 409:
                raise

    def set_namespace_policy(self, namespace: str, policy: str, value: object) -> None:
        """For example `deduplication`, `true`, or `autoTopicCreation` with its record."""
        self.request("POST", f"/admin/v2/namespaces/{namespace}/{policy}", value)

    # --- the ground ----------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: object = None, *, timeout: float = 30.0) -> Any:
        """Make one request; return the answer's JSON, its text where it is none, None where it is empty.

        Raises `AdminError` for a status that is no success, `OSError` where no answer comes in `timeout`
        seconds.
        """
        status, answer = self.exchange(method, path, body, timeout=timeout)
        if not 200 <= status < 300:
            raise AdminError(f"{method} {path}", status, str(answer)[:500])
        return answer

    def exchange(
        self, method: str, path: str, body: object = None, *, timeout: float = 30.0
    ) -> tuple[int, Any]:
        """Send a request for tests of refusals, and return the status and the answer or the reason in it."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers=self._headers,
            )
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if not content:
            return response.status, None
        try:
            answer = json.loads(content)
        except ValueError:
            return response.status, content.decode(errors="replace")
        if response.status >= 400 and isinstance(answer, dict):
            answer = answer.get("reason", answer)
        return response.status, answer


def topic_path(topic: str) -> str:
    """The path of a topic's resource."""
    if "://" not in topic:
        parts = topic.split("/", 2)
        topic = "persistent://" + "/".join(["public", "default", topic] if len(parts) == 1 else parts)
    domain, _, rest = topic.partition("://")
    tenant, namespace, local = rest.split("/", 2)
    return f"/admin/v2/{domain}/{tenant}/{namespace}/{quote(local, safe='')}"
