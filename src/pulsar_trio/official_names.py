"""The names of the official Python client (`pulsar-client`), and the names of the same things here.

Programs are written from habit, and moved from one client to another. A program that uses a name of that
client gets an error with our name. A value of these tables is one of our names, or a clause for the error.
The names of messages stand beside `pulsar_sansio.Message`.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from pulsar_sansio import WrongArguments, did_you_mean

_HANDLER = "await consumer.run(handler) calls an async function for each message"
_SECONDS_HERE = "in seconds here"

OPTIONS: dict[str, dict[str, str]] = {
    "open_client": {
        "service_url": "the URL is the first argument, 'url'",
        "operation_timeout_seconds": "operation_timeout",
        "connection_timeout_ms": f"did you mean 'connect_timeout', {_SECONDS_HERE}?",
        "stats_interval_in_seconds": "statistics_interval",
        "concurrent_lookup_requests": "max_pending_lookups",
        "io_threads": "there are no threads, everything runs in trio's",
        "message_listener_threads": "there are no threads, everything runs in trio's",
        "log_conf_file_path": "set up Python's logging of 'pulsar_trio'",
        "logger": "set up Python's logging of 'pulsar_trio'",
        "use_tls": "the scheme of the URL says it, pulsar+ssl://",
        "tls_trust_certs_file_path": "did you mean tls=TlsConfig(trust=…)?",
        "tls_allow_insecure_connection": "did you mean tls=TlsConfig(insecure_accept_any_certificate=True)?",
        "tls_validate_hostname": "did you mean tls=TlsConfig(insecure_accept_any_host=True), which does not?",
        "tls_private_key_file_path": "did you mean tls=TlsConfig(key=…)?",
        "tls_certificate_file_path": "did you mean tls=TlsConfig(certificate=…)?",
    },
    "create_producer": {
        "producer_name": "name",
        "send_timeout_millis": f"did you mean 'send_timeout', {_SECONDS_HERE}?",
        "compression_type": "compression",
        "block_if_queue_full": "when_full='wait' is the default, when_full='fail' raises ProducerQueueIsFull",
        "batching_enabled": "it batches by default, batching=None sends every message by itself",
        "batching_max_messages": "did you mean batching=BatchingPolicy(max_messages=…)?",
        "batching_max_allowed_size_in_bytes": "did you mean batching=BatchingPolicy(max_bytes=…)?",
        "batching_max_publish_delay_ms": "did you mean batching=BatchingPolicy(max_delay=…), in seconds?",
        "batching_type": "did you mean batching=BatchingPolicy(by_key=True)?",
        "chunking_enabled": "did you mean chunking=True, which needs batching=None?",
        "message_routing_mode": "routing",
        "message_router": "did you mean 'routing', which may be a function?",
        "lazy_start_partitioned_producers": "lazy_start",
        "encryption_key": "did you mean encryption_keys=(name,)?",
    },
    "subscribe": {
        "subscription_name": "subscription",
        "consumer_type": "did you mean kind='shared', 'key_shared', 'exclusive' or 'failover'?",
        "message_listener": _HANDLER,
        "max_total_receiver_queue_size_across_partitions": "max_total_receiver_queue_size",
        "unacked_messages_timeout_ms": f"did you mean 'acknowledgement_timeout', {_SECONDS_HERE}?",
        "broker_consumer_stats_cache_time_ms": "consumer.statistics() is always up to date",
        "negative_ack_redelivery_delay_ms": (
            f"did you mean 'negative_acknowledgement_delay', {_SECONDS_HERE}?"
        ),
        "is_read_compacted": "read_compacted",
        "is_regex": "did you mean a compiled pattern, or a TopicsPattern, as the topic?",
        "pattern_auto_discovery_period": "did you mean TopicsPattern(…, discovery_interval=…) as the topic?",
        "regex_subscription_mode": "did you mean TopicsPattern(…, TopicDomain.ALL) as the topic?",
        "replicate_subscription_state_enabled": "replicate_subscription_state",
        "max_pending_chunked_message": "max_pending_chunked_messages",
        "auto_ack_oldest_chunked_message_on_queue_full": "acknowledge_dropped_chunks",
        "batch_receive_policy": "did you mean batch_receive=BatchReceivePolicy(…)?",
        "key_shared_policy": "did you mean key_shared=KeySharedPolicy(…)?",
        "batch_index_ack_enabled": "batch_index_acknowledgement",
        "dead_letter_policy": "did you mean dead_letter=DeadLetterPolicy(…)?",
    },
    "create_reader": {
        "start_message_id": "start",
        "reader_listener": "did you mean 'async for message in reader'?",
        "reader_name": "name",
        "subscription_name": "subscription",
        "subscription_role_prefix": "subscription_prefix",
        "is_read_compacted": "read_compacted",
        "start_message_id_inclusive": "start_inclusive",
    },
    "create_table_view": {
        "subscription_name": "subscription_prefix",
    },
    "send": {
        "content": "the payload is the first argument",
        "partition_key": "key",
        "event_timestamp": "event_time",
        "replication_clusters": "replicate_to",
        "disable_replication": "did you mean replicate_to=NO_REPLICATION?",
        "callback": "write: receipt = await producer.enqueue(…), and later await receipt.wait()",
    },
}
"""Names of keyword arguments, by function."""

CLIENT = {
    "close": "leave the 'async with' block, or await client.aclose()",
    "shutdown": "leave the 'async with' block, or await client.aclose()",
    "get_topic_partitions": "did you mean await client.partitions(topic)?",
    "get_service_info": "the URL is the one that open_client was given",
    "producer": "create_producer",
    "consumer": "subscribe",
    "reader": "create_reader",
    "new_transaction": "did you mean async with client.transaction(timeout=seconds) as transaction?",
}
PRODUCER = {
    "close": "leave the 'async with' block, or await producer.aclose()",
    "send_async": "write: receipt = await producer.enqueue(…), and later await receipt.wait()",
    "producer_name": "name",
    "is_connected": "connected",
}
CONSUMER = {
    "close": "leave the 'async with' block, or await consumer.aclose()",
    "batch_receive": "did you mean await consumer.receive_many()?",
    "acknowledge_cumulative": "only consumers of kind 'exclusive' and 'failover' have it",
    "reconsume_later_cumulative": "only consumers of kind 'exclusive' and 'failover' have it",
    "acknowledge_async": "acknowledge is a plain call, which does not wait",
    "ack": "acknowledge",
    "nack": "negative_acknowledge",
    "subscription_name": "subscription",
    "consumer_name": "it is the one that subscribe(consumer_name=…) was given",
    "is_connected": "connected",
    "get_last_message_id": "did you mean await consumer.last_message_id()?",
    "pause_message_listener": "pause",
    "resume_message_listener": "resume",
    "redeliver_unacknowledged_messages": "redeliver_unacknowledged",
}
READER = {
    "close": "leave the 'async with' block, or await reader.aclose()",
    "read_next": "did you mean await reader.receive(), or 'async for message in reader'?",
    "is_connected": "connected",
    "get_last_message_id": "did you mean await reader.last_message_id()?",
}
TABLE_VIEW = {
    "close": "leave the 'async with' block, or await view.aclose()",
    "for_each": "did you mean 'for key, value in view.items()'?",
    "for_each_and_listen": "did you mean 'async for key, value in view.changes()'?",
}
"""Names of attributes, by class."""

MODULE = {
    "ConsumerType": "did you mean the words 'shared', 'key_shared', 'exclusive' and 'failover'?",
    "ConsumerDeadLetterPolicy": "DeadLetterPolicy",
    "ConsumerBatchReceivePolicy": "BatchReceivePolicy",
    "ConsumerKeySharedPolicy": "KeySharedPolicy",
    "KeySharedMode": "KeySharedPolicy",
    "BatchingType": "did you mean batching=BatchingPolicy(by_key=True)?",
    "PartitionsRoutingMode": "did you mean the words 'round_robin' and 'single_partition'?",
    "RegexSubscriptionMode": "TopicDomain",
    "PulsarException": "PulsarError",
    "Timeout": "with trio.fail_after(seconds) raises trio.TooSlowError",
    "AlreadyClosed": "ResourceClosed",
    "AuthenticationAthenz": "AthenZ is not supported yet, a subclass of Authentication brings its tokens",
    "AuthenticationBasic": "Basic",
    "AuthenticationOauth2": "OAuth2",
    "AuthenticationTLS": "MutualTls",
    "AuthenticationToken": "Token",
    "AutoClusterFailover": "AutoFailover",
    "ServiceInfoProvider": (
        "providers of an application's own are not supported yet, there are ControlledFailover and "
        "client.update_service_url(url)"
    ),
    "CryptoKeyReader": (
        "did you mean crypto_key_reader=Path(…)? A producer reads public keys there, a consumer private ones"
    ),
    "schema": "did you mean pulsar_sansio.schemas?",
}
"""Names of the module."""

WORDS = {
    "uncompressed": "none",
    "roundrobindistribution": "round_robin",
    "usesinglepartition": "single_partition",
    "javastringhash": "java_string",
    "murmur332hash": "murmur3_32",
    "boosthash": "boost",
}
"""Values of enumerations, in lower case without underscores."""


def wrong_argument(function: str, name: str, allowed: Iterable[str]) -> WrongArguments:
    """The error for a keyword argument that the function does not have."""
    known = sorted(allowed)
    hint = OPTIONS.get(function, {}).get(name)
    if hint is None:
        close = get_close_matches(name, known, n=1)
        hint = close[0] if close else f"there are {', '.join(known)}"
    return WrongArguments(f"{function}: there is no option {name!r}; {did_you_mean(hint)}")


def no_timeout(given: object) -> WrongArguments:
    """The error for a call that waits and was given milliseconds."""
    return WrongArguments(
        f"receive: there is no timeout, not even of {given!r}; write: with trio.move_on_after(seconds): …"
    )


def word_meant(given: object, words: Iterable[str]) -> str:
    """The end of an error's text: the word that a wrong value, perhaps a member of another client's
    enumeration, seems to stand for; empty where none is near."""
    name = given if isinstance(given, str) else getattr(given, "name", None)
    if not isinstance(name, str):
        return ""
    plain = name.lower().replace("_", "").replace("-", "").replace(" ", "")
    by_plain = {word.replace("_", ""): word for word in words}
    meant = WORDS.get(plain, by_plain.get(plain))
    if meant is None:
        close = get_close_matches(plain, by_plain, n=1)
        meant = by_plain[close[0]] if close else None
    return "" if meant is None or meant == given else f"; did you mean {meant!r}?"
