"""The broker machines: a real, small, single-node Pulsar broker without a socket.

`Broker` is the root, `outputs` are its outputs, and `storage.store` is the state that survives it. Nothing
here imports the client.
"""

from . import outputs, records
from .admin_errors import AlreadyExists, InUse, LimitReached, NotApplicable, NotFound
from .administration.admin import ACTIONS, TOO_LARGE
from .administration.inspection import StatsOptions, TopicOverview
from .administration.message_admin import NewMessage
from .administration.schema_admin import SCHEMA_TYPES
from .administration.stored_message import StoredMessage
from .administration.wanted_state import WantedState
from .broker import Broker
from .config import BrokerConfig
from .faults.fault_rule import FaultKind, FaultRule
from .owner import OtherBroker, Owner
from .policies import (
    BACKLOG_QUOTA_POLICIES,
    INACTIVE_TOPIC_MODES,
    SCHEMA_STRATEGIES,
    SUBSCRIPTION_TYPES,
    BacklogQuota,
    InactiveTopics,
    MessageRate,
    Policies,
    SubscribeRate,
    SubscriptionRates,
)
from .security.basic import BasicProvider
from .security.broker_authentication import BrokerAuthentication
from .security.certificate import CertificateProvider
from .security.provider import AuthenticationProvider, Challenge, Identity
from .storage.store import (
    EntryReader,
    MemoryStore,
    SpecialEntry,
    Store,
    StoredLedger,
    StoredPage,
    StoredState,
    StoredTopic,
    StoredTransaction,
    UnreadEntries,
)

__all__ = [
    "ACTIONS",
    "BACKLOG_QUOTA_POLICIES",
    "INACTIVE_TOPIC_MODES",
    "SCHEMA_STRATEGIES",
    "SCHEMA_TYPES",
    "SUBSCRIPTION_TYPES",
    "TOO_LARGE",
    "AlreadyExists",
    "AuthenticationProvider",
    "BasicProvider",
    "BrokerAuthentication",
    "CertificateProvider",
    "Challenge",
    "Identity",
    "BacklogQuota",
    "InactiveTopics",
    "MessageRate",
    "SubscribeRate",
    "SubscriptionRates",
    "Broker",
    "BrokerConfig",
    "OtherBroker",
    "FaultKind",
    "FaultRule",
    "LimitReached",
    "MemoryStore",
    "NotFound",
    "Owner",
    "Policies",
    "StatsOptions",
    "InUse",
    "Store",
    "EntryReader",
    "SpecialEntry",
    "StoredLedger",
    "StoredPage",
    "UnreadEntries",
    "StoredMessage",
    "StoredState",
    "StoredTopic",
    "StoredTransaction",
    "TopicOverview",
    "WantedState",
    "NewMessage",
    "NotApplicable",
    "outputs",
    "records",
]
