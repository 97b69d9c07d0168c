"""Actions of connections, questions about topics and schemas, and an administrator's commands."""

from typing import Any

from pulsar_sansio.wire import proto
from tests.differential.generator.script import Script, topic
from tests.differential.steps import NAMESPACE, Administer, Drop

Type = proto.BaseCommand.Type

AVRO = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
AVRO_WIDER = (
    b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"},'
    b'{"name":"b","type":["null","string"],"default":null}]}'
)
AVRO_OTHER = b'{"type":"record","name":"R","fields":[{"name":"z","type":"string"}]}'


def another_connection(script: Script) -> None:
    if len(script.connections) < 3:
        script.connect()


def drop(script: Script) -> None:
    connection = script.connection()
    script.steps.append(Drop(connection))
    script.lose(connection)


def partitions(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.PARTITIONED_METADATA,
        proto.CommandPartitionedTopicMetadata(
            topic=script.random.choice([*script.topics, topic("unknown"), topic("p")]),
            request_id=script.request(),
            metadata_auto_creation_enabled=script.random.choice([True, False]),
        ),
    )


def lookup(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.LOOKUP,
        proto.CommandLookupTopic(
            topic=script.random.choice([*script.topics, topic("unknown"), topic("p-partition-1")]),
            request_id=script.request(),
        ),
    )


def list_topics(script: Script) -> None:
    command = proto.CommandGetTopicsOfNamespace(
        request_id=script.request(),
        namespace=NAMESPACE,
        mode=script.random.choice(
            [
                proto.CommandGetTopicsOfNamespace.PERSISTENT,
                proto.CommandGetTopicsOfNamespace.NON_PERSISTENT,
                proto.CommandGetTopicsOfNamespace.ALL,
            ]
        ),
    )
    if script.random.random() < 0.5:
        command.topics_pattern = script.random.choice(
            [f"persistent://{NAMESPACE}/.*", f"persistent://{NAMESPACE}/a", f"{NAMESPACE}/b.*"]
        )
    script.frame(script.connection(), Type.GET_TOPICS_OF_NAMESPACE, command)


def watch_topics(script: Script) -> None:
    script.watchers += 1
    script.frame(
        script.connection(),
        Type.WATCH_TOPIC_LIST,
        proto.CommandWatchTopicList(
            request_id=script.request(),
            watcher_id=script.watchers,
            namespace=NAMESPACE,
            topics_pattern=script.random.choice(
                [f"persistent://{NAMESPACE}/.*", f"persistent://{NAMESPACE}/b"]
            ),
        ),
    )


def close_watcher(script: Script) -> None:
    script.frame(
        script.connection(),
        Type.WATCH_TOPIC_LIST_CLOSE,
        proto.CommandWatchTopicListClose(request_id=script.request(), watcher_id=max(1, script.watchers)),
    )


def schema(script: Script) -> Any:
    kind = proto.Schema.Type
    definition, number = script.random.choice(
        [
            (AVRO, kind.Avro),
            (AVRO, kind.Json),
            (AVRO_WIDER, kind.Avro),
            (AVRO_OTHER, kind.Avro),
            (b"", kind.String),
            (b"", kind.Int32),
        ]
    )
    return proto.Schema(name="R", schema_data=definition, type=number)


def get_schema(script: Script) -> None:
    script.find(script.connections[0], script.topics[0])
    command = proto.CommandGetSchema(request_id=script.request(), topic=script.topic())
    if script.random.random() < 0.4:
        command.schema_version = script.random.choice([0, 1, 7]).to_bytes(8, "big")
    script.frame(script.connection(), Type.GET_SCHEMA, command)


def create_schema(script: Script) -> None:
    script.find(script.connections[0], script.topics[0])
    script.frame(
        script.connection(),
        Type.GET_OR_CREATE_SCHEMA,
        proto.CommandGetOrCreateSchema(
            request_id=script.request(), topic=script.topic(), schema=schema(script)
        ),
    )


def administer(script: Script, verb: str, *arguments: Any) -> None:
    script.steps.append(Administer(verb, arguments))


def unload(script: Script) -> None:
    administer(script, "unload", script.topic())
    script.producers.clear()
    script.consumers.clear()


def terminate(script: Script) -> None:
    administer(script, "terminate", script.topic())


def create_topic(script: Script) -> None:
    administer(script, "create_topic", topic(script.random.choice(["a", "b", "bb", "created"])))


def delete_topic(script: Script) -> None:
    name = script.random.choice([name for name in script.topics if name.startswith("persistent")])
    administer(script, "delete_topic", name, script.random.choice([True, True, False]))


def create_partitioned_topic(script: Script) -> None:
    administer(script, "create_partitioned_topic", topic("p"), 2)
