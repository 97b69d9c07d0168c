"""Breaking the rules of questions and answers."""

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, Script


def _lookup(s: Script, authoritative: bool = False) -> int:
    return s.ask(c.LOOKUP, topic=TOPIC, authoritative=authoritative)


def _redirect(s: Script, request_id: int) -> None:
    s.broker(
        c.LOOKUP_RESPONSE,
        request_id=request_id,
        response=proto.CommandLookupTopicResponse.Redirect,
        authoritative=True,
        brokerServiceUrl="pulsar://other:6650",
    )


@breaks("CHECK-14")
def an_id_that_is_outstanding(s: Script) -> None:
    s.connect()
    s.client(c.PRODUCER, topic=TOPIC, producer_id=0, request_id=1, user_provided_producer_name=False)
    s.client(c.LOOKUP, topic=TOPIC, request_id=1)  # the lookups' numbers are others
    s.client(c.SUBSCRIBE, topic=TOPIC, subscription="s", subType=0, consumer_id=0, request_id=1)


@breaks("CONN-07")
def an_answer_to_nothing(s: Script) -> None:
    s.connect()
    s.success(1)


@breaks("CONN-07")
def an_error_about_nothing(s: Script) -> None:
    s.connect()
    s.error(s.open_producer())
    s.error(1)


@breaks("CONN-18")
def an_answer_that_comes_twice(s: Script) -> None:
    s.connect()
    request_id = s.subscribe()
    s.success(request_id)
    s.success(request_id)


@breaks("CONN-18")
def an_error_after_success(s: Script) -> None:
    s.connect()
    request_id = s.open_producer()
    s.producer_success(request_id)
    s.error(request_id)


@breaks("CHECK-15")
def success_for_a_producer(s: Script) -> None:
    s.connect()
    s.success(s.open_producer())


@breaks("CHECK-15")
def an_error_where_there_is_none(s: Script) -> None:
    s.connect()
    s.error(_lookup(s))


@breaks("CHECK-16")
def a_confirmation_for_another_consumer(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.ack(0, request_id=7)
    s.broker(c.ACK_RESPONSE, consumer_id=1, request_id=7)


@breaks("CHECK-16")
def another_watcher(s: Script) -> None:
    s.connect()
    request_id = s.ask(c.WATCH_TOPIC_LIST, watcher_id=3, namespace="a/b", topics_pattern="a/b/.*")
    s.broker(c.WATCH_TOPIC_LIST_SUCCESS, request_id=request_id, watcher_id=4, topics_hash="00000000")


@breaks("CHECK-17")
def a_failed_lookup_without_code(s: Script) -> None:
    s.connect()
    failed = proto.CommandLookupTopicResponse.Failed
    s.broker(c.LOOKUP_RESPONSE, request_id=_lookup(s), response=failed, message="no")


@breaks("CHECK-17")
def partitions_without_response(s: Script) -> None:
    s.connect()
    request_id = s.ask(c.PARTITIONED_METADATA, topic=TOPIC)
    s.broker(c.PARTITIONED_METADATA_RESPONSE, request_id=request_id, partitions=3)


@breaks("CHECK-18")
def a_refused_acknowledgement_without_text(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.ack(0, request_id=7)
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7, error=proto.NotAllowedError)


@breaks("CHECK-18")
def neither_schema_nor_error(s: Script) -> None:
    s.connect()
    s.broker(c.GET_SCHEMA_RESPONSE, request_id=s.ask(c.GET_SCHEMA, topic=TOPIC))


@breaks("LOOKUP-05")
def a_broker_without_url(s: Script) -> None:
    s.connect()
    s.broker(c.LOOKUP_RESPONSE, request_id=_lookup(s), response=proto.CommandLookupTopicResponse.Connect)


@breaks("WIRE-03")
def partitions_without_number(s: Script) -> None:
    s.connect()
    request_id = s.ask(c.PARTITIONED_METADATA, topic=TOPIC)
    s.broker(c.PARTITIONED_METADATA_RESPONSE, request_id=request_id, response=0)


@breaks("LOOKUP-03")
def authority_out_of_nowhere(s: Script) -> None:
    s.connect()
    _lookup(s, authoritative=True)


@breaks("GAP-25")
def the_twenty_first_redirect(s: Script) -> None:
    s.connect()
    _redirect(s, _lookup(s))
    for _ in range(20):
        s.reconnect()
        _redirect(s, _lookup(s, authoritative=True))
    _lookup(s, authoritative=True)


@breaks("TOPIC-01")
def a_short_name(s: Script) -> None:
    s.connect()
    s.open_producer(topic="t")


@breaks("TOPIC-01")
def a_name_that_is_none(s: Script) -> None:
    s.connect()
    s.subscribe(topic="persistent://public/default")


def _topics(s: Script, **fields: object) -> None:
    request_id = s.ask(c.GET_TOPICS_OF_NAMESPACE, namespace="public/default")
    s.broker(c.GET_TOPICS_OF_NAMESPACE_RESPONSE, request_id=request_id, **fields)


@breaks("CHECK-19")
def an_unchanged_list(s: Script) -> None:
    s.connect()
    _topics(s, changed=False, topics=[TOPIC])


@breaks("CHECK-20")
def the_hash_of_another_list(s: Script) -> None:
    s.connect()
    _topics(s, topics=["persistent://my-property/my-ns/pattern-topic-1"], topics_hash="0d0602ed")
    _topics(s, topics=["persistent://my-property/my-ns/pattern-topic-2"], topics_hash="0d0602ed")


def _watch(s: Script) -> None:
    request_id = s.ask(c.WATCH_TOPIC_LIST, watcher_id=3, namespace="a/b", topics_pattern="a/b/.*")
    s.broker(c.WATCH_TOPIC_LIST_SUCCESS, request_id=request_id, watcher_id=3, topics_hash="00000000")


@breaks("CHECK-21")
def news_for_a_closed_watcher(s: Script) -> None:
    s.connect()
    _watch(s)
    s.broker(c.WATCH_TOPIC_UPDATE, watcher_id=3, topics_hash="00000000")
    s.success(s.ask(c.WATCH_TOPIC_LIST_CLOSE, watcher_id=3))
    s.broker(c.WATCH_TOPIC_UPDATE, watcher_id=3, topics_hash="00000000")


@breaks("CHECK-22")
def closing_an_unknown_watcher(s: Script) -> None:
    s.connect()
    _watch(s)
    s.ask(c.WATCH_TOPIC_LIST_CLOSE, watcher_id=4)
