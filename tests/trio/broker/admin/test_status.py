"""`/status` without a browser: the files of the page, and the numbers that it asks for."""

import json
from typing import Any

import pytest

from pulsar_trio.broker.admin.status.status import MOST_TOPICS
from tests.broker.peer import TOPIC, SubType
from tests.trio.broker.admin.asking import Administrator
from tests.trio.broker.admin.test_access import asked
from tests.trio.broker.identities import guarded_broker


def numbers(administrator: Administrator, query: str = "") -> dict[str, Any]:
    answer = administrator.answer("GET", f"/status/numbers{query}")
    assert answer.status == 200
    found: dict[str, Any] = json.loads(answer.body)
    return found


@pytest.mark.parametrize(
    ("path", "content_type", "part"),
    [
        ("/status", "text/html", b'<script src="/status/status.js" defer>'),
        ("/status/status.js", "text/javascript", b"textContent"),
        ("/status/status.css", "text/css", b"prefers-color-scheme"),
    ],
)
def test_the_page_may_run_its_own_script_alone(path: str, content_type: str, part: bytes) -> None:
    answer = Administrator().answer("GET", path)
    assert (answer.status, answer.content_type) == (200, f"{content_type}; charset=utf-8")
    assert part in answer.body
    assert dict(answer.headers)["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert b"http://" not in answer.body
    assert b"https://" not in answer.body


def test_the_numbers_of_topics_add_up() -> None:
    administrator = Administrator()
    peer = administrator.world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared, permits=2)
    for number in range(3):
        peer.publish(b"x", number)
    administrator.command(administrator.machine.topic_administration.create_topic, f"{TOPIC}-idle")
    found = numbers(administrator)
    assert [each["name"] for each in found["topics"]] == [TOPIC, f"{TOPIC}-idle"]
    busy = found["topics"][0]
    assert (busy["messagesIn"], busy["messagesOut"], busy["backlog"]) == (3, 2, 3)
    assert (found["messagesIn"], found["messagesOut"], found["backlog"]) == (3, 2, 3)
    assert (found["producers"], found["consumers"], found["subscriptions"]) == (1, 1, 1)
    assert (found["topicsCount"], found["matching"], found["connections"]) == (2, 2, 1)
    assert found["storage"] == busy["storage"] > 0
    assert found["memory"] == {"used": administrator.machine.services.stored_bytes.used, "limit": 0}


def test_an_answer_has_a_bounded_number_of_topics() -> None:
    administrator = Administrator()
    for number in range(MOST_TOPICS + 5):
        administrator.command(
            administrator.machine.topic_administration.create_topic,
            f"persistent://public/default/t-{number:03}",
        )
    found = numbers(administrator)
    assert (found["topicsCount"], found["matching"], len(found["topics"])) == (105, 105, MOST_TOPICS)
    found = numbers(administrator, "?filter=T-10")
    assert [each["name"][-3:] for each in found["topics"]] == ["100", "101", "102", "103", "104"]
    assert (found["topicsCount"], found["matching"]) == (105, 5)


async def test_a_page_of_another_site_may_link_to_the_page_alone() -> None:
    async with guarded_broker(http_port=0) as broker:
        assert (await asked(broker, "GET", "/status", Sec_Fetch_Site="cross-site"))[0] == 200
        for path in ("/status/numbers", "/metrics", "/admin/v2/tenants"):
            assert (await asked(broker, "GET", path, role="root", Sec_Fetch_Site="cross-site"))[0] == 403


async def test_only_a_superuser_reads_the_numbers() -> None:
    async with guarded_broker(http_port=0) as broker:
        for path in ("/status", "/status/status.js", "/status/status.css"):
            assert (await asked(broker, "GET", path))[0] == 200
        assert (await asked(broker, "GET", "/status/numbers"))[0] == 401
        assert (await asked(broker, "GET", "/status/numbers", role="ada"))[0] == 401
        assert (await asked(broker, "GET", "/status/numbers", role="root"))[0] == 200
