"""What Pulsar's REST API has and this broker has not: answered with 501 and its name, never with silence."""

from .routes import Route, not_implemented

_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
_SUBSCRIPTION = f"{_TOPIC}/subscription/{{subscription}}"

_OF_TOPICS = {
    "properties": "PUT DELETE",
    "internal-info": "GET",
    "backlog": "GET",
    "backlogSize": "PUT",
    "messageid/{timestamp}": "GET",
    "getMessageIdByIndex": "GET",
    "examinemessage": "GET",
    "ledger/{ledger}/entry/{entry}": "GET",
    "offload": "GET PUT",
    "truncate": "DELETE",
    "trim": "POST",
    "createMissedPartitions": "POST",
    "permissions": "GET",
    "permissions/{role}": "POST DELETE",
    "maxSubscriptionsPerTopic": "GET POST DELETE",
    "publishRate": "GET POST DELETE",
    "dispatchRate": "GET POST DELETE",
    "subscriptionDispatchRate": "GET POST DELETE",
    "subscribeRate": "GET POST DELETE",
    "replicatorDispatchRate": "GET POST DELETE",
    "persistence": "GET POST DELETE",
    "inactiveTopicPolicies": "GET POST DELETE",
    "offloadPolicies": "GET POST DELETE",
    "subscriptionTypesEnabled": "GET POST DELETE",
    "deduplicationSnapshotInterval": "GET POST DELETE",
    "schemaCompatibilityStrategy": "GET PUT DELETE",
    "schemaValidationEnforced": "GET POST DELETE",
    "entryFilters": "GET POST DELETE",
    "autoSubscriptionCreation": "GET POST DELETE",
    "shadowTopics": "GET PUT DELETE",
    "replication": "GET POST DELETE",
}

_OF_SUBSCRIPTIONS = {
    "replicatedSubscriptionStatus": "GET POST",
}

_OF_NAMESPACES = {
    "{bundle}/split": "PUT",
    "schemaCompatibilityStrategy": "GET PUT",
    "isAllowAutoUpdateSchema": "GET POST",
    "schemaValidationEnforced": "GET POST",
    "subscriptionTypesEnabled": "GET POST DELETE",
    "publishRate": "GET POST DELETE",
    "dispatchRate": "GET POST DELETE",
    "subscriptionDispatchRate": "GET POST DELETE",
    "subscribeRate": "GET POST DELETE",
    "replicatorDispatchRate": "GET POST DELETE",
    "maxSubscriptionsPerTopic": "GET POST DELETE",
    "maxTopicsPerNamespace": "GET POST DELETE",
    "inactiveTopicPolicies": "GET POST DELETE",
    "persistence": "GET POST DELETE",
    "subscriptionExpirationTime": "GET POST DELETE",
    "deduplicationSnapshotInterval": "GET POST DELETE",
    "replication": "GET POST DELETE",
    "offloadPolicies": "GET POST DELETE",
    "entryFilters": "GET POST DELETE",
    "permissions": "GET",
    "permissions/{role}": "POST DELETE",
    "properties": "GET PUT DELETE",
    "property/{key}": "GET DELETE",
    "property/{key}/{value}": "PUT",
}

_OF_SCHEMAS = {
    "schema": "GET POST DELETE",
    "schema/{version}": "GET",
    "schemas": "GET",
    "metadata": "GET",
    "compatibility": "POST",
    "version": "POST",
}

_OTHERS = {
    "/admin/v2/clusters/{cluster}": "POST DELETE",
    "/admin/v2/brokers/configuration": "GET",
    "/admin/v2/brokers/configuration/{name}": "DELETE",
    "/admin/v2/brokers/configuration/{name}/{value}": "POST",
    "/admin/v2/brokers/configuration/runtime": "GET",
    "/admin/v2/brokers/internal-configuration": "GET",
    "/admin/v2/broker-stats/metrics": "GET",
    "/admin/v2/broker-stats/topics": "GET",
    "/admin/v2/broker-stats/load-report": "GET",
    "/admin/v2/broker-stats/mbeans": "GET",
    "/admin/v2/broker-stats/allocator-stats/{allocator}": "GET",
    "/admin/v3/transactions/coordinators": "GET",
    "/admin/v3/transactions/coordinatorStats": "GET",
    "/admin/v3/transactions/transactionMetadata/{most}/{least}": "GET",
    "/admin/v3/transactions/slowTransactions/{timeout}": "GET",
    "/admin/v3/transactions/transactionBufferStats/{tenant}/{namespace}/{topic}": "GET",
    "/admin/v3/transactions/pendingAckStats/{tenant}/{namespace}/{topic}/{subscription}": "GET",
    "/admin/v3/transactions/coordinatorInternalStats/{coordinator}": "GET",
    "/admin/v3/transactions/abortTransaction/{most}/{least}": "POST",
    "/admin/v3/transactions/transactionCoordinator/replicas": "POST",
    "/topics/{domain}/{tenant}/{namespace}/{topic}": "POST",
    "/topics/{domain}/{tenant}/{namespace}/{topic}/partitions/{partition}": "POST",
    "/metrics": "GET",
}


def _routes() -> list[Route]:
    routes: list[Route] = []
    for prefix, paths in (
        (f"{_TOPIC}/", _OF_TOPICS),
        (f"{_SUBSCRIPTION}/", _OF_SUBSCRIPTIONS),
        (f"{_NAMESPACE}/", _OF_NAMESPACES),
        (f"{_SCHEMAS}/", _OF_SCHEMAS),
        ("", _OTHERS),
    ):
        for path, methods in paths.items():
            whole = f"{prefix}{path}"
            for domain in ("persistent", "non-persistent") if "{domain}" in whole else ("",):
                each = whole.replace("{domain}", domain)
                routes += [(method, each, not_implemented(whole)) for method in methods.split()]
    return routes


ROUTES = _routes()
