"""Pulsar's names: each is obeyed, ignored by name, or refused; and what is obeyed has its effect."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsar_sansio import (
    SUBSCRIPTION_TYPES,
    BacklogQuota,
    InactiveTopics,
    InvalidConfiguration,
    MessageRate,
    Policies,
    PulsarError,
    SubscribeRate,
    TopicName,
)
from pulsar_trio import OutgoingMessage, ServerTls, open_broker, open_client
from pulsar_trio_command.broker.pulsar_names import NAMES, is_pulsars
from pulsar_trio_command.broker.settings import (
    HOUSEKEEPING,
    SETTINGS,
    Chosen,
    choose,
    similar,
    table,
)
from pulsar_trio_command.command import main
from pulsar_trio_command.properties import Property, read_properties
from tests.command.broker.test_identity import IDENTITY_PARTS
from tests.patience import PATIENCE

NO_LIMIT = 2**31 - 1
ROOT = Path(__file__).parents[3]


def chosen(*texts: str) -> Chosen:
    pairs = [text.partition("=") for text in texts]
    return choose(Property(name, value, f"file:{line}") for line, (name, _, value) in enumerate(pairs, 1))


OPTIONS: list[tuple[str, str, str, object]] = [
    ("brokerServicePort", "6651", "port", 6651),
    ("webServicePort", "0", "http_port", 0),
    ("brokerServicePortTls", "6651", "tls_port", 6651),
    ("webServicePortTls", "0", "https_port", 0),
    ("bindAddress", "0.0.0.0", "host", "0.0.0.0"),
    ("advertisedAddress", "pulsar.example", "advertised_host", "pulsar.example"),
    ("clusterName", "west", "cluster", "west"),
    ("keepAliveIntervalSeconds", "7", "keepalive_interval", 7),
    ("connectionLivenessCheckTimeoutMillis", "1500", "liveness_timeout", 1.5),
    ("brokerMaxConnections", "10", "max_connections", 10),
    ("brokerMaxConnections", "0", "max_connections", NO_LIMIT),
    ("brokerMaxConnectionsPerIp", "3", "max_connections_per_address", 3),
    ("maxSameAddressProducersPerTopic", "3", "max_producers_per_address", 3),
    ("maxSameAddressConsumersPerTopic", "0", "max_consumers_per_address", 0),
    ("maxTopicsPerNamespace", "3", "max_topics_per_namespace", 3),
    ("maxNumPartitionsPerPartitionedTopic", "3", "max_partitions_per_topic", 3),
    ("maxTenants", "3", "max_tenants", 3),
    ("maxNamespacesPerTenant", "3", "max_namespaces_per_tenant", 3),
    ("brokerPublisherThrottlingMaxMessageRate", "3", "broker_publish_rate", MessageRate(3, 0)),
    ("brokerPublisherThrottlingMaxByteRate", "3", "broker_publish_rate", MessageRate(0, 3)),
    ("dispatchThrottlingRateInMsg", "3", "broker_dispatch_rate", MessageRate(3, 0)),
    ("dispatchThrottlingRateInByte", "3", "broker_dispatch_rate", MessageRate(0, 3)),
    ("maxMessageSize", "2048", "max_message_size", 2048),
    ("maxPendingPublishRequestsPerConnection", "5", "max_pending_publishes", 5),
    ("allowAutoTopicCreation", "false", "auto_topic_creation", False),
    ("allowAutoTopicCreationType", "partitioned", "auto_topic_partitions", 1),
    ("allowAutoTopicCreationType", "non-partitioned", "auto_topic_partitions", 0),
    ("allowAutoSubscriptionCreation", "FALSE", "auto_subscription_creation", False),
    ("maxSubscriptionsPerTopic", "3", "max_subscriptions_per_topic", 3),
    ("maxSubscriptionsPerTopic", "0", "max_subscriptions_per_topic", NO_LIMIT),
    ("brokerDeduplicationEnabled", "true", "deduplication", True),
    ("brokerDeduplicationProducerInactivityTimeoutMinutes", "2", "deduplication_inactivity", 120),
    ("brokerDeduplicationMaxNumberOfProducers", "4", "deduplication_max_producers", 4),
    ("managedLedgerMaxEntriesPerLedger", "9", "ledger_max_entries", 9),
    ("managedLedgerMaxSizePerLedgerMbytes", "2", "ledger_max_bytes", 2 * 1024 * 1024),
    ("managedLedgerMaxLedgerRolloverTimeMinutes", "3", "ledger_max_time", 180),
    ("managedLedgerMinLedgerRolloverTimeMinutes", "0", "ledger_min_time", 0),
    ("managedLedgerCacheSizeMB", "2", "entry_cache_bytes", 2 * 1024 * 1024),
    ("managedLedgerCursorPositionFlushSeconds", "3", "cursor_flush_interval", 3),
    ("backlogQuotaCheckIntervalInSeconds", "8", "housekeeping_interval", 8),
    ("brokerDeleteInactiveTopicsFrequencySeconds", "5", "housekeeping_interval", 5),
    ("retentionCheckIntervalInSeconds", "9", "housekeeping_interval", 9),
    ("messageExpiryCheckIntervalInMinutes", "2", "housekeeping_interval", 120),
    ("brokerServiceCompactionMonitorIntervalInSeconds", "11", "housekeeping_interval", 11),
    ("transactionCoordinatorEnabled", "false", "transaction_coordinators", 0),
    ("maxActiveTransactionsPerCoordinator", "7", "max_transactions", 7),
    ("acknowledgmentAtBatchIndexLevelEnabled", "false", "batch_index_acknowledgement", False),
    ("maxUnackedMessagesPerConsumer", "6", "max_unacked_messages_per_consumer", 6),
    ("maxUnackedMessagesPerSubscription", "0", "max_unacked_messages_per_subscription", 0),
    ("activeConsumerFailoverDelayTimeMillis", "250", "failover_delay", 0.25),
    ("dispatcherMaxRoundRobinBatchSize", "3", "entries_per_turn", 3),
    ("keySharedLookAheadMsgInReplayThresholdPerSubscription", "30", "key_shared_look_ahead", 30),
    ("keySharedLookAheadMsgInReplayThresholdPerSubscription", "0", "key_shared_look_ahead", NO_LIMIT),
    ("subscriptionKeySharedUseConsistentHashing", "true", "key_shared_consistent_hashing", True),
    ("delayedDeliveryEnabled", "false", "delayed_delivery", False),
    ("delayedDeliveryTickTimeMillis", "100", "delayed_delivery_tick", 0.1),
    ("isDelayedDeliveryDeliverAtTimeStrict", "true", "delayed_delivery_strict", True),
    ("enableBrokerSideSubscriptionPatternEvaluation", "false", "topic_list_watcher", False),
]
"""Name, value, keyword of `open_broker` and its value."""

POLICIES: list[tuple[str, str, str, object]] = [
    ("maxProducersPerTopic", "2", "max_producers", 2),
    ("subscriptionTypesEnabled", "Shared, Exclusive", "subscription_types", ("Exclusive", "Shared")),
    ("subscriptionExpirationTimeMinutes", "4", "subscription_expiration", 240),
    ("maxConsumersPerTopic", "3", "max_consumers", 3),
    ("maxConsumersPerSubscription", "4", "max_consumers_per_subscription", 4),
    ("encryptionRequireOnProducer", "true", "encryption_required", True),
    ("schemaCompatibilityStrategy", "BACKWARD", "schema_compatibility", "BACKWARD"),
    ("isAllowAutoUpdateSchemaEnabled", "false", "schema_auto_update", False),
    ("isSchemaValidationEnforced", "true", "schema_validation_enforced", True),
    ("defaultRetentionTimeInMinutes", "5", "retention_time", 300),
    ("defaultRetentionTimeInMinutes", "-1", "retention_time", -1),
    ("defaultRetentionSizeInMB", "6", "retention_size", 6 * 1024 * 1024),
    ("defaultRetentionSizeInMB", "-1", "retention_size", -1),
    ("ttlDurationDefaultInSeconds", "70", "message_ttl", 70),
    ("brokerServiceCompactionThresholdInBytes", "8", "compaction_threshold", 8),
    ("delayedDeliveryMaxDelayInMillis", "9000", "delayed_delivery_max", 9.0),
    (
        "backlogQuotaDefaultLimitBytes",
        "10",
        "backlog_quota_size",
        BacklogQuota("producer_request_hold", limit_size=10),
    ),
    (
        "backlogQuotaDefaultLimitGB",
        "2",
        "backlog_quota_size",
        BacklogQuota("producer_request_hold", limit_size=2 * 1024**3),
    ),
    ("maxPublishRatePerTopicInMessages", "5", "publish_rate", MessageRate(5, 0)),
    ("maxPublishRatePerTopicInBytes", "5", "publish_rate", MessageRate(0, 5)),
    ("dispatchThrottlingRatePerTopicInMsg", "5", "dispatch_rate", MessageRate(5, 0)),
    ("dispatchThrottlingRatePerTopicInByte", "5", "dispatch_rate", MessageRate(0, 5)),
    ("dispatchThrottlingRatePerSubscriptionInMsg", "5", "subscription_dispatch_rate", MessageRate(5, 0)),
    ("dispatchThrottlingRatePerSubscriptionInByte", "5", "subscription_dispatch_rate", MessageRate(0, 5)),
    ("subscribeThrottlingRatePerConsumer", "5", "subscribe_rate", SubscribeRate(5, 30)),
    (
        "brokerDeleteInactiveTopicsEnabled",
        "true",
        "inactive_topics",
        InactiveTopics(True, 60, "delete_when_no_subscriptions"),
    ),
    (
        "backlogQuotaDefaultLimitSecond",
        "12",
        "backlog_quota_time",
        BacklogQuota("producer_request_hold", limit_time=12),
    ),
]
"""Name, value, policy and its value."""

TOGETHER = {
    "defaultNumPartitions",
    "backlogQuotaDefaultRetentionPolicy",
    "subscribeRatePeriodPerConsumerInSecond",
    "brokerDeleteInactiveTopicsMode",
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
    "tlsTrustCertsFilePath",
    "tlsRequireTrustedClientCertOnConnect",
    "tlsCiphers",
}
"""Settings that change what another one says; they have tests of their own."""

IDENTITY = {
    name
    for name, setting in SETTINGS.items()
    if setting.sets.startswith("identity ") or name in IDENTITY_PARTS
}
"""Settings of authentication and authorization: `test_identity.py` has their tests."""


def test_every_setting_is_tried_here() -> None:
    assert {name for name, *_ in OPTIONS + POLICIES} | TOGETHER | IDENTITY == set(SETTINGS)


def test_every_setting_is_pulsars() -> None:
    assert set(SETTINGS) <= NAMES


@pytest.mark.parametrize(("name", "value", "option", "expected"), OPTIONS, ids=lambda each: str(each))
async def test_an_option_is_obeyed(name: str, value: str, option: str, expected: object) -> None:
    """Up to the configuration of the broker's machine."""
    options = chosen(f"{name}={value}").options
    assert options == {option: expected}
    if option.endswith(("port", "host")):
        return
    async with open_broker(**options) as broker:
        config = broker._driver.machine.config
        assert getattr(config, option) == expected


@pytest.mark.parametrize(("name", "value", "policy", "expected"), POLICIES, ids=lambda each: str(each))
async def test_a_policy_is_obeyed(name: str, value: str, policy: str, expected: object) -> None:
    """In a namespace that has no policies, and not in one that has this policy."""
    options = chosen(f"{name}={value}").options
    assert options == {"default_policies": Policies().with_policy(policy, expected)}
    async with open_broker(**options) as broker:
        machine = broker._driver.machine
        assert getattr(machine.metadata.effective_policies(TopicName.parse("t")), policy) == expected
        others = {
            "encryption_required": False,
            "subscription_types": ("Failover",),
            "schema_compatibility": "FORWARD",
            "schema_auto_update": True,
            "schema_validation_enforced": False,
        }
        other: Any = others.get(policy, 1)
        records = (MessageRate(), SubscribeRate(), InactiveTopics(False))
        other = next((each for each in records if type(each) is type(expected)), other)
        if "quota" in policy:
            other = BacklogQuota("producer_exception", 1, 1)
        broker.set_policy("public/default", policy, other)
        assert getattr(machine.metadata.effective_policies(TopicName.parse("t")), policy) != expected


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - IDENTITY))
async def test_the_ends_of_a_range_are_what_the_broker_takes(name: str) -> None:
    setting = SETTINGS[name]
    words = setting.allowed.split(" ")
    texts = words[-3::2] if setting.allowed.startswith("a whole number") else words[::2]
    if name == "subscriptionTypesEnabled":
        texts = [*SUBSCRIPTION_TYPES, ",".join(SUBSCRIPTION_TYPES)]
    if setting.allowed == "a text":
        return
    for text in texts:
        options = chosen(f"{name}={text}").options
        for option in ("port", "http_port", "tls_port", "https_port"):
            options.pop(option, None)
        async with open_broker(**options):
            pass
    for text in ("", " ") if setting.allowed == "a text" else ("x", "1_0", "1.5", "9" * 30):
        with pytest.raises(InvalidConfiguration) as raised:
            chosen("clusterName=c", f"{name}={text}")
        assert str(raised.value) == f"file:2: {name}: {setting.allowed}, not {text!r}"


def test_partitions_count_where_topics_are_partitioned() -> None:
    assert chosen("defaultNumPartitions=3").options == {}
    partitioned = "allowAutoTopicCreationType=partitioned"
    assert chosen(partitioned, "defaultNumPartitions=3").options == {"auto_topic_partitions": 3}
    assert chosen("defaultNumPartitions=3", "allowAutoTopicCreationType=non-partitioned").options == {
        "auto_topic_partitions": 0
    }


def test_tls_is_put_together() -> None:
    others = ["tlsKeyFilePath=/b.key", "tlsTrustCertsFilePath=/c.pem"]
    assert chosen(*others).options == {}
    found = chosen(
        "tlsCertificateFilePath=/a.pem",
        *others,
        "tlsRequireTrustedClientCertOnConnect=true",
        "tlsCiphers=TLS_AES_256_GCM_SHA384, ECDHE-RSA-AES256-GCM-SHA384,ECDHE-RSA-AES128-GCM-SHA256",
    )
    ciphers = "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
    tls = ServerTls("/a.pem", "/b.key", trust="/c.pem", require_client_certificate=True, ciphers=ciphers)
    assert found.options == {"tls": tls}
    only_newest = chosen("tlsCertificateFilePath=/a.pem", "tlsCiphers=TLS_AES_256_GCM_SHA384")
    assert only_newest.options == {"tls": ServerTls("/a.pem")}


def test_the_shortest_interval_counts() -> None:
    names = [name for name, setting in SETTINGS.items() if setting.sets == HOUSEKEEPING]
    assert len(names) == 5
    assert chosen(*(f"{name}=50" for name in names)).options == {"housekeeping_interval": 50}


def test_backlog_quotas_are_put_together() -> None:
    policy = "backlogQuotaDefaultRetentionPolicy=consumer_backlog_eviction"
    assert chosen(policy).options == {}
    nothing = ("backlogQuotaDefaultLimitBytes=-1", "backlogQuotaDefaultLimitGB=0")
    assert chosen(policy, *nothing, "backlogQuotaDefaultLimitSecond=-1").options == {}
    (policies,) = chosen(
        policy,
        "backlogQuotaDefaultLimitBytes=5",
        "backlogQuotaDefaultLimitGB=1",
        "backlogQuotaDefaultLimitSecond=9",
    ).options.values()
    assert policies.backlog_quota_size == BacklogQuota("consumer_backlog_eviction", limit_size=1024**3)
    assert policies.backlog_quota_time == BacklogQuota("consumer_backlog_eviction", limit_time=9)


def test_rates_are_put_together() -> None:
    assert (
        chosen("maxPublishRatePerTopicInMessages=0", "subscribeRatePeriodPerConsumerInSecond=7").options == {}
    )
    (policies,) = chosen(
        "maxPublishRatePerTopicInMessages=1",
        "maxPublishRatePerTopicInBytes=2",
        "dispatchThrottlingRatePerSubscriptionInMsg=3",
        "dispatchThrottlingRatePerSubscriptionInByte=4",
        "subscribeThrottlingRatePerConsumer=5",
        "subscribeRatePeriodPerConsumerInSecond=6",
    ).options.values()
    assert policies == Policies(
        publish_rate=MessageRate(1, 2),
        subscription_dispatch_rate=MessageRate(3, 4),
        subscribe_rate=SubscribeRate(5, 6),
    )


def test_inactive_topics_are_deleted_where_that_is_switched_on() -> None:
    how = (
        "brokerDeleteInactiveTopicsMode=delete_when_subscriptions_caught_up",
        "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=7",
    )
    assert chosen(*how).options == chosen(*how, "brokerDeleteInactiveTopicsEnabled=false").options == {}
    (policies,) = chosen(*how, "brokerDeleteInactiveTopicsEnabled=true").options.values()
    assert policies.inactive_topics == InactiveTopics(True, 7, "delete_when_subscriptions_caught_up")


def test_what_a_pulsar_has_is_ignored_by_name_once() -> None:
    found = chosen(
        "numIOThreads=8",
        "maxMessageSize=4096",
        "loadBalancerEnabled=true",
        "numIOThreads=9",
        "dbStorage_writeCacheMaxSizeMb=1",
        "zookeeperServers=",  # asks for nothing
    )
    assert found.options == {"max_message_size": 4096}
    assert found.ignored == ["numIOThreads", "loadBalancerEnabled", "dbStorage_writeCacheMaxSizeMb"]


def test_the_last_one_counts_and_an_empty_one_changes_nothing() -> None:
    assert chosen("maxMessageSize=4096", "maxMessageSize=2048").options == {"max_message_size": 2048}
    assert chosen("maxMessageSize=4096", "maxMessageSize=").options == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maxMesageSize", "maxMessageSize"),
        ("max_message_size", "maxMessageSize"),
        ("max-message-size", "maxMessageSize"),
        ("MAXMESSAGESIZE", "maxMessageSize"),
        ("auto_topic_creation", "allowAutoTopicCreation"),
        ("brokerDedupEnabled", "brokerDeduplicationEnabled"),
        ("numIoThread", "numIOThreads"),
        ("housekeeping_interval", "brokerServiceCompactionMonitorIntervalInSeconds"),
        ("frobnicate", None),
    ],
)
def test_an_unknown_name_is_refused(name: str, meant: str | None) -> None:
    assert similar(name) == meant
    with pytest.raises(InvalidConfiguration) as raised:
        chosen("clusterName=c", f"{name}=1")
    hint = f"; did you mean {meant}?" if meant else ""
    assert str(raised.value) == f"file:2: Pulsar has no setting {name!r}{hint}"


def test_the_names_of_a_real_configuration_are_known() -> None:
    """The file is the configuration of the Pulsar that the tests start."""
    found = read_properties(ROOT / "tests" / "real_pulsar" / "standalone.conf")
    assert found
    assert [each.name for each in found if not is_pulsars(each.name)] == []


def test_the_table_is_in_the_documentation() -> None:
    """`python tools/write_broker_table.py` writes it."""
    assert table() in (ROOT / "docs" / "broker.md").read_text(encoding="utf-8")


# --- with clients -------------------------------------------------------------------------------------------


async def test_settings_have_their_effect() -> None:
    options = chosen(
        "maxMessageSize=2048", "allowAutoTopicCreation=false", "maxProducersPerTopic=1", "clusterName=west"
    ).options
    async with open_broker(**options) as broker, open_client(broker.url) as client:
        with pytest.raises(PulsarError, match="does not exist"):
            async with client.create_producer("t"):
                pass
        broker.create_topic("t")
        async with client.create_producer("t") as producer:
            assert producer.name.startswith("west-")
            with pytest.raises(PulsarError, match="2048"):
                await producer.send(bytes(2049))
            with pytest.raises(PulsarError, match="reached max producers limit"):
                async with client.create_producer("t"):
                    pass


async def test_topics_come_with_partitions() -> None:
    options = chosen("allowAutoTopicCreationType=partitioned", "defaultNumPartitions=3").options
    async with open_broker(**options) as broker, open_client(broker.url) as client:
        async with client.create_producer("t") as producer:
            await producer.send(b"1")
        topics = [f"persistent://public/default/t-partition-{number}" for number in range(3)]
        assert sorted(broker.topics()) == topics


async def test_messages_in_batches_are_deduplicated() -> None:
    options = chosen("brokerDeduplicationEnabled=true").options
    async with open_broker(**options) as broker, open_client(broker.url) as client:
        async with client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", name="p") as producer:
                for value, sequence_id in ((b"1", 5), (b"again", 5), (b"2", 6)):
                    await producer.send(OutgoingMessage(value, sequence_id=sequence_id))
            assert [(await consumer.receive()).data for _ in range(2)] == [b"1", b"2"]


async def test_clients_are_told_the_advertised_address() -> None:
    options = chosen("advertisedAddress=localhost", "brokerServicePort=0", "webServicePort=0").options
    async with open_broker(**options) as broker:
        config = broker._driver.machine.config
        assert config.service_url == f"pulsar://localhost:{broker.port}"
        assert config.web_service_url == f"http://localhost:{broker.http_port}"
        async with open_client(broker.url) as client, client.create_producer("t") as producer:
            await producer.send(b"1")


@pytest.mark.parametrize("wrong", ["", 7])
async def test_an_advertised_host_is_a_text(wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="advertised_host: a host's name or address, not "):
        async with open_broker(advertised_host=wrong):
            pass


@pytest.mark.parametrize(
    ("policies", "told"),
    [
        ({"deduplication": True}, "deduplication is an option of its own"),
        ({"max_message_size": 5000}, "max_message_size is an option of its own"),
    ],
)
async def test_an_option_of_the_broker_is_no_default_policy(policies: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidConfiguration, match=told):
        async with open_broker(default_policies=Policies().with_policies(policies)):
            pass
    with pytest.raises(InvalidConfiguration, match="default_policies: Policies, not 3"):
        async with open_broker(default_policies=3):  # type: ignore[arg-type]
            pass


# --- the command --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "maxMessageSize"], "--set: NAME=VALUE, not 'maxMessageSize'"),
        (["--set", "=1"], "--set: NAME=VALUE with a name that is not empty"),
        (["--set", "maxMessageSize=big"], "--set: maxMessageSize: a whole number from 1024 to "),
        (["--set", "maxMesageSize=1"], "did you mean maxMessageSize?"),
        (["--conf", "FILE"], "FILE:2: keepAliveIntervalSeconds: a whole number from 1 to 315360000, not '0'"),
        (["--conf", "NONE"], "NONE cannot be read: No such file"),
    ],
)
def test_a_wrong_setting_is_one_line(
    arguments: Sequence[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "broker.conf").write_text("# mine\nkeepAliveIntervalSeconds=0\n")
    names = {"FILE": str(file), "NONE": str(tmp_path / "none")}
    assert main(["broker", *(names.get(each, each) for each in arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    for name, path in names.items():
        told = told.replace(name, path) if name in arguments else told
    assert told in line
    assert "(hint: " in line


@pytest.mark.parametrize(
    "setting",
    [
        "brokerClientAuthenticationParameters token:hidden",
        "brokerClientAuthenticationParameters:token:hidden",
        "brokerClientAuthenticationParameters:token:hidden=",
        "brokerClientAuthenticationParameter=token:hidden",
        "=hidden",
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_secret_is_not_in_an_error(
    setting: str, in_file: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file may have another separator than `=`. Its second setting is always an error."""
    (file := tmp_path / "broker.conf").write_text(f"{setting}\nbrokerDedup=hidden\n")
    given = ["--conf", str(file)] if in_file else ["--set", setting]
    assert main(["broker", *given]) == 2
    shown = capsys.readouterr()
    assert "hidden" not in shown.out + shown.err


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
async def test_the_command_obeys_file_and_options(as_json: bool, tmp_path: Path) -> None:
    """`--port` goes before `--set`, which goes before the file."""
    (file := tmp_path / "broker.conf").write_text(
        "brokerServicePort=1\nwebServicePort=1\nmaxMessageSize=1024\nclusterName=west\nnumIOThreads=3\n"
    )
    command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--conf", str(file)]
    command += ["--set", "webServicePort=0", "--set", "maxMessageSize=2048", "--port", "0"]
    with trio.fail_after(PATIENCE):
        process = await trio.lowlevel.open_process(
            [*command, *(["--json"] if as_json else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        output = b""
        while output.count(b"\n") < (1 if as_json else 2):
            output += await process.stdout.receive_some(10_000)
        ready = json.loads(output) if as_json else {"url": output.decode().split()[1]}
        async with open_client(ready["url"]) as client, client.create_producer("t") as producer:
            assert producer.name.startswith("west-")
            with pytest.raises(PulsarError, match="2048"):
                await producer.send(bytes(2049))
        process.terminate()
        assert await process.wait() == 0
        told = (await process.stderr.receive_some(10_000)).decode()
    if as_json:
        assert ready["ignored"] == ["numIOThreads"]
        assert told == ""
    else:
        assert told == "ignored, because this broker has no such setting: numIOThreads\n"
