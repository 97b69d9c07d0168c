"""Settings of the broker under Pulsar's own names, those of `broker.conf` and `standalone.conf`.

`SETTINGS` lists all of them. Each name has the keyword of `open_broker`, the policy or the part of one that
it sets, its values, and its unit. The table in `docs/broker.md` is written from it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pulsar_sansio import (
    BACKLOG_QUOTA_POLICIES,
    INACTIVE_TOPIC_MODES,
    SCHEMA_STRATEGIES,
    SUBSCRIPTION_TYPES,
    InvalidConfiguration,
    Policies,
    Secret,
)
from pulsar_security import ServerTls

from ..properties import Property, shown
from .identity import (
    AUTHORIZATION,
    KEY_FORMS,
    PUBLIC_ALGORITHMS,
    authentication,
    read_providers,
    read_roles,
)
from .policies import MEGABYTE, broker_rates, record_policies
from .pulsar_names import NAMES, is_pulsars

MANY = 2**31 - 1
"""The most that a Java `int` holds, as most of Pulsar's numbers are. It stands for no limit, too."""

TEN_YEARS = 10 * 365 * 86_400
"""Seconds: the longest time that the broker takes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One of Pulsar's names.

    `sets`: a keyword of `open_broker`, `policy NAME` for one of `Policies`, `identity NAME` for a keyword of
    `BrokerAuthentication`, or `part NAME` for what only several settings together make. `read` makes the
    value from the text. It raises `ValueError` or `KeyError` where the text is not `allowed`, and
    `InvalidConfiguration` where it can say more. `note` is for people: unit and peculiarities.
    """

    sets: str
    read: Callable[[str], object]
    allowed: str
    note: str = ""


def _flag(sets: str, note: str = "") -> Setting:
    return Setting(sets, _read_flag, "true or false", note)


def _read_flag(text: str) -> bool:
    """Java takes any case."""
    return {"true": True, "false": False}[text.lower()]


def _read_ciphers(text: str) -> str | None:
    """OpenSSL separates names by colons, and has no choice among the ciphers of TLS 1.3."""
    names = [name.strip() for name in text.split(",")]
    older = [name for name in names if name and not name.startswith(("TLS_AES_", "TLS_CHACHA20_"))]
    return ":".join(older) or None


def _number(
    sets: str, least: int, most: int, note: str = "", *, factor: float = 1, unlimited: int | None = None
) -> Setting:
    """`factor`: Pulsar's unit in ours; a value below 0 is no quantity and stays as it is.

    `unlimited`: our value where Pulsar's is 0.
    """

    def read(text: str) -> float:
        value = int(text)
        if not least <= value <= most or "_" in text:  # Python takes 1_000
            raise ValueError
        if unlimited is not None and value == 0:
            return unlimited
        return value if value < 0 else value * factor

    return Setting(sets, read, f"a whole number from {least} to {most}", note)


def _text(sets: str, note: str = "") -> Setting:
    return Setting(sets, str, "a text", note)


def _one_of(sets: str, words: Iterable[str], note: str = "") -> Setting:
    by_word = {word: word for word in words}
    return Setting(sets, by_word.__getitem__, " or ".join(by_word), note)


def _several_of(sets: str, words: Iterable[str], note: str = "") -> Setting:
    """Words between commas, in the order of `words`."""
    known = tuple(words)

    def read(text: str) -> tuple[str, ...]:
        given = {word.strip() for word in text.split(",")}
        if not given <= set(known):
            raise ValueError
        return tuple(word for word in known if word in given)

    return Setting(sets, read, f"one or more of {', '.join(known)}, with commas between them", note)


def _roles(sets: str, note: str) -> Setting:
    return Setting(sets, read_roles, "roles, with commas between them", note)


def _key(sets: str, note: str = "") -> Setting:
    return Setting(sets, Secret, KEY_FORMS, note)


def _rate(part: str, most: int) -> Setting:
    return _number(f"part {part}", 0, most, "each second; 0 is no limit")


def _seconds(sets: str, least: int, note: str) -> Setting:
    return _number(sets, least, TEN_YEARS, f"seconds; {note}" if note else "seconds")


def _milliseconds(sets: str, least: int, note: str = "") -> Setting:
    return _number(sets, least, MANY, f"milliseconds{note}", factor=0.001)


HOUSEKEEPING = "part housekeeping_interval"
SHORTEST = "the shortest of the five intervals counts for all that time alone brings about"

SETTINGS: dict[str, Setting] = {
    # addresses to listen on, and the name of the broker
    "brokerServicePort": _number("port", 0, 65535, "0 is a free one"),
    "webServicePort": _number("http_port", 0, 65535, "0 is a free one"),
    "brokerServicePortTls": _number("tls_port", 0, 65535, "pulsar+ssl://; 0 is a free one"),
    "webServicePortTls": _number("https_port", 0, 65535, "0 is a free one"),
    "bindAddress": _text("host", "address to listen on; 127.0.0.1 where nothing says another"),
    "advertisedAddress": _text("advertised_host", "host that lookups answer with"),
    "clusterName": _text("cluster"),
    # TLS
    "tlsCertificateFilePath": _text("part tls_certificate", "PEM file, with the chain"),
    "tlsKeyFilePath": _text("part tls_key", "PEM file"),
    "tlsTrustCertsFilePath": _text("part tls_trust", "PEM file: the authorities of clients' certificates"),
    "tlsRequireTrustedClientCertOnConnect": _flag("part tls_require_client_certificate"),
    "tlsCiphers": Setting(
        "part tls_ciphers", _read_ciphers, "a text", "OpenSSL's names of TLS 1.2, with commas between them"
    ),
    # authentication and authorization
    "authenticationEnabled": _flag("part authentication", "the settings of this group count only when true"),
    "authenticationProviders": Setting(
        "part providers",
        read_providers,
        "class names of Pulsar's providers Tls, Token and Basic, with commas between them",
    ),
    "tokenSecretKey": _key("part token_secret_key", "goes before tokenPublicKey"),
    "tokenPublicKey": _key("part token_public_key", "DER or PEM"),
    "tokenPublicAlg": _one_of("part token_algorithm", PUBLIC_ALGORITHMS, "has to suit the public key"),
    "tokenAuthClaim": _text("part token_claim"),
    "tokenAudienceClaim": _text("part token_audience_claim", "together with tokenAudience"),
    "tokenAudience": _text("part token_audience", "together with tokenAudienceClaim"),
    "basicAuthConf": _key("part passwords", "a file of htpasswd"),
    "pulsar.auth.basic.conf": _key(
        "part passwords_property", "Java's system property; basicAuthConf goes before it"
    ),
    "superUserRoles": _roles("identity superusers", "roles that may do everything"),
    "proxyRoles": _roles("identity proxy_roles", "roles of proxies"),
    "anonymousUserRole": _text("identity anonymous_role", "the role of clients without a provider's method"),
    "authenticateOriginalAuthData": _flag(
        "identity authenticate_original", "clients behind a proxy prove their role"
    ),
    "authenticationRefreshCheckSeconds": _number(
        "identity refresh_interval", 1, 86_400, "seconds to renew credentials that have expired"
    ),
    "authorizationEnabled": _flag("identity authorization"),
    "authorizationProvider": _one_of("part authorizer", (AUTHORIZATION,)),
    "authorizationAllowWildcardsMatching": _flag(
        "identity wildcard_roles", "`*` at one end of a role in a permission"
    ),
    # connections
    "keepAliveIntervalSeconds": _seconds("keepalive_interval", 1, ""),
    "connectionLivenessCheckTimeoutMillis": _milliseconds("liveness_timeout", 1),
    "brokerMaxConnections": _number("max_connections", 0, MANY, "0 is no limit", unlimited=MANY),
    "brokerMaxConnectionsPerIp": _number("max_connections_per_address", 0, MANY, "0 is no limit"),
    "maxMessageSize": _number("max_message_size", 1024, MANY - 10_240, "bytes"),
    "maxPendingPublishRequestsPerConnection": _number("max_pending_publishes", 1, MANY),
    # topics
    "allowAutoTopicCreation": _flag("auto_topic_creation"),
    "allowAutoTopicCreationType": _one_of("part topic_type", ("non-partitioned", "partitioned")),
    "defaultNumPartitions": _number(
        "part partitions", 1, 10_000, "counts where allowAutoTopicCreationType is partitioned"
    ),
    "allowAutoSubscriptionCreation": _flag("auto_subscription_creation"),
    "maxSubscriptionsPerTopic": _number(
        "max_subscriptions_per_topic", 0, MANY, "0 is no limit", unlimited=MANY
    ),
    "maxTopicsPerNamespace": _number("max_topics_per_namespace", 0, MANY, "0 is no limit"),
    "maxNumPartitionsPerPartitionedTopic": _number("max_partitions_per_topic", 0, MANY, "0 is no limit"),
    "maxTenants": _number("max_tenants", 0, MANY, "0 is no limit"),
    "maxNamespacesPerTenant": _number("max_namespaces_per_tenant", 0, MANY, "0 is no limit"),
    "maxProducersPerTopic": _number("policy max_producers", 0, MANY, "0 is no limit"),
    "maxConsumersPerTopic": _number("policy max_consumers", 0, MANY, "0 is no limit"),
    "maxSameAddressProducersPerTopic": _number("max_producers_per_address", 0, MANY, "0 is no limit"),
    "maxSameAddressConsumersPerTopic": _number("max_consumers_per_address", 0, MANY, "0 is no limit"),
    "maxConsumersPerSubscription": _number("policy max_consumers_per_subscription", 0, MANY, "0 is no limit"),
    "encryptionRequireOnProducer": _flag("policy encryption_required"),
    "maxPublishRatePerTopicInMessages": _rate("publish_messages", MANY),
    "maxPublishRatePerTopicInBytes": _rate("publish_size", 2**63 - 1),
    "brokerPublisherThrottlingMaxMessageRate": _rate("broker_publish_messages", MANY),
    "brokerPublisherThrottlingMaxByteRate": _rate("broker_publish_size", 2**63 - 1),
    "brokerDeleteInactiveTopicsEnabled": _flag(
        "part inactive_delete", "a Java broker has true where nothing says so, this one false"
    ),
    "brokerDeleteInactiveTopicsMode": _one_of("part inactive_mode", INACTIVE_TOPIC_MODES),
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": _number(
        "part inactive_seconds", 0, MANY, "seconds without use; 60 where nothing says another"
    ),
    "brokerDeleteInactiveTopicsFrequencySeconds": _seconds(HOUSEKEEPING, 1, SHORTEST),
    # deduplication
    "brokerDeduplicationEnabled": _flag("deduplication"),
    "brokerDeduplicationProducerInactivityTimeoutMinutes": _number(
        "deduplication_inactivity", 0, TEN_YEARS // 60, "minutes", factor=60
    ),
    "brokerDeduplicationMaxNumberOfProducers": _number("deduplication_max_producers", 1, MANY),
    # storage
    "managedLedgerMaxEntriesPerLedger": _number("ledger_max_entries", 1, MANY),
    "managedLedgerMaxSizePerLedgerMbytes": _number(
        "ledger_max_bytes", 1, 2**20, "megabytes", factor=MEGABYTE
    ),
    "managedLedgerMaxLedgerRolloverTimeMinutes": _number(
        "ledger_max_time", 1, TEN_YEARS // 60, "minutes", factor=60
    ),
    "managedLedgerMinLedgerRolloverTimeMinutes": _number(
        "ledger_min_time", 0, TEN_YEARS // 60, "minutes; 0 without the setting, unlike in Pulsar", factor=60
    ),
    "managedLedgerCacheSizeMB": _number(
        "entry_cache_bytes",
        0,
        2**20,
        "megabytes; 64 without the setting",
        factor=MEGABYTE,
    ),
    "managedLedgerCursorPositionFlushSeconds": _seconds(
        "cursor_flush_interval", 0, "an acknowledgement that is not confirmed may wait as long"
    ),
    "defaultRetentionTimeInMinutes": _number(
        "policy retention_time", -1, MANY, "minutes; -1 is without limit", factor=60
    ),
    "defaultRetentionSizeInMB": _number(
        "policy retention_size", -1, MANY, "megabytes; -1 is without limit", factor=MEGABYTE
    ),
    "ttlDurationDefaultInSeconds": _number("policy message_ttl", 0, MANY, "seconds; 0 is never"),
    "backlogQuotaDefaultLimitBytes": _number(
        "part quota_bytes", -(2**63), 2**63 - 1, "below 0 is no limit; backlogQuotaDefaultLimitGB goes first"
    ),
    "backlogQuotaDefaultLimitGB": _number(
        "part quota_gigabytes", -1, 2**31, "gigabytes; 0 and below is no limit"
    ),
    "backlogQuotaDefaultLimitSecond": _number(
        "part quota_seconds", -1, MANY, "seconds; 0 and below is no limit"
    ),
    "backlogQuotaDefaultRetentionPolicy": _one_of("part quota_policy", BACKLOG_QUOTA_POLICIES),
    "brokerServiceCompactionThresholdInBytes": _number(
        "policy compaction_threshold", 0, 2**63 - 1, "bytes; 0 is never"
    ),
    "backlogQuotaCheckIntervalInSeconds": _seconds(HOUSEKEEPING, 1, SHORTEST),
    "retentionCheckIntervalInSeconds": _seconds(HOUSEKEEPING, 1, SHORTEST),
    "messageExpiryCheckIntervalInMinutes": _number(
        HOUSEKEEPING, 1, TEN_YEARS // 60, f"minutes; {SHORTEST}", factor=60
    ),
    "brokerServiceCompactionMonitorIntervalInSeconds": _seconds(HOUSEKEEPING, 1, SHORTEST),
    # subscriptions
    "transactionCoordinatorEnabled": Setting(
        "transaction_coordinators",
        lambda text: 1 if _read_flag(text) else 0,
        "true or false",
        "true without the setting, unlike in Pulsar; one coordinator",
    ),
    "maxActiveTransactionsPerCoordinator": _number(
        "max_transactions", 0, MANY, "0 is no limit", unlimited=MANY
    ),
    "acknowledgmentAtBatchIndexLevelEnabled": _flag("batch_index_acknowledgement"),
    "maxUnackedMessagesPerConsumer": _number("max_unacked_messages_per_consumer", 0, MANY, "0 is no limit"),
    "maxUnackedMessagesPerSubscription": _number(
        "max_unacked_messages_per_subscription", 0, MANY, "0 is no limit"
    ),
    "dispatchThrottlingRateInMsg": _rate("broker_dispatch_messages", MANY),
    "dispatchThrottlingRateInByte": _rate("broker_dispatch_size", 2**63 - 1),
    "dispatchThrottlingRatePerTopicInMsg": _rate("dispatch_messages", MANY),
    "dispatchThrottlingRatePerTopicInByte": _rate("dispatch_size", 2**63 - 1),
    "dispatchThrottlingRatePerSubscriptionInMsg": _rate("subscription_dispatch_messages", MANY),
    "dispatchThrottlingRatePerSubscriptionInByte": _rate("subscription_dispatch_size", 2**63 - 1),
    "subscribeThrottlingRatePerConsumer": _number("part subscribe_number", 0, MANY, "0 is no limit"),
    "subscribeRatePeriodPerConsumerInSecond": _number("part subscribe_period", 1, MANY, "seconds"),
    "schemaCompatibilityStrategy": _one_of("policy schema_compatibility", SCHEMA_STRATEGIES),
    "isAllowAutoUpdateSchemaEnabled": _flag("policy schema_auto_update"),
    "isSchemaValidationEnforced": _flag("policy schema_validation_enforced"),
    "subscriptionTypesEnabled": _several_of("policy subscription_types", SUBSCRIPTION_TYPES),
    "subscriptionExpirationTimeMinutes": _number(
        "policy subscription_expiration", 0, TEN_YEARS // 60, "minutes; 0 is never", factor=60
    ),
    "activeConsumerFailoverDelayTimeMillis": _milliseconds("failover_delay", 0),
    "dispatcherMaxRoundRobinBatchSize": _number("entries_per_turn", 1, MANY, "entries"),
    "keySharedLookAheadMsgInReplayThresholdPerSubscription": _number(
        "key_shared_look_ahead", 0, MANY, "entries; 0 is no limit", unlimited=MANY
    ),
    "subscriptionKeySharedUseConsistentHashing": _flag("key_shared_consistent_hashing"),
    "delayedDeliveryEnabled": _flag("delayed_delivery"),
    "delayedDeliveryTickTimeMillis": _milliseconds("delayed_delivery_tick", 0),
    "isDelayedDeliveryDeliverAtTimeStrict": _flag("delayed_delivery_strict"),
    "delayedDeliveryMaxDelayInMillis": _milliseconds("policy delayed_delivery_max", 0, "; 0 is no limit"),
    "enableBrokerSideSubscriptionPatternEvaluation": _flag("topic_list_watcher"),
}

REFUSED = {
    "authenticateMetricsEndpoint": ("false", "this broker serves /metrics to every client"),
    "tokenSettingPrefix": ("empty", "this broker knows the names of tokens without a prefix only"),
}
"""Settings with the only value that this broker takes, and the reason. A broker that ignored another value
would admit clients that its administrator believes to be kept out."""


@dataclass(slots=True)
class Chosen:
    """The outcome of settings.

    `options`: keywords of `open_broker`. `ignored`: Pulsar's settings that this broker has not, each once.
    """

    options: dict[str, Any] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


def choose(given: Iterable[Property]) -> Chosen:
    """Translate settings into options of the broker. If a name is given twice, the last value counts.

    An empty value leaves a setting as it is, as in Pulsar. Raises `InvalidConfiguration`, which says where a
    setting was given and what is allowed. Faults are a name that neither Pulsar nor this broker has, a value
    that is not allowed, settings of authentication that contradict each other, and a key that cannot be used.
    """
    chosen = Chosen()
    last = {each.name: each for each in given if _known(each)}
    values: dict[str, Any] = {}
    intervals: list[float] = []
    for name, each in last.items():
        if not each.value:
            continue
        setting = SETTINGS.get(name)
        if setting is None:
            allowed, reason = REFUSED.get(name, ("", ""))
            if reason and each.value.lower() != allowed:
                raise InvalidConfiguration(
                    f"{each.where}: {name}: {allowed}, not {each.value!r:.100}: {reason}"
                )
            chosen.ignored.append(name)
        elif setting.sets == HOUSEKEEPING:
            intervals.append(_value(setting, each))
        else:
            values[setting.sets] = _value(setting, each)
    if intervals:
        chosen.options["housekeeping_interval"] = min(intervals)
    _put_together(values, chosen.options, last)
    return chosen


def _known(given: Property) -> bool:
    """Raises `InvalidConfiguration` for a name that is neither Pulsar's nor ours."""
    if given.name in SETTINGS or is_pulsars(given.name):
        return True
    meant = similar(given.name)
    hint = f"; did you mean {meant}?" if meant else ""
    raise InvalidConfiguration(f"{given.where}: Pulsar has no setting {shown(given.name)}{hint}")


def similar(name: str) -> str | None:
    """The setting that was probably meant. The keywords of `open_broker` are understood, too."""

    def plain(text: str) -> str:
        return text.replace("_", "").replace("-", "").replace(".", "").lower()

    candidates = {plain(each): each for each in sorted(NAMES)}
    candidates |= {plain(setting.sets.split(" ")[-1]): each for each, setting in SETTINGS.items()}
    candidates |= {plain(each): each for each in SETTINGS}
    found = get_close_matches(plain(name), candidates, n=1, cutoff=0.75)
    return candidates[found[0]] if found else None


def _value(setting: Setting, given: Property) -> Any:
    try:
        return setting.read(given.value)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{given.where}: {given.name}: {error}") from None
    except (ValueError, KeyError):
        raise InvalidConfiguration(
            f"{given.where}: {given.name}: {setting.allowed}, not {given.value!r:.100}"
        ) from None


def _put_together(values: dict[str, Any], options: dict[str, Any], given: dict[str, Property]) -> None:
    """Sort what was read into keywords, policies, and parts of either."""
    policies: dict[str, object] = {}
    identity: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for sets, value in values.items():
        kind, _, name = sets.rpartition(" ")
        {"": options, "policy": policies, "identity": identity, "part": parts}[kind][name] = value
    if parts.get("topic_type") == "partitioned":
        options["auto_topic_partitions"] = parts.get("partitions", 1)
    if "topic_type" in parts and parts["topic_type"] != "partitioned":
        options["auto_topic_partitions"] = 0
    _put_tls_together(parts, options)
    guard = authentication(parts, identity, given)
    if guard is not None:
        options["authentication"] = guard
    options |= broker_rates(parts)
    policies |= record_policies(parts)
    if policies:
        options["default_policies"] = Policies().with_policies(policies)


def _put_tls_together(parts: dict[str, Any], options: dict[str, Any]) -> None:
    if "tls_certificate" in parts:
        options["tls"] = ServerTls(
            parts["tls_certificate"],
            parts.get("tls_key"),
            trust=parts.get("tls_trust"),
            require_client_certificate=parts.get("tls_require_client_certificate", False),
            ciphers=parts.get("tls_ciphers"),
        )


def table() -> str:
    """The settings as a table in Markdown."""
    rows = ["| Pulsar's name | `open_broker` | values | |", "| --- | --- | --- | --- |"]
    for name, setting in SETTINGS.items():
        rows.append(f"| `{name}` | {_described(setting.sets)} | {setting.allowed} | {setting.note} |")
    return "\n".join(rows)


_PARTS = {
    "tls_certificate": "`tls=ServerTls(certificate=…)`",
    "tls_key": "`tls=ServerTls(key=…)`",
    "tls_trust": "`tls=ServerTls(trust=…)`",
    "tls_require_client_certificate": "`tls=ServerTls(require_client_certificate=…)`",
    "tls_ciphers": "`tls=ServerTls(ciphers=…)`",
    "authentication": "`authentication=BrokerAuthentication(…)`",
    "providers": "`BrokerAuthentication(providers=…)`",
    "token_secret_key": "`TokenProvider(secret_key=…)`",
    "token_public_key": "`TokenProvider(public_key=…)`",
    "token_algorithm": "`TokenProvider`",
    "token_claim": "`TokenProvider(claim=…)`",
    "token_audience_claim": "`TokenProvider(audience_claim=…)`",
    "token_audience": "`TokenProvider(audience=…)`",
    "passwords": "`HtpasswdFile(…)`, `BasicProvider(…)`",
    "passwords_property": "`HtpasswdFile(…)`, `BasicProvider(…)`",
    "authorizer": "`BrokerAuthentication(authorization=…)`",
    "topic_type": "`auto_topic_partitions`",
    "partitions": "`auto_topic_partitions`",
    "quota_bytes": "policy `backlog_quota_size`",
    "quota_gigabytes": "policy `backlog_quota_size`",
    "quota_seconds": "policy `backlog_quota_time`",
    "quota_policy": "both backlog quotas",
    "broker_publish_messages": "`broker_publish_rate`",
    "broker_publish_size": "`broker_publish_rate`",
    "broker_dispatch_messages": "`broker_dispatch_rate`",
    "broker_dispatch_size": "`broker_dispatch_rate`",
    "publish_messages": "policy `publish_rate`",
    "publish_size": "policy `publish_rate`",
    "dispatch_messages": "policy `dispatch_rate`",
    "dispatch_size": "policy `dispatch_rate`",
    "subscription_dispatch_messages": "policy `subscription_dispatch_rate`",
    "subscription_dispatch_size": "policy `subscription_dispatch_rate`",
    "subscribe_number": "policy `subscribe_rate`",
    "subscribe_period": "policy `subscribe_rate`",
    "inactive_delete": "policy `inactive_topics`",
    "inactive_mode": "policy `inactive_topics`",
    "inactive_seconds": "policy `inactive_topics`",
    "housekeeping_interval": "`housekeeping_interval`",
}


def _described(sets: str) -> str:
    kind, _, name = sets.rpartition(" ")
    if kind == "part":
        return _PARTS[name]
    if kind == "identity":
        return f"`BrokerAuthentication({name}=…)`"
    return f"policy `{name}`" if kind else f"`{name}`"
