"""A role may use topics by the permissions that administrators granted."""

from collections.abc import Callable

import pytest

from pulsar_sansio.wire import proto
from tests.broker.peer import Peer, Type, World
from tests.broker.security.doors import enter, guarded, knock

NAMESPACE = "acme/orders"
TOPIC = f"persistent://{NAMESPACE}/t"


@pytest.fixture
def world() -> World:
    made = guarded(superusers={"root"}, proxy_roles={"proxy"})
    made.broker.administration.create_tenant(0, "acme", ["boss"])
    made.broker.administration.create_namespace(0, NAMESPACE)
    made.broker.topic_administration.create_partitioned_topic(0, f"persistent://{NAMESPACE}/parts", 2)
    made.pump()
    return made


def grant(world: World, scope: str, role: str, *actions: str) -> None:
    world.broker.administration.grant(0, scope, {role: actions})
    world.pump()


# Each request returns the code and text of the refusal, or "" when it is allowed.


def lookup(peer: Peer, topic: str = TOPIC) -> str:
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic=topic, request_id=1))
    answer = peer.expect(Type.LOOKUP_RESPONSE)
    return "" if answer.response != proto.CommandLookupTopicResponse.Failed else told(answer)


def metadata(peer: Peer, topic: str = TOPIC) -> str:
    peer.send(Type.PARTITIONED_METADATA, proto.CommandPartitionedTopicMetadata(topic=topic, request_id=1))
    answer = peer.expect(Type.PARTITIONED_METADATA_RESPONSE)
    failed = answer.response == proto.CommandPartitionedTopicMetadataResponse.Failed
    return told(answer) if failed else ""


def produce(peer: Peer, topic: str = TOPIC, initial: str = "") -> str:
    peer.ask_producer(topic, initial_subscription_name=initial)
    number, answer = peer.inbox.popleft()
    if number == Type.ERROR:
        return told(answer)
    peer.close_producer()
    peer.expect(Type.SUCCESS)
    return ""


def subscribe(peer: Peer, topic: str = TOPIC, subscription: str = "s") -> str:
    peer.ask_subscribe(topic=topic, subscription=subscription)
    number, answer = peer.inbox.popleft()
    if number == Type.ERROR:
        return told(answer)
    peer.close_consumer()
    return ""


def topics(peer: Peer) -> str:
    peer.send(
        Type.GET_TOPICS_OF_NAMESPACE,
        proto.CommandGetTopicsOfNamespace(namespace=NAMESPACE, request_id=1),
    )
    number, answer = peer.inbox.popleft()
    return told(answer) if number == Type.ERROR else ""


def watch(peer: Peer) -> str:
    peer.send(
        Type.WATCH_TOPIC_LIST,
        proto.CommandWatchTopicList(namespace=NAMESPACE, request_id=1, watcher_id=1, topics_pattern=".*"),
    )
    number, answer = peer.inbox.popleft()
    return told(answer) if number == Type.ERROR else ""


def get_schema(peer: Peer) -> str:
    peer.send(Type.GET_SCHEMA, proto.CommandGetSchema(topic=TOPIC, request_id=1))
    answer = peer.expect(Type.GET_SCHEMA_RESPONSE)
    return told_schema(answer)


def make_schema(peer: Peer) -> str:
    command = proto.CommandGetOrCreateSchema(topic=TOPIC, request_id=1)
    command.schema.name = "s"
    command.schema.type = proto.Schema.String
    command.schema.schema_data = b""
    peer.send(Type.GET_OR_CREATE_SCHEMA, command)
    return told_schema(peer.expect(Type.GET_OR_CREATE_SCHEMA_RESPONSE))


def told(answer: proto.CommandError) -> str:
    return f"{proto.ServerError.Name(answer.error)}: {answer.message}"


def told_schema(answer: proto.CommandGetSchemaResponse) -> str:
    """A topic without a schema is not found, by a role that may ask."""
    if not answer.HasField("error_code") or answer.error_code == proto.TopicNotFound:
        return ""
    return f"{proto.ServerError.Name(answer.error_code)}: {answer.error_message}"


REQUESTS: dict[Callable[[Peer], str], tuple[set[str], str]] = {
    lookup: ({"produce", "consume"}, "Client is not authorized to Lookup"),
    metadata: ({"produce", "consume"}, "Client is not authorized to Get Partition Metadata"),
    produce: ({"produce"}, "Client is not authorized to Produce"),
    subscribe: ({"consume"}, "Client is not authorized to subscribe"),
    topics: ({"consume"}, "Client is not authorized to GetTopicsOfNamespace"),
    watch: ({"consume"}, "Client is not authorized to watchTopicList"),
    get_schema: ({"produce", "consume"}, "Client is not authorized to GetSchema"),
    make_schema: ({"produce"}, "Client is not authorized to GetOrCreateSchema"),
}
"""Request -> the actions of which one is enough, and the text of a refusal."""


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("action", ["produce", "consume", "functions", "packages", None])
def test_a_permission_on_the_namespace(
    world: World, request_: Callable[[Peer], str], action: str | None
) -> None:
    """Rule TENANT-03."""
    if action is not None:
        grant(world, NAMESPACE, "ada", action)
    enough, text = REQUESTS[request_]
    expected = "" if action in enough else f"AuthorizationError: {text}"
    peer = enter(world, "ada")
    assert request_(peer) == expected
    peer.nothing()
    assert peer.closed is None


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("role", ["root", "boss"])
def test_superusers_and_administrators_of_the_tenant_need_no_permission(
    world: World, request_: Callable[[Peer], str], role: str
) -> None:
    assert request_(enter(world, role)) == ""


def test_an_administrator_of_another_tenant_needs_a_permission(world: World) -> None:
    world.broker.administration.create_tenant(0, "other", ["stranger"])
    assert lookup(enter(world, "stranger")) != ""


def test_a_permission_on_a_topic_is_for_it_and_its_partitions(world: World) -> None:
    parts = f"persistent://{NAMESPACE}/parts"
    grant(world, parts, "ada", "produce")
    grant(world, f"{parts}-partition-1", "bob", "produce")
    ada, bob = enter(world, "ada"), enter(world, "bob")
    assert lookup(ada, parts) == produce(ada, f"{parts}-partition-0") == ""
    assert produce(ada, TOPIC) != ""
    assert produce(bob, f"{parts}-partition-1") == ""
    assert produce(bob, f"{parts}-partition-0") != ""
    assert lookup(bob, parts) != ""
    assert topics(ada) != ""


def test_a_subscription_may_be_for_some_roles_only(world: World) -> None:
    """Rule BROKER-02."""
    for role in ("ada", "bob"):
        grant(world, NAMESPACE, role, "consume")
    world.broker.administration.grant_subscription(0, NAMESPACE, {"s": ["bob", "eve"]})
    assert subscribe(enter(world, "ada")) == "AuthorizationError: Client is not authorized to subscribe"
    assert subscribe(enter(world, "ada"), subscription="other") == ""
    assert subscribe(enter(world, "bob")) == ""
    assert subscribe(enter(world, "eve")) != ""
    assert subscribe(enter(world, "boss")) == ""


def test_an_initial_subscription_needs_the_permission_to_consume(world: World) -> None:
    grant(world, NAMESPACE, "ada", "produce")
    peer = enter(world, "ada")
    assert produce(peer, initial="s") == "AuthorizationError: Client is not authorized to Produce"
    grant(world, NAMESPACE, "ada", "produce", "consume")
    assert produce(peer, initial="s") == ""


def test_a_permission_can_be_revoked(world: World) -> None:
    grant(world, NAMESPACE, "ada", "produce")
    peer = enter(world, "ada")
    assert produce(peer) == ""
    grant(world, NAMESPACE, "ada")
    assert produce(peer) != ""


def test_partitions_of_a_namespace_that_does_not_exist_are_not_found(world: World) -> None:
    peer = enter(world, "ada")
    assert metadata(peer, "persistent://no/where/t") == "TopicNotFound: Namespace not found"
    assert lookup(peer, "persistent://no/where/t").startswith("AuthorizationError")


def test_a_proxy_and_its_client_both_need_the_permission(world: World) -> None:
    peer = knock(world, b"proxy", original_principal="ada")
    peer.expect(Type.CONNECTED)
    assert produce(peer) != ""
    grant(world, NAMESPACE, "ada", "produce")
    assert produce(peer) != ""
    grant(world, NAMESPACE, "proxy", "produce")
    assert produce(peer) == ""
    grant(world, NAMESPACE, "ada")
    assert produce(peer) != ""


def test_without_authorization_every_role_may_do_everything() -> None:
    made = guarded(authorization=False)
    assert subscribe(enter(made, "ada"), "persistent://public/default/t") == ""


# --- wildcards ----------------------------------------------------------------------------------------


def with_grant(role: str, **options: bool) -> World:
    world = guarded(**options)
    world.broker.administration.create_tenant(0, "acme", [])
    world.broker.administration.create_namespace(0, NAMESPACE)
    grant(world, NAMESPACE, role, "produce")
    return world


@pytest.mark.parametrize(
    ("granted", "role", "allowed"),
    [
        ("shop-*", "shop-1", True),
        ("shop-*", "shop-", True),
        ("shop-*", "my-shop-1", False),
        ("*-shop", "my-shop", True),
        ("*-shop", "my-shops", False),
        ("*", "ada", True),
        ("*sh*", "*sh-1", True),
        ("*sh*", "my-sh-1", False),
        ("a*a", "aba", False),
        ("a*a", "a*a", True),
    ],
)
def test_a_wildcard_stands_for_any_text_at_one_end(granted: str, role: str, allowed: bool) -> None:
    peer = enter(with_grant(granted, wildcard_roles=True), role)
    assert (produce(peer) == "") is allowed
    assert subscribe(peer) != "", "the permission is to produce"


def test_a_wildcard_is_plain_text_without_the_option() -> None:
    world = with_grant("shop-*")
    assert produce(enter(world, "shop-1"))
    assert not produce(enter(world, "shop-*"))


def test_a_wildcard_permits_to_list_topics() -> None:
    world = with_grant("shop-*", wildcard_roles=True)
    assert topics(enter(world, "shop-1"))
    grant(world, NAMESPACE, "shop-*", "consume")
    assert not topics(enter(world, "shop-1"))
