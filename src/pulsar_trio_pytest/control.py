"""`PulsarBroker`: the broker in the hands of one test. Its calls block, and go over HTTP."""

import json
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

ANSWER_TIME = 60.0
"""Seconds for an answer of the broker, beyond the time that a test asks it to wait."""

FaultKind = Literal["count", "error", "delay", "drop", "close", "half frame", "corrupt", "duplicate"]


class BrokerHasEnded(RuntimeError):
    """The broker's process is not there any more; the text has what it said last."""


class ControlClient:
    """The broker's paths for tests. `explain`: says why the broker does not answer, if it has ended."""

    def __init__(self, admin_url: str, explain: Callable[[], str | None]) -> None:
        self._admin_url = admin_url
        self._explain = explain
        self._opener = build_opener(ProxyHandler({}))

    def ask(self, method: str, path: str, body: object = None, *, wait: float = 0.0) -> Any:
        """Make one request, and return the value of the answer.

        `wait`: seconds that the broker may take beside those of every request. Raises `ValueError` for what
        the broker refuses, `LookupError` for what it does not have, `TimeoutError` for a state that it did
        not reach, and `BrokerHasEnded`.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        request = Request(self._admin_url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=ANSWER_TIME + wait) as answer:
                text = answer.read()
        except HTTPError as error:
            with error:
                raise _error(error.code, error.read()) from None
        except (OSError, HTTPException) as error:  # the latter for an answer that ends in the middle
            reason = self._explain()
            if reason is not None:
                raise BrokerHasEnded(reason) from None
            raise ConnectionError(f"the broker at {self._admin_url} does not answer: {error}") from None
        return json.loads(text) if text else None


def _error(status: int, body: bytes) -> Exception:
    """Return the exception for a refusal."""
    try:
        reason = str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        reason = body.decode(errors="replace")
    kinds: dict[int, type[Exception]] = {404: LookupError, 408: TimeoutError}
    return kinds.get(status, ValueError if status < 500 else RuntimeError)(reason)


class RemoteRule:
    """A rule of faults at the broker."""

    def __init__(self, control: ControlClient, number: int) -> None:
        self._control = control
        self.number = number

    @property
    def fired(self) -> int:
        """The number of times that the fault was done, or the command counted. Raises `LookupError`."""
        fired: int = self._state()["fired"]
        return fired

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Command -> full name of the topic -> how often the rule fired; see `FaultRule.counts`."""
        counts: dict[str, dict[str, int]] = self._state()["counts"]
        return counts

    def remove(self) -> None:
        """Remove the rule. Raises `LookupError` if it is removed already."""
        self._control.ask("DELETE", f"/test/v1/faults/{self.number}")

    def _state(self) -> dict[str, Any]:
        for rule in self._control.ask("GET", "/test/v1/faults"):
            if rule["number"] == self.number:
                found: dict[str, Any] = rule
                return found
        raise LookupError(f"rule {self.number} is removed")


class RemoteFaults:
    """The rules of the broker. They are the whole broker's, and are removed when the test ends."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    def add(
        self,
        command: str,
        fault: FaultKind = "count",
        *,
        topic: str = "*",
        code: str | None = None,
        message: str = "a rule of faults",
        seconds: float | None = None,
        sent_by: Literal["client", "broker"] | None = None,
        after: int = 0,
        times: int | None = None,
        probability: float = 1.0,
    ) -> RemoteRule:
        """Add a rule; the arguments are those of `EmbeddedBroker.faults.add`, and `code` is a name.

        Raises `ValueError` for a rule that cannot be.
        """
        body = {
            "command": command,
            "fault": fault,
            "topic": topic,
            "code": code,
            "message": message,
            "seconds": seconds,
            "sent_by": sent_by,
            "after": after,
            "times": times,
            "probability": probability,
        }
        return RemoteRule(self._control, self._control.ask("POST", "/test/v1/faults", body)["number"])

    def clear(self) -> None:
        """Remove all rules, and let the broker do at once what they delayed."""
        self._control.ask("DELETE", "/test/v1/faults")

    def describe(self) -> str:
        """Return one line for each rule, with the number of times that it fired."""
        return "\n".join(
            f"rule {each['number']}: {each['command']} {each['fault']}, topic {each['topic']}, "
            f"fired {each['fired']}"
            for each in self._control.ask("GET", "/test/v1/faults")
        )


class PulsarBroker:
    """The broker of one test: its addresses, a namespace that no other test has, and its control.

    The calls block; asynchronous tests make those that wait in a thread.
    """

    def __init__(self, url: str, admin_url: str, namespace: str, control: ControlClient) -> None:
        self._control = control
        self.url = url
        """The service URL for clients."""
        self.admin_url = admin_url
        """The URL of Pulsar's administration over HTTP."""
        self.namespace = namespace
        """`tenant/namespace` of this test."""
        self.faults = RemoteFaults(control)

    def topic(self, name: str) -> str:
        """Return the full name of a topic in this test's namespace; a pattern with `*` gives a pattern."""
        return f"persistent://{self.namespace}/{name}"

    def until(
        self,
        *,
        producers: int | None = None,
        consumers: int | None = None,
        backlog: int | None = None,
        topic: str | None = None,
        subscription: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Wait until the broker has exactly these numbers, as `EmbeddedBroker.until` does.

        `topic`: a full name or pattern; None is every topic of this test's namespace. Raises `TimeoutError`
        after `timeout` seconds, with the numbers at that moment, and `ValueError`.
        """
        body = {
            "producers": producers,
            "consumers": consumers,
            "backlog": backlog,
            "topic": f"*://{self.namespace}/*" if topic is None else topic,
            "subscription": subscription,
            "timeout": timeout,
        }
        self._control.ask("POST", "/test/v1/until", body, wait=timeout)

    def reset(self) -> None:
        """Cut all connections, and return the broker to its start: topics, policies, counters, no faults.

        This test's namespace is there afterwards, and empty.
        """
        self._control.ask("POST", "/test/v1/reset")
        self.create_namespace()

    def snapshot(self) -> int:
        """Keep all that the broker stores: topics, messages, subscriptions, policies. Return its number.

        The broker keeps the last 100 snapshots.
        """
        number: int = self._control.ask("POST", "/test/v1/snapshots")["snapshot"]
        return number

    def restore(self, snapshot: int) -> None:
        """Cut all connections, and go on with a snapshot, without faults. Raises `LookupError`."""
        self._control.ask("POST", f"/test/v1/snapshots/{snapshot}/restore")

    def create_namespace(self) -> None:
        """Create this test's namespace, which the fixture has done already."""
        self._control.ask("PUT", f"/admin/v2/namespaces/{self.namespace}")

    def delete_namespace(self) -> None:
        """Delete this test's namespace and its topics, though clients use them, as the fixture does."""
        self._control.ask("DELETE", f"/test/v1/namespaces/{self.namespace}")
