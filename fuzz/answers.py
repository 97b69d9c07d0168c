"""The answers of an honest broker to a client, as far as the client needs them to attach and to go on.

The answers are a script, not a broker. The script stores nothing, confirms everything at once, and delivers
to consumers what it is told to. It shares no code with the machines under test but the frame codec.
"""

from collections.abc import Iterable
from typing import Any

from fuzz.client_options import PARTITIONED
from pulsar_sansio.wire import (
    MessageMetadata,
    encode_command,
    encode_message,
    encode_message_metadata,
    encode_pong,
    encode_send_receipt,
    pack_payload,
    proto,
)

Command = proto.BaseCommand

MATCHING = ("persistent://public/default/theirs", "persistent://public/default/theirs-too")
"""The topics that exist for a consumer with a pattern."""


def connected(max_message_size: int, version: int = 21) -> bytes:
    command = proto.CommandConnected(
        server_version="honest", protocol_version=version, max_message_size=max_message_size
    )
    command.feature_flags.supports_topic_watchers = True
    return encode_command(Command.CONNECTED, command)


def lookup_response(request_id: int, url: str, *, redirect: bool = False) -> bytes:
    kinds = proto.CommandLookupTopicResponse
    return encode_command(
        Command.LOOKUP_RESPONSE,
        kinds(
            request_id=request_id,
            brokerServiceUrl=url,
            response=kinds.Redirect if redirect else kinds.Connect,
            authoritative=True,
        ),
    )


def answer(kind: int, command: Any, url: str, max_message_size: int, redirect: bool = False) -> bytes:
    """The answer to one command; b"" where there is none. `url`: where every topic is to be found."""
    match kind:
        case Command.CONNECT:
            return connected(max_message_size)
        case Command.PING:
            return encode_pong()
        case Command.PARTITIONED_METADATA:
            kinds = proto.CommandPartitionedTopicMetadataResponse
            partitions = 2 if command.topic.endswith(PARTITIONED) else 0
            return encode_command(
                Command.PARTITIONED_METADATA_RESPONSE,
                kinds(request_id=command.request_id, partitions=partitions, response=kinds.Success),
            )
        case Command.LOOKUP:
            return lookup_response(command.request_id, url, redirect=redirect)
        case Command.PRODUCER:
            return encode_command(
                Command.PRODUCER_SUCCESS,
                proto.CommandProducerSuccess(
                    request_id=command.request_id,
                    producer_name=command.producer_name or "p",
                    last_sequence_id=-1,
                    schema_version=b"",
                    producer_ready=True,
                ),
            )
        case (
            Command.SUBSCRIBE
            | Command.CLOSE_PRODUCER
            | Command.CLOSE_CONSUMER
            | Command.UNSUBSCRIBE
            | Command.SEEK
            | Command.WATCH_TOPIC_LIST_CLOSE
        ):
            return encode_command(Command.SUCCESS, proto.CommandSuccess(request_id=command.request_id))
        case Command.GET_LAST_MESSAGE_ID:
            found = proto.CommandGetLastMessageIdResponse(request_id=command.request_id)
            found.last_message_id.ledgerId, found.last_message_id.entryId = 1, 7
            found.consumer_mark_delete_position.ledgerId, found.consumer_mark_delete_position.entryId = 1, 3
            return encode_command(Command.GET_LAST_MESSAGE_ID_RESPONSE, found)
        case Command.GET_TOPICS_OF_NAMESPACE:
            return encode_command(
                Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
                proto.CommandGetTopicsOfNamespaceResponse(
                    request_id=command.request_id, topics=MATCHING, topics_hash="both"
                ),
            )
        case Command.WATCH_TOPIC_LIST:
            return encode_command(
                Command.WATCH_TOPIC_LIST_SUCCESS,
                proto.CommandWatchTopicListSuccess(
                    request_id=command.request_id,
                    watcher_id=command.watcher_id,
                    topic=MATCHING,
                    topics_hash="both",
                ),
            )
        case Command.SEND:
            return encode_send_receipt(
                command.producer_id, command.sequence_id, 1, command.sequence_id, command.highest_sequence_id
            )
        case Command.ACK if command.request_id is not None:
            return encode_command(
                Command.ACK_RESPONSE,
                proto.CommandAckResponse(consumer_id=command.consumer_id, request_id=command.request_id),
            )
    return b""


def delivery(consumer_id: int, entry_id: int, payload: bytes) -> Iterable[bytes]:
    """A MESSAGE with one plain message."""
    metadata = encode_message_metadata(MessageMetadata("honest", entry_id, 1_700_000_000_000))
    return encode_message(consumer_id, 1, entry_id, stored=b"".join(pack_payload(metadata, payload)))
