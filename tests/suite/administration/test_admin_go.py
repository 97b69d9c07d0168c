"""Every call of the HTTP API that the tests of Apache Pulsar's Go client (0.19) make, those of its package
`pulsaradmin` included: each answered with the status of a real Pulsar, or with 501 where the table says so.
What needs two clusters, several brokers or transactions is left out; revoking is in `test_admin_entries`.
"""

from http.client import HTTPConnection
from json import dumps
from typing import NamedTuple

import pytest
import trio

from pulsar_trio import Client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest


class Call(NamedTuple):
    """`path`: with {N}, a namespace; {T} and {P}, a topic in it without and with two partitions; {S}, the
    schemas of {T}; {L}, the ledger of the one message in {T}, which has the subscription `s`. `ours`: our
    status where it is another one, and why."""

    method: str
    path: str
    body: object = None
    status: int = 204
    ours: int = 0
    why: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": 10, "ratePeriodInSecond": 1}
COPIES = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
PERSISTENCE = COPIES | {"managedLedgerMaxMarkDeleteRate": 10.0}
TEXT = {"type": "STRING", "schema": "", "properties": {}}
QUOTA = {"limit": "10240", "policy": "producer_request_hold"}

NO_REPLICATORS = "nothing is replicated"
NO_BOOKIES = "the broker keeps entries in one store"
NO_TIERS = "there is no tiered storage"

CLIENT = [
    Call("PUT", "{N}-2", {"auth_policies": {"namespace_auth": {"anonymous": ["produce", "consume"]}}}),
    Call("DELETE", "{N}", None, 409),
    Call("GET", "{N}/topics?mode=ALL", None, 200),
    Call("GET", "{N}/topics?mode=PERSISTENT", None, 200),
    Call("GET", "{N}/topics?mode=NON_PERSISTENT", None, 200),
    Call("GET", "{N}/bundles", None, 200),
    Call("PUT", "{T}-2"),
    Call("DELETE", "{T}?force=true"),
    Call("GET", "{T}/stats", None, 200),
    Call("PUT", "{T}-2/partitions", 5),
    Call("POST", "{P}/partitions", 5),
    Call("GET", "{P}/partitions", None, 200),
    Call("DELETE", "{P}/partitions"),
    Call("PUT", "{T}/unload"),
    Call("POST", "{T}/terminate", None, 200),
    Call("POST", "{N}/backlogQuota?backlogQuotaType=destination_storage", QUOTA),
    Call("DELETE", "{N}/backlogQuota?backlogQuotaType=destination_storage"),
    Call("GET", "{N}/backlogQuotaMap", None, 200),
    Call("POST", "{T}/publishRate", {"publishThrottlingRateInMsg": 1}),
    Call("DELETE", "{S}/schema", None, 200),
    Call("GET", "/lookup/v2/topic/persistent/{NAME}/t", None, 200),
]

NAMESPACES = [
    Call("POST", "{N}/autoTopicCreation", {"allowAutoTopicCreation": False, "topicType": ""}),
    Call("POST", "{N}/autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "partitioned"}, 412),
    Call("GET", "{N}/autoTopicCreation", None, 200),
    Call("DELETE", "{N}/autoTopicCreation"),
    Call("POST", "{N}/permissions/subscription/s", ["user"]),
    Call("GET", "{N}/permissions/subscription", None, 200),
    Call("POST", "{N}/subscriptionExpirationTime", 60),
    Call("POST", "{N}/subscriptionExpirationTime", -60, 412),
    Call("GET", "{N}/subscriptionExpirationTime", None, 200),
    Call("DELETE", "{N}/subscriptionExpirationTime"),
    Call("GET", "{N}/offloadThreshold", None, 200),
    Call("GET", "{N}/offloadThresholdInSeconds", None, 200),
    Call("PUT", "{N}/offloadThresholdInSeconds", 60, 200, 501, NO_TIERS),
    Call("GET", "{N}/offloadDeletionLagMs", None, 200),
    Call("PUT", "{N}/offloadDeletionLagMs", 1000, 204, 501, NO_TIERS),
    Call("GET", "{N}/schemaCompatibilityStrategy", None, 200),
    Call("PUT", "{N}/schemaCompatibilityStrategy", "UNDEFINED"),
    Call("PUT", "{N}/schemaCompatibilityStrategy", "FULL"),
    Call("PUT", "{N}/properties", {"key-1": "value-1"}),
    Call("GET", "{N}/properties", None, 200),
    Call("DELETE", "{N}/properties"),
    Call("POST", "{N}/maxTopicsPerNamespace", 100),
    Call("POST", "{N}/maxTopicsPerNamespace", -1, 412),
    Call("GET", "{N}/maxTopicsPerNamespace", None, 200),
    Call("DELETE", "{N}/maxTopicsPerNamespace"),
    *(
        Call(method, f"{{N}}/{policy}", body, status)
        for policy in (
            "messageTTL",
            "maxConsumersPerTopic",
            "maxConsumersPerSubscription",
            "maxProducersPerTopic",
        )
        for method, body, status in (("GET", None, 200), ("POST", 100, 204), ("DELETE", None, 204))
    ),
    Call("GET", "{N}/compactionThreshold", None, 200),
    Call("PUT", "{N}/compactionThreshold", 0),
    Call("GET", "{N}/retention", None, 200),
    Call("POST", "{N}/retention", {"retentionSizeInMB": 1024, "retentionTimeInMinutes": 60}),
    Call("DELETE", "{N}/retention"),
    Call("GET", "{N}/persistence/bookieAffinity"),
    Call("GET", "{N}/persistence", None, 200),
    Call("POST", "{N}/persistence", PERSISTENCE, 204, 501, NO_BOOKIES),
    Call("DELETE", "{N}/persistence"),
]

TOPICS = [
    Call("GET", "{T}/properties", None, 200),
    Call("PUT", "{P}/properties", {"key1": "value1"}),
    Call("GET", "{P}/properties", None, 200),
    Call("DELETE", "{P}/properties?key=key1"),
    Call("GET", "{P}/partitioned-stats?perPartition=true", None, 200),
    Call("GET", "{T}/stats?excludePublishers=true&excludeConsumers=true", None, 200),
    Call("GET", "{P}-partition-0/messageid/1000", None, 200),
    Call("GET", "{P}/messageid/1000", None, 405),
    Call("GET", "{T}/ledger/{L}/entry/0", None, 200),
    Call("GET", "{T}/ledger/999999/entry/2048", None, 404),
    Call("GET", "{T}/subscription/s/position/1", None, 200),
    Call("GET", "{T}/subscription/new/position/1", None, 200),
    Call("PUT", "{P}/subscription/s", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}),
    Call("GET", "{P}/messageTTL", None, 200),
    Call("POST", "{P}/messageTTL?messageTTL=600"),
    Call("DELETE", "{P}/messageTTL"),
    Call("GET", "{P}/retention", None, 200),
    Call("POST", "{P}/retention", {"retentionSizeInMB": 20480, "retentionTimeInMinutes": 1440}),
    Call("DELETE", "{P}/retention"),
    *(
        Call(method, f"{{P}}/{policy}", body)
        for policy in (
            *("maxConsumersPerSubscription", "maxMessageSize", "maxSubscriptionsPerTopic", "maxProducers"),
            *("maxConsumers", "maxUnackedMessagesOnConsumer", "maxUnackedMessagesOnSubscription"),
        )
        for method, body in (("POST", 1000), ("DELETE", None))
    ),
    Call("GET", "{P}/maxSubscriptionsPerTopic"),
    *(
        Call(method, f"{{P}}/{policy}", body, status, ours, NO_REPLICATORS)
        for policy, record, refused in (
            ("subscribeRate", {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30}, 0),
            ("subscriptionDispatchRate", RATE, 0),
            ("replicatorDispatchRate", RATE, 501),
            ("dispatchRate", RATE, 0),
        )
        for method, body, status, ours in (
            ("GET", None, 200, 0),
            ("POST", record, 204, refused),
            ("DELETE", None, 204, 0),
        )
    ),
    Call("GET", "{P}/publishRate"),
    Call("GET", "{P}/deduplicationSnapshotInterval", None, 200),
    Call("POST", "{P}/deduplicationSnapshotInterval", 1000, 204, 501, "no snapshots"),
    Call("GET", "{P}/offloadPolicies", None, 200),
    Call("GET", "{P}/autoSubscriptionCreation", None, 200),
    Call("POST", "{P}/autoSubscriptionCreation", {"allowAutoSubscriptionCreation": True}),
    Call("DELETE", "{P}/autoSubscriptionCreation"),
    Call("GET", "{P}/schemaCompatibilityStrategy?applied=false", None, 200),
    Call("PUT", "{P}/schemaCompatibilityStrategy", "BACKWARD"),
    Call("DELETE", "{P}/schemaCompatibilityStrategy"),
    Call("GET", "{P}/schemaValidationEnforced", None, 200),
    Call("POST", "{P}/schemaValidationEnforced", True),
    Call("GET", "{P}/replication", None, 200),
    Call("POST", "{P}/replication", ["standalone"]),
    Call("DELETE", "{P}/replication"),
    Call("GET", "{P}/persistence", None, 200),
    Call("POST", "{P}/persistence", PERSISTENCE, 204, 501, NO_BOOKIES),
    Call("GET", "{P}/delayedDelivery", None, 200),
    Call("POST", "{P}/delayedDelivery", {"tickTime": 2000, "active": True}),
    Call("DELETE", "{P}/delayedDelivery"),
]

OTHERS = [
    Call("GET", "/admin/v2/brokers/health?topicVersion=V1", None, 200),
    Call("GET", "/admin/v2/brokers/leaderBroker", None, 200),
    Call("GET", "/admin/v2/brokers", None, 200),
    Call("GET", "/admin/v2/clusters", None, 200),
    Call("GET", "/admin/v2/brokers/configuration", None, 200),
    Call("GET", "/admin/v2/brokers/configuration/values", None, 200),
    Call("POST", "/admin/v2/brokers/configuration/noSuchSetting/true", None, 412),
    Call("POST", "{S}/schema", TEXT, 200),
    Call("GET", "{S}/schemas", None, 200),
    Call("GET", "{S}/schema", None, 404),
    Call("POST", "{S}/version", TEXT, 200),
    Call("POST", "{S}/compatibility", TEXT, 202),
    Call("DELETE", "{S}/schema?force=true", None, 200),
]

CALLS = [*CLIENT, *NAMESPACES, *TOPICS, *OTHERS]


async def status_of(broker: BrokerUnderTest, method: str, path: str, body: object) -> tuple[int, bytes]:
    """The Go client sends `null` where it has no body."""

    def call() -> tuple[int, bytes]:
        host, port = broker.admin.url.removeprefix("http://").split(":")
        connection = HTTPConnection(host, int(port), timeout=30)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request(
            method, path, dumps(body) if body is not None or method == "PUT" else None, headers
        )
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    return await trio.to_thread.run_sync(call)


@pytest.mark.parametrize("call", CALLS, ids=[f"{number}-{call}" for number, call in enumerate(CALLS)])
async def test_a_call_of_the_go_client(
    broker: BrokerUnderTest, client: Client, local_name: str, call: Call
) -> None:
    name = f"public/go-{abs(hash(local_name))}"
    namespace, topic = f"/admin/v2/namespaces/{name}", f"persistent://{name}/t"
    assert (await broker.request("PUT", namespace))[0] == 204
    await broker.create_topic(topic)
    await broker.create_partitioned_topic(f"persistent://{name}/p", 2)
    path = call.path
    if "{L}" in path or "subscription/" in path:
        assert (await broker.request("PUT", f"{topic_path(topic)}/subscription/s", "earliest"))[0] == 204
        async with client.create_producer(topic) as producer:
            path = path.replace("{L}", str((await producer.send(b"x")).ledger_id))
    path = (
        path.replace("{NAME}", name)
        .replace("{N}", namespace)
        .replace("{T}", topic_path(topic))
        .replace("{P}", topic_path(f"persistent://{name}/p"))
        .replace("{S}", f"/admin/v2/schemas/{name}/t")
    )
    status, answer = await status_of(broker, call.method, path, call.body)
    if broker.name == "ours" and call.ours:
        assert (status, b"not implemented" in answer) == (call.ours, True), call.why
    else:
        assert status == call.status, answer
