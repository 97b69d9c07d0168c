"""Permissions of roles on namespaces, topics and subscriptions.

A broker without authorization keeps and shows them, as a Pulsar without it does.
"""

from typing import Any

from pulsar_sansio import ACTIONS, InvalidConfiguration, InvalidTopicName, NotFound, TopicName

from ..messages import NO_CONTENT, Answer, Refused, Request, answering, json_answer
from ..routes import AdministeredBroker, Route, both_domains
from ..topics import TOPIC
from .namespaces import NO_NAMESPACE
from .policies import NAMESPACE

WRONG = (InvalidConfiguration, 400, "")


def _no_topic(request: Request) -> tuple[type[NotFound], int, str]:
    return NotFound, 404, f"Topic {request.topic} not found"


def _names(request: Request, what: str) -> list[str]:
    """The texts of the body. Raises `Refused`."""
    given: Any = request.json() if request.body else None
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Refused(400, f"{what} should not be null: a list of texts, not {given!r:.200}")
    return given


def of_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        return json_answer(dict(broker.machine.administration.grants_of(request.namespace).roles))


def grant_on_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    actions = _names(request, "Actions")
    with answering((NotFound, 404, "Topic's namespace does not exist"), WRONG):
        broker.command(
            broker.machine.administration.grant, request.namespace, {request.text("role"): actions}
        )
    return NO_CONTENT


def revoke_on_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        broker.command(broker.machine.administration.grant, request.namespace, {request.text("role"): ()})
    return NO_CONTENT


def of_topic(broker: AdministeredBroker, request: Request) -> Answer:
    """The permissions of a topic, those of its namespace included."""
    with answering(_no_topic(request)):
        found = {
            role: list(actions)
            for role, actions in broker.machine.administration.grants_of(request.topic).roles
        }
        for role, actions in broker.machine.administration.grants_of(request.namespace).roles:
            found[role] = list(dict.fromkeys([*found.get(role, ()), *actions]))
    return json_answer(found)


def grant_on_topic(broker: AdministeredBroker, request: Request) -> Answer:
    actions = _names(request, "Actions")
    with answering(_no_topic(request), WRONG):
        broker.command(broker.machine.administration.grant, request.topic, {request.text("role"): actions})
    return NO_CONTENT


def revoke_on_topic(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(_no_topic(request)):
        broker.command(broker.machine.administration.grant, request.topic, {request.text("role"): ()})
    return NO_CONTENT


def of_subscriptions(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        return json_answer(dict(broker.machine.administration.grants_of(request.namespace).subscriptions))


def grant_subscription(broker: AdministeredBroker, request: Request) -> Answer:
    roles = _names(request, "Roles")
    with answering(NO_NAMESPACE, WRONG):
        granted = {request.text("subscription"): roles}
        broker.command(broker.machine.administration.grant_subscription, request.namespace, granted)
    return NO_CONTENT


def revoke_subscription(broker: AdministeredBroker, request: Request) -> Answer:
    subscription, role = request.text("subscription"), request.text("role")
    with answering(NO_NAMESPACE):
        roles = dict(broker.machine.administration.grants_of(request.namespace).subscriptions).get(
            subscription, ()
        )
        left = {subscription: [each for each in roles if each != role]}
        broker.command(broker.machine.administration.grant_subscription, request.namespace, left)
    return NO_CONTENT


# --- several topics at once ---------------------------------------------------------------------------


def grant_on_topics(broker: AdministeredBroker, request: Request) -> Answer:
    return _on_topics(broker, request, grants=True)


def revoke_on_topics(broker: AdministeredBroker, request: Request) -> Answer:
    return _on_topics(broker, request, grants=False)


def _on_topics(broker: AdministeredBroker, request: Request, grants: bool) -> Answer:
    """Set or remove a role's actions on the topics of each object in the body.

    All topics are of one namespace, and nothing changes where one of them is absent. Raises `Refused`.
    """
    given: Any = request.json()
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise Refused(400, f"the body has to be a list of objects with topics and a role, not {given!r:.200}")
    changes = [_change(each, grants) for each in given]
    names = [name for topics, _, _ in changes for name in topics]
    namespaces = {TopicName.parse(name).namespace_name for name in names}
    if len(namespaces) != 1:
        raise Refused(400, "The namespace should be the same")
    administration = broker.machine.administration
    for name in names:
        with answering((NotFound, 404, f"Topic {name} not found")):
            administration.grants_of(name)
    for topics, role, actions in changes:
        for name in topics:
            with answering(WRONG):
                broker.command(administration.grant, name, {role: actions})
    return NO_CONTENT


def _change(given: dict[str, Any], grants: bool) -> tuple[list[str], str, list[str]]:
    """Return topics, role and actions. Raises `Refused`."""
    topics, role = given.get("topics"), given.get("role")
    actions = given.get("actions") if grants else []
    for texts in (topics, actions):
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise Refused(400, f"topics and actions are lists of texts, not {texts!r:.200}")
    if not isinstance(role, str) or not set(actions or ()) <= set(ACTIONS):
        raise Refused(400, f"role: a text; actions: some of {', '.join(ACTIONS)}; not {given!r:.200}")
    return [str(_topic(name)) for name in topics or ()], role, actions or []


def _topic(name: str) -> TopicName:
    try:
        return TopicName.parse(name)
    except InvalidTopicName:
        raise Refused(412, "Topic name is not valid") from None


ROUTES: list[Route] = [
    ("POST", "/admin/v2/namespaces/grantPermissionsOnTopics", grant_on_topics),
    ("POST", "/admin/v2/namespaces/revokePermissionsOnTopics", revoke_on_topics),
    ("GET", f"{NAMESPACE}/permissions", of_namespace),
    ("POST", f"{NAMESPACE}/permissions/{{role}}", grant_on_namespace),
    ("DELETE", f"{NAMESPACE}/permissions/{{role}}", revoke_on_namespace),
    ("GET", f"{NAMESPACE}/permissions/subscription", of_subscriptions),
    ("POST", f"{NAMESPACE}/permissions/subscription/{{subscription}}", grant_subscription),
    ("DELETE", f"{NAMESPACE}/permissions/{{subscription}}/{{role}}", revoke_subscription),
    *both_domains(
        [
            ("GET", f"{TOPIC}/permissions", of_topic),
            ("POST", f"{TOPIC}/permissions/{{role}}", grant_on_topic),
            ("DELETE", f"{TOPIC}/permissions/{{role}}", revoke_on_topic),
        ]
    ),
]
