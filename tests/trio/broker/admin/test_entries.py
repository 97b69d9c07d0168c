"""Single entries over HTTP: by id, by their place from either end, and the id at a publish time."""

import pytest

from tests.broker.peer import WALL
from tests.trio.broker.admin.asking import Administrator

TOPIC = "/persistent/public/default/t"


@pytest.fixture
def broker() -> Administrator:
    """A broker with the entries 0, 1 and 2 in the topic t, the empty topic e, and the partitioned topic p."""
    administrator = Administrator()
    for path, body in (("t", None), ("e", None), ("p/partitions", 2)):
        assert administrator.ask("PUT", f"/persistent/public/default/{path}", body) == (204, None)
    assert administrator.ask("PUT", "/non-persistent/public/default/n") == (204, None)
    assert administrator.ask("PUT", f"{TOPIC}/subscription/s", "earliest") == (204, None)
    peer = administrator.world.connect()
    peer.producer()
    for number in range(3):
        peer.publish(b"%d" % number, number, publish_time=WALL + number)
    return administrator


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("ledger/0/entry/1", b"1"),
        ("examinemessage", b"2"),
        ("examinemessage?messagePosition=1", b"2"),
        ("examinemessage?messagePosition=3", b"0"),
        ("examinemessage?messagePosition=0", b"2"),
        ("examinemessage?messagePosition=-5", b"2"),
        ("examinemessage?initialPosition=earliest", b"0"),
        ("examinemessage?initialPosition=earliest&messagePosition=2", b"1"),
        ("examinemessage?initialPosition=elsewhere&messagePosition=1", b"2"),
    ],
)
def test_an_entry(broker: Administrator, path: str, payload: bytes) -> None:
    answer = broker.answer("GET", f"{TOPIC}/{path}")
    assert (answer.status, answer.body) == (200, payload)


@pytest.mark.parametrize(("time", "entry_id"), [(WALL - 1, 0), (WALL + 1, 1), (WALL + 2, 2)])
def test_the_id_at_a_publish_time(broker: Administrator, time: int, entry_id: int) -> None:
    status, found = broker.ask("GET", f"{TOPIC}/messageid/{time}")
    assert status == 200
    assert (found["ledgerId"], found["entryId"], found["partitionIndex"]) == (0, entry_id, -1)


PATHS = ["ledger/0/entry/0", "examinemessage", "messageid/0"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("topic", "status", "reason"),
    [
        ("persistent/public/none/t", 404, "Namespace not found"),
        ("persistent/public/default/no", 404, "Topic persistent://public/default/no not found"),
        ("non-persistent/public/default/n", 405, "on a non-persistent topic is not allowed"),
        ("persistent/public/default/p", 405, "on a partitioned topic is not allowed"),
    ],
)
def test_a_topic_without_entries_of_its_own(
    broker: Administrator, path: str, topic: str, status: int, reason: str
) -> None:
    answered, text = broker.ask("GET", f"/{topic}/{path}")
    assert answered == status
    assert reason in text or "GetMessageById is not allowed on partitioned-topic" in text


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("t/ledger/0/entry/9", 404, "Message id not found"),
        ("t/ledger/-1/entry/-1", 404, "Message id not found"),
        ("t/ledger/x/entry/0", 404, "Not Found"),
        ("t/examinemessage?messagePosition=x", 404, "Not Found"),
        ("t/messageid/soon", 404, "Not Found"),
        ("e/examinemessage", 412, "Could not examine messages due to the total message is zero"),
    ],
)
def test_an_entry_that_is_not_there(broker: Administrator, path: str, status: int, reason: str) -> None:
    assert broker.ask("GET", f"/persistent/public/default/{path}") == (status, reason)
