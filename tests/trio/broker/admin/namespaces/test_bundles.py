"""The one bundle of a namespace over HTTP: what a broker with one bundle refuses."""

from tests.trio.broker.admin.asking import Administrator

BUNDLE = "0x00000000_0xffffffff"
PATH = f"/namespaces/public/default/{BUNDLE}"


def test_there_is_always_one_bundle() -> None:
    broker = Administrator()
    status, reason = broker.ask("PUT", f"{PATH}/split")
    assert (status, "split" in reason) == (501, True)
    status, reason = broker.ask("DELETE", PATH)
    assert (status, BUNDLE in reason) == (501, True)
    assert broker.ask("PUT", "/persistent/public/default/t") == (204, None)
    assert broker.ask("DELETE", PATH) == (409, "Cannot delete non empty bundle")


def test_topics_of_both_kinds_in_the_bundle() -> None:
    """Hashes are those of persistent topics."""
    broker = Administrator()
    assert broker.ask("PUT", "/persistent/public/default/t") == (204, None)
    assert broker.ask("PUT", "/non-persistent/public/default/v") == (204, None)
    assert broker.ask("GET", f"/non-persistent/public/default/{BUNDLE}") == (
        200,
        ["non-persistent://public/default/v"],
    )
    _, found = broker.ask("GET", f"{PATH}/topicHashPositions")
    assert list(found["topicHashPositions"]) == ["persistent://public/default/t"]
