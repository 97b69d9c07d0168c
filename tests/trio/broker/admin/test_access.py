"""Access to the administration: the role of a request, its permissions, and web pages that have none."""

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from pulsar_trio import EmbeddedBroker, open_broker
from tests.canary import CANARY
from tests.security.certificates import Authority
from tests.trio.broker.admin.test_listener import exchange, read_answer
from tests.trio.broker.identities import guarded_broker, token

TOPIC = "/admin/v2/persistent/acme/orders/t"
NAMESPACE = "/admin/v2/namespaces/acme/orders"
TRANSACTIONS = "/admin/v3/transactions"


async def asked(
    broker: EmbeddedBroker,
    method: str,
    path: str,
    *,
    role: str | None = None,
    body: str = "",
    **headers: str,
) -> tuple[int, bytes]:
    """Send one request. `role`: with a token for it. `headers`: `_` in a name stands for `-`."""
    fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
    if role is not None:
        fields["Authorization"] = f"Bearer {token(role)}"
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    status, _, answer = await exchange(broker, f"{method} {path} HTTP/1.1\r\n{lines}\r\n{body}".encode())
    return status, answer


@pytest.fixture
async def guarded() -> AsyncIterator[EmbeddedBroker]:
    """A broker with the topic `t` in acme/orders. boss administers acme, others have one permission each."""
    async with guarded_broker(http_port=0, settings={"proxy_roles": {"proxy"}}) as broker:
        broker.create_tenant("acme", ["boss"])
        broker.create_namespace("acme/orders")
        broker.create_topic("persistent://acme/orders/t")
        broker.grant("acme/orders", "producer", "produce")
        broker.grant("acme/orders", "consumer", "consume")
        yield broker


@pytest.fixture
async def open_to_all() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0, advertised_host="pulsar.example") as broker:
        yield broker


# --- roles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer x"},
        {"Authorization": f"Bearer {token('root', seconds=-1)}"},
        {"Authorization": "Basic !"},
        {"Authorization": "Basic " + b64encode(b"ada:q").decode()},
        {"Authorization": "Strange x"},
        {"X_Pulsar_Auth_Method_Name": "tls"},
        {"X_Pulsar_Auth_Method_Name": "token"},
    ],
)
@pytest.mark.parametrize("path", ["/admin/v2/clusters", "/no/such/path", "/lookup/v2/topic/x"])
async def test_without_a_role_nothing_is_answered(
    guarded: EmbeddedBroker, headers: dict[str, str], path: str
) -> None:
    answer = await asked(guarded, "GET", path, **headers)
    assert answer == (401, b'{"reason":"Authentication required"}')


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {token('ada')}"},
        {"Authorization": f"bearer {token('ada')}"},
        {"Authorization": "Basic " + b64encode(f"ada:{CANARY}".encode()).decode()},
        {"Authorization": token("ada"), "X_Pulsar_Auth_Method_Name": "token"},
    ],
)
async def test_each_way_to_show_a_role(guarded: EmbeddedBroker, headers: dict[str, str]) -> None:
    assert (await asked(guarded, "GET", "/admin/v2/clusters", **headers))[0] == 200
    assert (await asked(guarded, "GET", "/admin/v2/persistent/public/default", **headers))[0] == 200


async def test_the_anonymous_role_over_http() -> None:
    async with guarded_broker(http_port=0, settings={"anonymous_role": "root"}) as broker:
        assert (await asked(broker, "GET", "/admin/v2/tenants"))[0] == 200
        assert (await asked(broker, "GET", "/admin/v2/tenants", Authorization="Bearer x"))[0] == 401


async def test_a_certificate_over_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.server(trust=authority.file)
    async with guarded_broker(tls=server, https_port=0) as broker:
        assert broker.admin_url_tls is not None
        port = int(broker.admin_url_tls.rpartition(":")[2])
        for role, expected in (("root", 200), ("ada", 401), (None, 401)):
            context = ssl.create_default_context(cafile=str(authority.file))
            if role is not None:
                files = authority.issue(common_name=role)
                context.load_cert_chain(files.certificate, files.key)
            raw = await trio.open_tcp_stream("127.0.0.1", port)
            async with trio.SSLStream(
                raw, context, server_hostname="localhost", https_compatible=True
            ) as stream:
                await stream.send_all(b"GET /admin/v2/tenants HTTP/1.1\r\nHost: localhost\r\n\r\n")
                status, _, body = await read_answer(stream)
                assert status == expected, body


async def test_a_proxy_names_the_role_it_stands_for(guarded: EmbeddedBroker) -> None:
    path = f"{TOPIC}/stats"
    assert (await asked(guarded, "GET", path, role="proxy")) == (401, b'{"reason":"Invalid roles."}')
    assert (await asked(guarded, "GET", path, role="ada", X_Original_Principal="bob"))[0] == 401
    assert (await asked(guarded, "GET", path, role="producer", X_Original_Principal="producer"))[0] == 200
    assert (await asked(guarded, "GET", path, role="proxy", X_Original_Principal="producer"))[0] == 403
    guarded.grant("acme/orders", "proxy", "produce")
    assert (await asked(guarded, "GET", path, role="proxy", X_Original_Principal="producer"))[0] == 200
    assert (await asked(guarded, "GET", path, role="proxy", X_Original_Principal="eve"))[0] == 403


# --- permissions --------------------------------------------------------------------------------------

ROLES = ("root", "boss", "producer", "consumer", "eve")

ALL, ADMIN, SUPER = set(ROLES), {"root", "boss"}, {"root"}
USERS = ADMIN | {"producer", "consumer"}
CONSUMERS = ADMIN | {"consumer"}
PRODUCERS = ADMIN | {"producer"}

REQUESTS = [
    ("GET", "/admin/v2/clusters", ALL),
    ("GET", "/admin/v2/brokers/version", ALL),
    ("GET", "/admin/v2/clusters/standalone", SUPER),
    ("PUT", "/admin/v2/clusters/x", SUPER),
    ("GET", "/admin/v2/brokers/health", SUPER),
    ("GET", "/admin/v2/brokers/configuration/values", SUPER),
    ("POST", "/admin/v2/brokers/configuration/x/1", SUPER),
    ("GET", "/admin/v2/tenants", SUPER),
    ("GET", "/admin/v2/tenants/acme", SUPER),
    ("PUT", "/admin/v2/tenants/new", SUPER),
    ("DELETE", "/admin/v2/tenants/acme", SUPER),
    ("GET", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions", ALL),
    ("GET", "/lookup/v2/topic/persistent/pulsar/system/transaction_coordinator_assign-partition-0", ALL),
    ("GET", f"{TRANSACTIONS}/coordinators", SUPER),
    ("GET", f"{TRANSACTIONS}/coordinatorStats", SUPER),
    ("GET", f"{TRANSACTIONS}/slowTransactions/0", SUPER),
    ("GET", f"{TRANSACTIONS}/transactionMetadata/0/0", SUPER),
    ("POST", f"{TRANSACTIONS}/abortTransaction/0/0", SUPER),
    ("POST", f"{TRANSACTIONS}/transactionCoordinator/replicas", SUPER),
    ("GET", f"{TRANSACTIONS}/transactionBufferStats/acme/orders/t", USERS),
    ("GET", f"{TRANSACTIONS}/transactionInBufferStats/acme/orders/t/0/0", USERS),
    ("GET", f"{TRANSACTIONS}/transactionBufferInternalStats/acme/orders/t", SUPER),
    ("GET", f"{TRANSACTIONS}/pendingAckStats/acme/orders/t/s", CONSUMERS),
    ("GET", f"{TRANSACTIONS}/pendingAckInternalStats/acme/orders/t/s", SUPER),
    ("GET", f"{TRANSACTIONS}/transactionInPendingAckStats/acme/orders/t/s/0/0", CONSUMERS),
    ("GET", f"{TRANSACTIONS}/positionStatsInPendingAck/acme/orders/t/s/0/0", CONSUMERS),
    ("GET", "/admin/v2/namespaces/acme", ADMIN),
    ("GET", NAMESPACE, ADMIN),
    ("PUT", "/admin/v2/namespaces/acme/new", ADMIN),
    ("GET", f"{NAMESPACE}/topics", CONSUMERS),
    ("GET", f"{NAMESPACE}/retention", ADMIN),
    ("POST", f"{NAMESPACE}/messageTTL", ADMIN),
    ("GET", f"{NAMESPACE}/permissions", ADMIN),
    ("POST", f"{NAMESPACE}/permissions/eve", ADMIN),
    ("POST", f"{NAMESPACE}/clearBacklog", CONSUMERS),
    ("POST", f"{NAMESPACE}/0x00000000_0xffffffff/clearBacklog/s", CONSUMERS),
    ("POST", f"{NAMESPACE}/unsubscribe/s", CONSUMERS),
    ("GET", "/admin/v2/persistent/acme/orders", CONSUMERS),
    ("GET", "/admin/v2/persistent/acme/orders/partitioned", CONSUMERS),
    ("PUT", "/admin/v2/persistent/acme/orders/partitioned", ADMIN),
    ("PUT", f"{TOPIC}2", ADMIN),
    ("GET", f"{TOPIC}/partitions", USERS),
    ("PUT", f"{TOPIC}3/partitions", ADMIN),
    ("GET", f"{TOPIC}/stats", USERS),
    ("GET", f"{TOPIC}/internalStats", USERS),
    ("GET", f"{TOPIC}/properties", USERS),
    ("PUT", f"{TOPIC}/properties", ADMIN),
    ("GET", f"{TOPIC}/lastMessageId", CONSUMERS),
    ("GET", f"{TOPIC}/subscriptions", CONSUMERS),
    ("PUT", f"{TOPIC}/subscription/s", CONSUMERS),
    ("POST", f"{TOPIC}/subscription/s/skip_all", CONSUMERS),
    ("POST", f"{TOPIC}/all_subscription/expireMessages/1", CONSUMERS),
    *(
        (method, f"{TOPIC}/{subscription}/dispatchRate", ADMIN)
        for method in ("GET", "POST", "DELETE")
        for subscription in ("s", "all_subscription", "backlogSize", "ledger")
    ),
    ("POST", f"{TOPIC}/subscription/dispatchRate", ADMIN),
    ("DELETE", f"{TOPIC}/subscription/dispatchRate", CONSUMERS),
    ("PUT", f"{TOPIC}/backlogSize", CONSUMERS),
    ("GET", f"{TOPIC}/permissions", ADMIN),
    ("POST", f"{TOPIC}/permissions/eve", ADMIN),
    ("GET", f"{TOPIC}/retention", ADMIN),
    ("PUT", f"{TOPIC}/compaction", ADMIN),
    ("PUT", f"{TOPIC}/unload", ADMIN),
    ("GET", "/lookup/v2/topic/persistent/acme/orders/t", USERS),
    ("GET", "/admin/v2/schemas/acme/orders/t/schema", USERS),
    ("POST", "/admin/v2/schemas/acme/orders/t/compatibility", USERS),
    ("POST", "/admin/v2/schemas/acme/orders/t/schema", PRODUCERS),
    ("DELETE", "/admin/v2/schemas/acme/orders/t/schema", ADMIN),
    ("DELETE", TOPIC, ADMIN),
    ("OPTIONS", TOPIC, ALL),
]
"""Requests with the roles that may make them."""


@pytest.mark.parametrize(("method", "path", "allowed"), REQUESTS)
async def test_each_request_needs_its_permission(
    guarded: EmbeddedBroker, method: str, path: str, allowed: set[str]
) -> None:
    found = set()
    for role in ROLES:
        status, body = await asked(guarded, method, path, role=role, body="[]")
        if status not in (401, 403):
            found.add(role)
        elif allowed == SUPER:
            assert (status, body) == (401, b'{"reason":"This operation requires super-user access"}')
        else:
            assert status == 403
            assert role.encode() in body
    assert found == allowed


async def test_a_subscription_of_other_roles_over_http(guarded: EmbeddedBroker) -> None:
    guarded.grant_subscription("acme/orders", "s", "eve")
    assert (await asked(guarded, "PUT", f"{TOPIC}/subscription/s", role="consumer"))[0] == 403
    assert (await asked(guarded, "PUT", f"{TOPIC}/subscription/other", role="consumer"))[0] == 204


async def test_metrics_need_no_role(guarded: EmbeddedBroker) -> None:
    assert (await asked(guarded, "GET", "/metrics"))[0] == 200


async def test_without_authorization_every_role_administers() -> None:
    async with guarded_broker(http_port=0, settings={"authorization": False}) as broker:
        assert (await asked(broker, "GET", "/admin/v2/tenants", role="eve"))[0] == 200
        assert (await asked(broker, "GET", "/admin/v2/tenants"))[0] == 401


# --- web pages ----------------------------------------------------------------------------------------

CREATE = "/admin/v2/persistent/public/default/t"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "192.0.2.7",
        "pulsar.example:1",
        "localhost.",
    ],
)
async def test_names_and_addresses_of_the_broker(open_to_all: EmbeddedBroker, host: str) -> None:
    assert (await asked(open_to_all, "PUT", CREATE, Host=host))[0] == 204


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8080", "[evil", "1.2.3.4.evil"])
async def test_a_name_that_a_page_bound_to_the_broker_is_refused(
    open_to_all: EmbeddedBroker, host: str
) -> None:
    assert (await asked(open_to_all, "PUT", CREATE, Host=host))[0] == 403
    assert open_to_all.topics() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
async def test_requests_of_other_pages_are_refused(
    open_to_all: EmbeddedBroker, headers: dict[str, str]
) -> None:
    assert (await asked(open_to_all, "PUT", CREATE, **headers))[0] == 403
    assert open_to_all.topics() == []


async def test_a_page_of_the_same_origin_is_served(open_to_all: EmbeddedBroker) -> None:
    headers = {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec_Fetch_Site": "same-origin"}
    assert (await asked(open_to_all, "PUT", CREATE, **headers))[0] == 204


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_that_a_form_can_send_is_refused(open_to_all: EmbeddedBroker, kind: str) -> None:
    assert (await asked(open_to_all, "PUT", CREATE, body="{}", Content_Type=kind))[0] == 415
    assert open_to_all.topics() == []


async def test_permissions_on_several_topics_are_for_superusers(guarded: EmbeddedBroker) -> None:
    """A tenant may be named as these paths are: its administrator has no right on topics of others."""
    for call in ("grantPermissionsOnTopics", "revokePermissionsOnTopics"):
        guarded.create_tenant(call, ["intruder"])
        path = f"/admin/v2/namespaces/{call}"
        body = '[{"topics":["persistent://acme/orders/t"],"role":"intruder","actions":["consume"]}]'
        assert (await asked(guarded, "POST", path, role="intruder", body=body))[0] == 401
        assert (await asked(guarded, "POST", path, role="root", body=body))[0] == 204


async def test_who_may_produce_produces_over_http(guarded: EmbeddedBroker) -> None:
    path, body = "/topics/persistent/acme/orders/t", '{"messages":[{"payload":"x"}]}'
    assert (await asked(guarded, "POST", path, role="producer", body=body))[0] == 200
    assert (await asked(guarded, "POST", path, role="consumer", body=body))[0] == 403
    assert (await asked(guarded, "POST", f"{path}/partitions/0", role="consumer", body=body))[0] == 403
