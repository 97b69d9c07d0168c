"""Permissions over HTTP: those of a namespace, a topic and a subscription are granted, shown and revoked."""

import pytest

from tests.trio.broker.admin.asking import Administrator

NAMESPACE = "/namespaces/public/default/permissions"
TOPIC = "/persistent/public/default/t/permissions"


@pytest.fixture
def broker() -> Administrator:
    administrator = Administrator()
    assert administrator.ask("PUT", "/persistent/public/default/t") == (204, None)
    return administrator


@pytest.mark.parametrize("path", [NAMESPACE, TOPIC])
def test_a_grant_replaces_the_one_before(broker: Administrator, path: str) -> None:
    assert broker.ask("GET", path) == (200, {})
    assert broker.ask("POST", f"{path}/ada", ["produce", "consume"]) == (204, None)
    assert broker.ask("POST", f"{path}/bob", ["consume"]) == (204, None)
    assert broker.ask("POST", f"{path}/ada", ["produce"]) == (204, None)
    assert broker.ask("GET", path) == (200, {"ada": ["produce"], "bob": ["consume"]})
    assert broker.ask("DELETE", f"{path}/ada") == (204, None)
    assert broker.ask("DELETE", f"{path}/unknown") == (204, None)
    assert broker.ask("GET", path) == (200, {"bob": ["consume"]})


def test_a_topic_has_its_namespaces_permissions_too(broker: Administrator) -> None:
    broker.ask("POST", f"{NAMESPACE}/ada", ["consume", "produce"])
    broker.ask("POST", f"{TOPIC}/ada", ["produce"])
    broker.ask("POST", f"{TOPIC}/bob", ["consume"])
    assert broker.ask("GET", TOPIC) == (200, {"ada": ["produce", "consume"], "bob": ["consume"]})
    assert broker.ask("GET", NAMESPACE) == (200, {"ada": ["consume", "produce"]})
    broker.ask("DELETE", f"{NAMESPACE}/ada")
    assert broker.ask("GET", TOPIC) == (200, {"ada": ["produce"], "bob": ["consume"]})


def test_a_subscription_is_granted_to_roles_and_revoked_one_by_one(broker: Administrator) -> None:
    shown = f"{NAMESPACE}/subscription"
    assert broker.ask("POST", f"{shown}/s", ["ada", "bob"]) == (204, None)
    assert broker.ask("POST", f"{shown}/r", ["ada"]) == (204, None)
    assert broker.ask("GET", shown) == (200, {"r": ["ada"], "s": ["ada", "bob"]})
    assert broker.ask("DELETE", f"{NAMESPACE}/s/ada") == (204, None)
    assert broker.ask("DELETE", f"{NAMESPACE}/r/ada") == (204, None)
    assert broker.ask("DELETE", f"{NAMESPACE}/none/ada") == (204, None)
    assert broker.ask("GET", shown) == (200, {"s": ["bob"]})
    assert broker.ask("GET", NAMESPACE) == (200, {}), "the namespace's own permissions are others"


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (f"{NAMESPACE}/ada", None, 400, "Actions should not be null"),
        (f"{NAMESPACE}/ada", "produce", 400, "Actions should not be null"),
        (f"{NAMESPACE}/ada", [1], 400, "Actions should not be null"),
        (f"{NAMESPACE}/ada", ["fly"], 400, "actions: some of"),
        (f"{TOPIC}/ada", None, 400, "Actions should not be null"),
        (f"{TOPIC}/ada", ["fly"], 400, "actions: some of"),
        (f"{NAMESPACE}/subscription/s", None, 400, "Roles should not be null"),
        (f"{NAMESPACE}/subscription/s", [1], 400, "Roles should not be null"),
    ],
)
def test_what_is_no_permission_is_refused(
    broker: Administrator, path: str, body: object, status: int, reason: str
) -> None:
    answered, text = broker.ask("POST", path, body)
    assert answered == status
    assert reason in text
    for shown in (NAMESPACE, TOPIC, f"{NAMESPACE}/subscription"):
        assert broker.ask("GET", shown) == (200, {})


NO_NAMESPACE = "Namespace does not exist"
NO_TOPIC = "Topic persistent://public/none/t not found"


@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("GET", "/namespaces/public/none/permissions", NO_NAMESPACE),
        ("POST", "/namespaces/public/none/permissions/ada", "Topic's namespace does not exist"),
        ("DELETE", "/namespaces/public/none/permissions/ada", NO_NAMESPACE),
        ("GET", "/namespaces/public/none/permissions/subscription", NO_NAMESPACE),
        ("POST", "/namespaces/public/none/permissions/subscription/s", NO_NAMESPACE),
        ("DELETE", "/namespaces/public/none/permissions/s/ada", NO_NAMESPACE),
        ("GET", "/persistent/public/none/t/permissions", NO_TOPIC),
        ("POST", "/persistent/public/none/t/permissions/ada", NO_TOPIC),
        ("DELETE", "/persistent/public/none/t/permissions/ada", NO_TOPIC),
    ],
)
def test_of_what_is_not_there(broker: Administrator, method: str, path: str, reason: str) -> None:
    body = ["produce"] if method == "POST" else None
    assert broker.ask(method, path, body) == (404, reason)


# --- several topics at once ---------------------------------------------------------------------------

GRANT, REVOKE = "/namespaces/grantPermissionsOnTopics", "/namespaces/revokePermissionsOnTopics"
NAMES = ["persistent://public/default/t", "persistent://public/default/u"]


def test_permissions_on_several_topics(broker: Administrator) -> None:
    assert broker.ask("PUT", "/persistent/public/default/u") == (204, None)
    grants = [
        {"topics": NAMES, "role": "ada", "actions": ["produce", "consume"]},
        {"topics": NAMES[:1], "role": "bob", "actions": ["consume"]},
    ]
    assert broker.ask("POST", GRANT, grants) == (204, None)
    both = {"ada": ["produce", "consume"]}
    assert broker.ask("GET", TOPIC) == (200, both | {"bob": ["consume"]})
    assert broker.ask("GET", TOPIC.replace("/t/", "/u/")) == (200, both)
    assert broker.ask("POST", REVOKE, [{"topics": NAMES, "role": "ada"}]) == (204, None)
    assert broker.ask("GET", TOPIC) == (200, {"bob": ["consume"]})
    assert broker.ask("GET", TOPIC.replace("/t/", "/u/")) == (200, {})


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"topics": [*NAMES, "persistent://pulsar/system/t"]}, 400, "The namespace should be the same"),
        ({"topics": NAMES}, 404, f"Topic {NAMES[1]} not found"),
        ({"topics": ["://"]}, 412, "Topic name is not valid"),
        ({"topics": "t"}, 400, "topics and actions are lists of texts, not 't'"),
        ({"role": 1}, 400, None),
        ({"actions": ["fly"]}, 400, None),
        ({"actions": None}, 400, None),
    ],
)
def test_wrong_permissions_on_several_topics_change_nothing(
    broker: Administrator, change: dict[str, object], status: int, reason: str | None
) -> None:
    right = {"topics": NAMES[:1], "role": "ada", "actions": ["consume"]}
    found, words = broker.ask("POST", GRANT, [right, {**right, **change}])
    assert found == status
    assert reason is None or words == reason
    assert broker.ask("GET", TOPIC) == (200, {})
