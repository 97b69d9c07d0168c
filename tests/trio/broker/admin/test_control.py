"""The control for tests over HTTP: where it is wanted, on loopback only, with errors that say why."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import trio

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import EmbeddedBroker, open_broker, open_client
from pulsar_trio.broker.admin import control
from tests.patience import PATIENCE
from tests.trio.waiting import until


@pytest.fixture
async def controlled() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0, test_control=True) as broker:
        yield broker


async def ask(broker: EmbeddedBroker, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Return the status and the value of the answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    request = Request(f"{broker.admin_url}/test/v1/{path}", data, headers, method=method)

    def send() -> tuple[int, bytes]:
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()

    status, text = await trio.to_thread.run_sync(send)
    return status, json.loads(text) if text else None


async def test_a_broker_without_the_control_has_no_such_path() -> None:
    async with open_broker(http_port=0) as broker:
        assert (await ask(broker, "GET", "faults"))[0] == 404
        assert (await ask(broker, "POST", "reset"))[0] == 404


async def test_the_control_needs_loopback_and_an_http_port() -> None:
    with pytest.raises(InvalidConfiguration, match="with test_control the broker listens on loopback"):
        async with open_broker(host="", http_port=0, test_control=True, allow_unauthenticated=True):
            pass
    with pytest.raises(InvalidConfiguration, match="test_control: needs http_port"):
        async with open_broker(test_control=True):
            pass


async def test_rules(controlled: EmbeddedBroker) -> None:
    wanted = {"command": "SEND", "fault": "drop", "topic": "t", "times": 1}
    status, rule = await ask(controlled, "POST", "faults", wanted)
    assert (status, rule["number"], rule["fired"]) == (201, 1, 0)
    await ask(controlled, "POST", "faults", {"command": "*"})
    async with open_client(controlled.url) as client, client.subscribe("t", "s"):
        pass
    _, rules = await ask(controlled, "GET", "faults")
    assert [each["number"] for each in rules] == [1, 2]
    assert rules[1]["counts"]["SUBSCRIBE"] == {"persistent://public/default/t": 1}
    assert (await ask(controlled, "DELETE", "faults/1"))[0] == 204
    assert (await ask(controlled, "DELETE", "faults/1"))[0] == 404
    assert (await ask(controlled, "DELETE", "faults"))[0] == 204
    assert (await ask(controlled, "GET", "faults"))[1] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("faults", {"command": "SEND", "fault": "half frame"}, 412, "half frame"),
        ("faults", {"command": ["SEND"]}, 412, "command"),
        ("faults", {"command": {}, "fault": {}}, 412, "command"),
        ("faults", {"fault": "drop"}, 400, "no command"),
        ("faults", {"command": "SEND", "typo": 1}, 400, "unknown: typo"),
        ("faults", [], 400, "object"),
        ("until", {}, 412, "one of them at least"),
        ("until", {"consumers": 1, "timeout": -1}, 400, "timeout"),
        ("until", {"consumers": 1, "timeout": "x"}, 400, "timeout"),
        ("until", {"consumers": 1, "typo": 1}, 400, "unknown: typo"),
        ("until", {"consumers": 1, "timeout": 0}, 408, "consumers: 0, not 1"),
        ("until", {"consumers": 1, "timeout": 0.1}, 408, "after 0.1 s: consumers: 0, not 1"),
        ("snapshots/7/restore", None, 404, "no snapshot 7"),
    ],
)
async def test_what_is_refused(
    controlled: EmbeddedBroker, path: str, body: object, status: int, words: str
) -> None:
    answered, answer = await ask(controlled, "POST", path, body)
    assert answered == status
    assert words in answer["reason"]


async def test_waiting_does_not_keep_other_requests_waiting(controlled: EmbeddedBroker) -> None:
    """A request that waits for a state has no turn meanwhile."""
    answers: list[int] = []

    async def wait() -> None:
        answers.append((await ask(controlled, "POST", "until", {"consumers": 1, "timeout": PATIENCE}))[0])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        assert (await ask(controlled, "GET", "faults"))[0] == 200
        assert answers == []
        async with open_client(controlled.url) as client, client.subscribe("t", "s"):
            await until(lambda: bool(answers))
    assert answers == [204]


async def test_reset_and_snapshots(controlled: EmbeddedBroker) -> None:
    controlled.create_topic("t")
    assert await ask(controlled, "POST", "snapshots") == (201, {"snapshot": 1})
    assert (await ask(controlled, "POST", "reset"))[0] == 204
    assert controlled.topics() == []
    assert (await ask(controlled, "POST", "snapshots/1/restore"))[0] == 204
    assert len(controlled.topics()) == 1


async def test_the_oldest_snapshot_is_discarded(
    controlled: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MAX_SNAPSHOTS", 2)
    for number in range(1, 4):
        assert (await ask(controlled, "POST", "snapshots"))[1] == {"snapshot": number}
    assert (await ask(controlled, "POST", "snapshots/1/restore"))[0] == 404
    assert (await ask(controlled, "POST", "snapshots/2/restore"))[0] == 204


async def test_a_namespace_is_deleted_with_all_that_is_in_it(controlled: EmbeddedBroker) -> None:
    controlled.create_namespace("public/mine")
    controlled.create_partitioned_topic("public/mine/p", 3)
    controlled.create_topic("non-persistent://public/mine/n")
    async with open_client(controlled.url) as client, client.create_producer("public/mine/t"):
        assert (await ask(controlled, "DELETE", "namespaces/public/mine"))[0] == 204
    assert (await ask(controlled, "DELETE", "namespaces/public/mine"))[0] == 404
