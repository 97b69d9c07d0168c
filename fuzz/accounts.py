"""`Accounts`: what a client has told its application, checked for being told once.

Every producer and consumer is ready at most once and ends exactly once; every ticket is settled once, every
request answered once; every error is one that the library declares. What is owed at the end is a `Violation`.
It knows nothing of brokers and links.
"""

from fuzz.reports import Violation
from pulsar_sansio import Message, MessageId, PulsarError, client_outputs


class Accounts:
    """The accounts of one client's application."""

    def __init__(self) -> None:
        self.handles: set[int] = set()
        """Producers and consumers that were opened."""
        self.ready: set[int] = set()
        self.ended: set[int] = set()
        self.tickets: dict[int, int] = {}
        """By producer: the number of tickets that were given and are not settled."""
        self.requests: set[int] = set()
        """Requests that are not answered."""
        self.undisturbed: set[int] = set()
        """Handles that may neither be detached nor end: they are on a link that no attack touches."""

    def news(self, output: client_outputs.Output, label: str) -> None:
        """Book one output to the application; `label` names the input before it."""
        match output:
            case client_outputs.Receipts(producer, _, message_ids):
                self._settled(producer, len(message_ids), label)
                if not all(isinstance(message_id, MessageId) for message_id in message_ids):
                    raise Violation(f"{label}: a receipt without an id")
            case client_outputs.SendFailed(producer, _, count, error):
                declared(error, label)
                self._settled(producer, count, label)
            case client_outputs.RequestDone(request, _):
                self._answered(request, label)
            case client_outputs.RequestFailed(request, error):
                declared(error, label)
                self._answered(request, label)
            case (
                client_outputs.ProducerReady(handle)
                | client_outputs.ConsumerReady(handle)
                | client_outputs.TableViewReady(handle)
            ):
                if handle in self.ready:
                    raise Violation(f"{label}: {handle} was ready twice")
                self.ready.add(handle)
            case client_outputs.Closed(handle, cause):
                if cause is not None:
                    declared(cause, label)
                if handle not in self.ready:
                    raise Violation(f"{label}: {handle} was closed and never ready")
                self._ended(handle, label)
            case (
                client_outputs.ProducerFailed(handle, error)
                | client_outputs.ConsumerFailed(handle, error)
                | client_outputs.TableViewFailed(handle, error)
            ):
                declared(error, label)
                if handle in self.ready:
                    raise Violation(f"{label}: {handle} was ready and failed to be")
                self._ended(handle, label)
            case client_outputs.Detached(handle, error):
                declared(error, label)
                if handle in self.undisturbed:
                    raise Violation(f"{label}: {handle}, which is on another link, was detached: {error}")
            case client_outputs.TopicLeft(_, _, cause):
                if cause is not None:
                    declared(cause, label)
            case client_outputs.LetterFailed() | client_outputs.Retrying():
                declared(output.error, label)
            case _:
                pass

    def _settled(self, producer: int, count: int, label: str) -> None:
        self.tickets[producer] -= count
        if self.tickets[producer] < 0:
            raise Violation(f"{label}: producer {producer} had tickets settled twice")

    def _answered(self, request: int, label: str) -> None:
        if request not in self.requests:
            raise Violation(f"{label}: request {request} was answered twice, or never made")
        self.requests.discard(request)

    def _ended(self, handle: int, label: str) -> None:
        if handle in self.ended or handle not in self.handles:
            raise Violation(f"{label}: {handle} ended twice")
        self.ended.add(handle)
        if handle in self.undisturbed:
            raise Violation(f"{label}: {handle}, which is on another link, ended")

    def check_closed(self) -> None:
        """Check that a closed client owes nothing: no ticket, no answer."""
        if any(self.tickets.values()):
            raise Violation(f"the client is closed and tickets are not settled: {self.tickets}")
        if self.requests:
            raise Violation(f"the client is closed and requests are not answered: {self.requests}")
        if self.ended != self.handles:
            raise Violation(f"the client is closed and has not said so of {self.handles - self.ended}")


def declared(error: PulsarError, label: str) -> None:
    """Check that an error is of this library, and can be shown."""
    if not isinstance(error, PulsarError):
        raise Violation(f"{label}: {type(error).__name__} is no error of this library")
    str(error)


def read_everything(message: Message) -> None:
    """All that an application can look at. A key that says it is Base64 and is none raises `ValueError`."""
    assert isinstance(message.data, bytes)
    assert message.value is None or isinstance(message.value, bytes)
    assert isinstance(message.properties, dict)
    try:
        assert message.key_bytes is None or isinstance(message.key_bytes, bytes)
    except ValueError:
        assert message.has_base64_key
    assert message.key is None or isinstance(message.key, str)
    assert message.ordering_key is None or isinstance(message.ordering_key, bytes)
    assert isinstance(message.message_id, MessageId)
    assert isinstance(message.producer_name, str)
    assert isinstance(message.topic, str)
    for number in (message.event_time, message.publish_time, message.sequence_id, message.redelivery_count):
        assert isinstance(number, int)
    assert "fuzz" not in repr(message)
