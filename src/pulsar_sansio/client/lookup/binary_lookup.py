"""`BinaryLookup`: asks brokers by the commands LOOKUP, PARTITIONED_METADATA and GET_TOPICS_OF_NAMESPACE."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.errors import (
    PulsarError,
    RemoteProtocolError,
    ServiceNotReady,
    TimedOut,
    TooManyRedirects,
    TooManyRequests,
    broker_error,
)
from ...model.service_url import Address
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.services import Services
from .questions import LookupQuestion
from .topic_list import TopicList, listing

Command = proto.BaseCommand
LookupResponse = proto.CommandLookupTopicResponse
MetadataResponse = proto.CommandPartitionedTopicMetadataResponse


class BinaryLookup:
    """The binary lookups of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def find(self, question: LookupQuestion) -> None:
        """Send LOOKUP, and follow the redirects."""
        self._step(question, question.at or self._services.addresses.service_address)

    def count(self, question: LookupQuestion) -> None:
        """Send PARTITIONED_METADATA."""
        create = self._services.config.create_topics

        def encode(connection: Connection, request_id: int) -> bytes:
            command = proto.CommandPartitionedTopicMetadata(
                topic=str(question.topic),
                request_id=request_id,
                metadata_auto_creation_enabled=create or not connection.asks_without_creation,
            )
            return encode_command(Command.PARTITIONED_METADATA, command)

        def known(connection: Connection, response: MetadataResponse) -> None:
            if response.response == MetadataResponse.Success:
                question.answer(response.partitions)
            else:
                question.fail(self._refusal(connection, response))

        address = self._services.addresses.service_address
        self._ask(question, address, encode, known, Command.PARTITIONED_METADATA_RESPONSE)

    def list(self, question: LookupQuestion, wanted: TopicList) -> None:
        """Send GET_TOPICS_OF_NAMESPACE."""

        def encode(_: Connection, request_id: int) -> bytes:
            return encode_command(Command.GET_TOPICS_OF_NAMESPACE, wanted.command(request_id))

        def known(_: Connection, answer: proto.CommandGetTopicsOfNamespaceResponse) -> None:
            question.answer(listing(answer))

        address = self._services.addresses.service_address
        self._ask(question, address, encode, known, Command.GET_TOPICS_OF_NAMESPACE_RESPONSE)

    # --- one step of a lookup ---

    def _step(self, question: LookupQuestion, address: Address) -> None:
        """Ask the broker at `address` (rule LOOKUP-04)."""

        def encode(_: Connection, request_id: int) -> bytes:
            command = proto.CommandLookupTopic(
                topic=str(question.topic), request_id=request_id, authoritative=question.authoritative
            )
            listener = self._services.config.listener_name
            if listener is not None:
                command.advertised_listener_name = listener
            return encode_command(Command.LOOKUP, command)

        self._ask(question, address, encode, partial(self._answered, question), Command.LOOKUP_RESPONSE)

    def _answered(self, question: LookupQuestion, connection: Connection, response: LookupResponse) -> None:
        topic = question.topic
        if not response.HasField("response") or response.response == LookupResponse.Failed:
            question.fail(self._refusal(connection, response))
            return
        addresses = self._services.addresses
        wanted = "brokerServiceUrlTls" if addresses.service_url.tls else "brokerServiceUrl"
        url: str = getattr(response, wanted)
        redirect = response.response == LookupResponse.Redirect
        try:
            proxied = response.proxy_through_service_url and not redirect
            logical, physical = addresses.route_to(url, connection, proxied)
        except RemoteProtocolError as wrong:
            question.fail(type(wrong)(f"lookup of {topic}: {wanted} of the answer: {wrong}"))
            return
        if redirect:
            question.redirects += 1
            if question.redirects > self._services.config.max_lookup_redirects:
                error = TooManyRedirects(f"lookup of {topic} was redirected {question.redirects} times")
                question.fail(error)
                return
            question.authoritative = response.authoritative
            self._step(question, logical)
            return
        question.answer(logical, physical)

    def _ask(
        self,
        question: LookupQuestion,
        address: Address,
        encode: Callable[[Connection, int], bytes],
        on_done: Callable[[Connection, Any], None],
        reply: int,
    ) -> None:
        """Send one request to `address`, once a connection is ready and its lookup queue has room."""

        def connected(connection: Connection) -> None:
            def done(response: Any) -> None:
                question.withdraw = None
                connection.lookups.answered()
                on_done(connection, response)

            def failed(error: PulsarError) -> None:
                question.withdraw = None
                connection.lookups.answered()
                if isinstance(error, (TimedOut, TooManyRequests, ServiceNotReady)):
                    connection.count_rejection()
                question.fail(error)

            def start() -> bool:
                if question.over:
                    return False
                send = self._services.requests.send
                asked = send(connection, partial(encode, connection), done, failed, reply=reply)
                question.withdraw = partial(self._withdraw, connection, asked)
                return True

            connection.lookups.submit(start, question.fail)

        self._services.pool.get(
            address, self._services.addresses.physical_address(address), connected, question.fail
        )

    def _withdraw(self, connection: Connection, request_id: int) -> None:
        """Discard a request that the broker did not answer in time."""
        self._services.requests.cancel(connection, request_id)
        connection.lookups.answered()
        connection.count_rejection()

    def _refusal(self, connection: Connection, response: Any) -> PulsarError:
        """Return the error of a failed answer; UnknownError for an answer without a code (WIRE-19)."""
        error = broker_error(response.error, response.message)
        if isinstance(error, (TooManyRequests, ServiceNotReady)):
            connection.count_rejection()
        return error
