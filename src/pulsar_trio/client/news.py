"""`News`: what the machine of a client says for people, written to `logging`.

The loggers are `pulsar_trio.connection` (a connection is lost, an attempt fails: WARNING; it is back: INFO),
`pulsar_trio.consumer` and `pulsar_trio.producer` (INFO, and WARNING for what ends by itself), and
`pulsar_trio.request` (DEBUG). A record never holds a payload, a key, a property or a credential.

What goes wrong again and again is written rarely (`RateLimit`), by trio's clock, so that a test with a
`MockClock` sees the same as a program.
"""

from collections.abc import Mapping
from logging import DEBUG, INFO, WARNING, Logger, getLogger

import trio

from pulsar_sansio import PulsarError, TopicTerminated
from pulsar_sansio import client_outputs as outputs

from ..rate_limit import RateLimit
from .driver_side import DriverSide

_connection = getLogger("pulsar_trio.connection")
_consumer = getLogger("pulsar_trio.consumer")
_producer = getLogger("pulsar_trio.producer")
_request = getLogger("pulsar_trio.request")


def requests_wanted() -> bool:
    """Tell whether `pulsar_trio.request` is read at DEBUG: the machine tells of requests only then."""
    return _request.isEnabledFor(DEBUG)


class News:
    """The news of one client. `sides`: producers, consumers and table views by their handles."""

    def __init__(self, sides: Mapping[int, DriverSide]) -> None:
        self._sides = sides
        self._troubles = RateLimit()
        self._others = RateLimit()

    # --- connections --------------------------------------------------------------------------------------

    def on_detached(self, output: outputs.Detached) -> None:
        """A producer or consumer is not connected any more."""
        self._note_trouble(output.id, output.cause)

    def on_retrying(self, output: outputs.Retrying) -> None:
        """A connection is lost or an attempt has failed. The same reason is written once in a while."""
        self._note_trouble(output.id, output.error)
        what = "the connection is lost" if output.lost else "not connected, an attempt failed"
        when = f"in {output.retry_in / 1e9:.1f} s" if output.retry_in else "at once"
        self._write(
            self._troubles,
            str(output.error),
            _connection,
            WARNING,
            f"{output.what}: {what}: {output.error}; next attempt {when}",
        )

    def _note_trouble(self, handle: int, cause: PulsarError) -> None:
        side = self._sides.get(handle)
        if side is not None and not side.endpoint.connected:
            side.outage.begin(cause, trio.current_time())

    def on_connected(self, handle: int) -> None:
        """A producer, consumer or table view is connected, for the first time or again."""
        side = self._sides.get(handle)
        seconds = None if side is None else side.outage.end(trio.current_time())
        if side is None or seconds is None:
            return
        self._write(
            self._others,
            f"back {handle}",
            _connection,
            INFO,
            f"{side.endpoint!r}: connected after {seconds:.1f} s",
        )

    def on_switched(self, output: outputs.ServiceUrlSwitched) -> None:
        """The client uses another cluster from now on."""
        _connection.warning("changed from %s to %s: %s", output.old, output.new, output.reason)

    def on_failover_failed(self, output: outputs.FailoverFailed) -> None:
        """The client would change to another cluster, and cannot. The same reason is written rarely."""
        key = f"failover {type(output.error).__name__}"
        text = f"no other cluster was chosen: {output.error}"
        self._write(self._troubles, key, _connection, WARNING, text)

    def on_no_service_url(self, problem: str) -> None:
        """The application's provider has no other URL. The same reason is written rarely."""
        text = f"the service URL stays as it is: {problem}"
        self._write(self._troubles, text, _connection, WARNING, text)

    # --- producers and consumers --------------------------------------------------------------------------

    def on_letter_sent(self, output: outputs.LetterSent) -> None:
        """A message has become a dead letter."""
        text = f"{self._name(output.consumer)}: message {output.message_id} was copied to {output.topic}"
        self._write(self._others, f"letter {output.consumer} {output.topic}", _consumer, INFO, text)

    def on_blocked(self, output: outputs.ConsumerBlocked) -> None:
        """Too much is unacknowledged."""
        text = (
            f"{self._name(output.consumer)}: the broker delivers nothing more of {output.topic}, because "
            f"{output.unacknowledged} messages are unacknowledged; it continues when the application "
            "acknowledges or negatively acknowledges some of them"
        )
        self._write(self._others, f"blocked {output.consumer} {output.topic}", _consumer, INFO, text)

    def on_end_of_topic(self, output: outputs.EndOfTopic) -> None:
        """Nothing more will come."""
        _consumer.info(
            "%s: the topic is terminated and everything in it is acknowledged", self._name(output.consumer)
        )

    def on_partitions_added(self, output: outputs.PartitionsAdded) -> None:
        """The topic of a producer has grown."""
        _producer.info(
            "%s: the topic has grown to %d partitions", self._name(output.producer), output.partitions
        )

    def on_partition_ended(self, output: outputs.PartitionEnded) -> None:
        """One partition takes no more messages."""
        level = INFO if isinstance(output.error, TopicTerminated) else WARNING
        text = f"{self._name(output.producer)}: nothing more can be sent to {output.topic}: {output.error}"
        self._write(self._others, f"end {output.topic}", _producer, level, text)

    def on_encryption_keys_failed(self, output: outputs.EncryptionKeysFailed) -> None:
        """A producer could not read its public keys."""
        meanwhile = (
            "messages are sent WITHOUT encryption" if output.in_clear else "it goes on with its last data key"
        )
        text = (
            f"{self._name(output.producer)}: {output.error}; {meanwhile}, and the next attempt is in "
            f"{output.retry_in / 1e9:.1f} s"
        )
        self._write(self._others, f"keys {output.producer}", _producer, WARNING, text)

    def on_closed(self, output: outputs.Closed) -> None:
        """A producer or consumer is gone; by itself, where there is an error."""
        if output.error is None:
            return
        level = INFO if isinstance(output.error, TopicTerminated) else WARNING
        text = f"{self._name(output.id)}: it has ended and cannot be used again: {output.error}"
        self._write(self._others, f"closed {output.id}", _connection, level, text)

    # --- requests -----------------------------------------------------------------------------------------

    def on_request_sent(self, output: outputs.RequestSent) -> None:
        """A request was written."""
        _request.debug("link %d: request %d: %s", output.link, output.request, output.command)

    def on_request_answered(self, output: outputs.RequestAnswered) -> None:
        """A request has its answer, or none."""
        if output.error is None:
            _request.debug("link %d: request %d answered: %s", output.link, output.request, output.command)
        else:
            _request.debug(
                "link %d: request %d answered: %s: %s",
                output.link,
                output.request,
                output.command,
                output.error,
            )

    # --- inside -------------------------------------------------------------------------------------------

    def _name(self, handle: int) -> str:
        side = self._sides.get(handle)
        return f"{handle}" if side is None else repr(side.endpoint)

    def _write(self, limit: RateLimit, key: str, log: Logger, level: int, text: str) -> None:
        if not log.isEnabledFor(level):
            return
        left_out = limit.admit(key, trio.current_time())
        if left_out is not None:
            more = f" ({left_out} records were left out before this one)" if left_out else ""
            log.log(level, "%s%s", text, more)
