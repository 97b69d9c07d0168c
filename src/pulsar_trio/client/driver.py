"""The client's driver: a pump around `pulsar_sansio.Client` that knows which task waits for which answer.

Outputs about producers and consumers go to the object registered under their handle. Answers to requests go
to the task that awaits them. `command` is the way to the machine for everything that is not per message.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from logging import getLogger
from time import time_ns
from typing import Any, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from pulsar_sansio import Client as Machine
from pulsar_sansio import (
    ClientConfig,
    CredentialsFailed,
    CryptoError,
    LocalProtocolError,
    PulsarError,
    ServiceUrl,
    TlsError,
)
from pulsar_sansio import client_outputs as outputs
from pulsar_security import TlsFailure

from ..errors import ResourceClosed, trio_error
from ..security.identity import ClientIdentity
from ..security.key_reader import KeyReader
from ..transport.connecting import connect
from ..transport.link import Link
from ..transport.pump import Pump
from .driver_side import DriverSide
from .endpoint import Endpoint, PendingResult
from .news import News, requests_wanted
from .options import checked_seed
from .service_url_source import ServiceUrlSource

_log = getLogger("pulsar_trio.driver")

EndpointT = TypeVar("EndpointT", bound=Endpoint)
SpecT = TypeVar("SpecT")


class Driver(Pump):
    """Runs one client machine."""

    machine: Machine

    def __init__(
        self, config: ClientConfig, seed: int | None, identity: ClientIdentity, urls: ServiceUrlSource | None
    ) -> None:
        """`urls`: None for a client whose service URL only the application or a failover changes."""
        super().__init__()
        self.config = config
        self._identity = identity
        self._urls = urls
        self.machine = Machine(
            self.now(),
            config,
            seed=checked_seed(seed),
            wall_time=time_ns() // 1_000_000,
            entropy=os.urandom,
        )
        self.sides: dict[int, DriverSide] = {}
        """Producers, consumers and table views that have not ended, by their handles."""
        self.answers: dict[int, PendingResult] = {}
        self._news = News(self.sides)
        self._to_push: set[int] = set()
        self._push_wanted = trio.lowlevel.ParkingLot()
        self.closed = False
        self.actions = {
            outputs.Connect: self._on_connect,
            outputs.CredentialsWanted: self._on_credentials_wanted,
            outputs.EncryptionKeyWanted: self._on_encryption_key_wanted,
            outputs.Transmit: self.on_transmit,
            outputs.Disconnect: self._on_disconnect,
            outputs.RequestDone: self._on_request_done,
            outputs.RequestFailed: self._on_request_failed,
            outputs.ProducerReady: self._on_producer_ready,
            outputs.ProducerFailed: self._to_producer,
            outputs.Receipts: self._to_producer,
            outputs.SendFailed: self._to_producer,
            outputs.Writable: self._to_producer,
            outputs.InterceptorFailed: self._on_interceptor_failed,
            outputs.ConsumerInterceptorFailed: self._on_consumer_interceptor_failed,
            outputs.ConsumerReady: self._on_consumer_ready,
            outputs.ConsumerFailed: self._to_consumer,
            outputs.Deliverable: self._to_consumer,
            outputs.LetterFailed: self._to_consumer,
            outputs.ActiveChanged: self._to_consumer,
            outputs.TopicJoined: self._to_consumer,
            outputs.TopicLeft: self._to_consumer,
            outputs.EndOfTopic: self._on_end_of_topic,
            outputs.Undecryptable: self._to_consumer,
            outputs.TableViewReady: self._on_view_ready,
            outputs.TableViewFailed: self._to_view,
            outputs.TableChanged: self._to_view,
            outputs.Detached: self._to_either,
            outputs.Attached: self._to_either,
            outputs.Closed: self._to_either,
            outputs.Retrying: self._on_retrying,
            outputs.LetterSent: self._news.on_letter_sent,
            outputs.ConsumerBlocked: self._news.on_blocked,
            outputs.PartitionsAdded: self._news.on_partitions_added,
            outputs.PartitionEnded: self._news.on_partition_ended,
            outputs.EncryptionKeysFailed: self._news.on_encryption_keys_failed,
            outputs.ServiceUrlSwitched: self._news.on_switched,
            outputs.FailoverFailed: self._news.on_failover_failed,
            outputs.RequestSent: self._news.on_request_sent,
            outputs.RequestAnswered: self._news.on_request_answered,
        }
        self.machine.report_requests(requests_wanted())

    # --- commands -------------------------------------------------------------------------------------

    def command(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Give the machine a command and do what follows. Raises the caller's mistakes as they are.

        Raises `ResourceClosed` after the client's end, and `InternalError` if the machine has failed.
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        if self.closed:
            raise ResourceClosed("the client is closed")
        try:
            self.tick = self.now()
            result = call(self.tick, *arguments)
            self.pump()
            self.write_now()
        except LocalProtocolError as error:
            raise trio_error(error) from error.__cause__
        except Exception as error:
            raise self.crash(error) from error
        if self.failure is not None:  # met by `take`, which raises nothing
            raise self.failure.with_traceback(None)
        return result

    @property
    def endpoints(self) -> list[Endpoint]:
        """The producers, consumers and table views that have not ended."""
        return [side.endpoint for side in self.sides.values()]

    async def open(
        self, call: Callable[..., int], spec: SpecT, kind: Callable[["Driver", int, SpecT], EndpointT]
    ) -> EndpointT:
        """Ask the machine for a producer or consumer, and wait until it is ready. Raises why it cannot be."""

        def begin(now: int) -> tuple[EndpointT, DriverSide]:
            handle = call(now, spec)
            return kind(self, handle, spec), self.sides[handle]

        self.machine.report_requests(requests_wanted())
        endpoint: EndpointT
        side: DriverSide
        endpoint, side = self.command(begin)
        await side.opened()
        return endpoint

    async def request(self, call: Callable[..., int], *arguments: object, owner: int | None = None) -> Any:
        """Give a command that is answered later, and wait for the answer. `owner`: the handle it is for."""
        with self.asked(call, *arguments, owner=owner) as answer:
            return await answer.get()

    @contextmanager
    def asked(
        self, call: Callable[..., int], *arguments: object, owner: int | None = None
    ) -> Iterator[PendingResult]:
        """Give a command that is answered later; the answer comes while the block runs, or is dropped.
        The command itself continues."""
        answer = PendingResult()

        def begin(now: int, *arguments: object) -> int:
            request = call(now, *arguments)
            self.answers[request] = answer
            return request

        request = self.command(begin, *arguments)
        try:
            yield answer
        finally:
            self.answers.pop(request, None)
            if not answer.taken:  # it may have come all the same, to a task that was cancelled meanwhile
                self.abandon(request, owner)

    @enable_ki_protection
    def abandon(self, identifier: int, owner: int | None = None) -> None:
        """Give up this producer, consumer or request, because no task waits for it any more."""
        if self.failure is None and not self.closed:
            self.command(self.machine.abandon, identifier, owner)

    def refresh_time(self) -> None:
        """Give the machine the present time, for its calls that are not told the time."""
        self.tick = self.now()
        self.machine.set_time(self.tick, time_ns() // 1_000_000)

    def after_call(self) -> None:
        """Act on what a per-message call of the machine left behind.

        The writer tasks write what there is to write, when they next run: together with what comes meanwhile.
        """
        try:
            self.pump()
            self.wake_writers()
        except Exception as error:
            raise self.crash(error) from error

    def after_urgent_call(self) -> None:
        """Act on what a call of the machine left behind, and write at once. So the broker works on it while
        the application goes on: it sends messages for new permits, or lets a topic join a transaction."""
        try:
            self.pump()
            self.write_now()
        except Exception as error:
            raise self.crash(error) from error

    def after_quiet_call(self) -> None:
        """After a per-message call that left no outputs, but may have set a deadline."""
        try:
            self.set_timer()
        except Exception as error:
            raise self.crash(error) from error

    def push_soon(self, producer: int) -> None:
        """Send a producer's open batch when the tasks that can run now have run, and may have added to it."""
        self._to_push.add(producer)
        self._push_wanted.unpark()

    def own_fault(self, error: Exception) -> Exception:
        """Return the exception that a per-message call raises for an exception of the machine."""
        if isinstance(error, LocalProtocolError):
            return trio_error(error)
        return self.crash(error)

    def shut(self) -> None:
        """End everything at once. Waiting tasks are told that the client is closed."""
        self.closed = True
        closed = ResourceClosed("the client is closed")
        for side in list(self.sides.values()):
            side.end(closed)
        for answer in list(self.answers.values()):
            answer.set(None, closed)
        self.stop()

    # --- outputs ----------------------------------------------------------------------------------------

    def _endpoint(self, handle: int) -> Endpoint | int:
        """Return the endpoint for a text, or its handle after its end."""
        side = self.sides.get(handle)
        return handle if side is None else side.endpoint

    def _to_producer(self, output: Any) -> None:
        if (side := self.sides.get(output.producer)) is not None:
            side.on_output(output)

    def _on_interceptor_failed(self, output: outputs.InterceptorFailed) -> None:
        """Logged here: it may be said after the producer's end."""
        _log.error(
            "an interceptor of producer %s failed, and was passed over: %r",
            self._endpoint(output.producer),
            output.interceptor,
            exc_info=output.error,
        )

    def _on_consumer_interceptor_failed(self, output: outputs.ConsumerInterceptorFailed) -> None:
        """Logged here: it may be said after the consumer's end."""
        _log.error(
            "an interceptor of consumer %s failed, and was passed over: %r",
            self._endpoint(output.consumer),
            output.interceptor,
            exc_info=output.error,
        )

    def _to_consumer(self, output: Any) -> None:
        if (side := self.sides.get(output.consumer)) is not None:
            side.on_output(output)

    def _on_producer_ready(self, output: outputs.ProducerReady) -> None:
        self._to_producer(output)
        self._news.on_connected(output.producer)

    def _on_consumer_ready(self, output: outputs.ConsumerReady) -> None:
        self._to_consumer(output)
        self._news.on_connected(output.consumer)

    def _on_view_ready(self, output: outputs.TableViewReady) -> None:
        self._to_view(output)
        self._news.on_connected(output.view)

    def _on_end_of_topic(self, output: outputs.EndOfTopic) -> None:
        self._news.on_end_of_topic(output)
        self._to_consumer(output)

    def _to_view(self, output: Any) -> None:
        if (side := self.sides.get(output.view)) is not None:
            side.on_output(output)

    def _to_either(self, output: Any) -> None:
        if isinstance(output, outputs.Closed):
            self._news.on_closed(output)
        if (side := self.sides.get(output.id)) is not None:
            side.on_output(output)
        if isinstance(output, outputs.Detached):
            self._news.on_detached(output)
        elif isinstance(output, outputs.Attached):
            self._news.on_connected(output.id)

    def _on_request_done(self, output: outputs.RequestDone) -> None:
        answer = self.answers.pop(output.request, None)
        if answer is not None:
            answer.set(output.result)

    def _on_request_failed(self, output: outputs.RequestFailed) -> None:
        answer = self.answers.pop(output.request, None)
        if answer is not None:
            answer.set(None, output.error)

    def _on_retrying(self, output: outputs.Retrying) -> None:
        self._news.on_retrying(output)
        if self._urls is not None and not output.lost:  # `update_service_url` loses connections, too
            self._urls.ask_soon()

    def _on_connect(self, output: outputs.Connect) -> None:
        self.machine.report_requests(requests_wanted())
        link = Link(self.buffer, partial(self.take, output.link))
        task = partial(self._run_client_link, output, link)
        self.start_link(output.link, link, task, f"pulsar link {output.address}")

    def _on_credentials_wanted(self, output: outputs.CredentialsWanted) -> None:
        self.start_peer(partial(self._bring_credentials, output), f"pulsar credentials {output.broker}")

    def _on_encryption_key_wanted(self, output: outputs.EncryptionKeyWanted) -> None:
        self.start_peer(partial(self._bring_encryption_key, output), "pulsar encryption key")

    async def _bring_encryption_key(self, wanted: outputs.EncryptionKeyWanted) -> None:
        assert isinstance(wanted.reader, KeyReader)
        with trio.move_on_after(self.config.operation_timeout):  # the machine waits no longer
            try:
                info = await wanted.reader.read(wanted.key, wanted.metadata)
            except CryptoError as error:
                self.fact(self.machine.refuse_encryption_key, wanted.request, error)
            else:
                self.fact(self.machine.provide_encryption_key, wanted.request, info)

    def _on_disconnect(self, output: outputs.Disconnect) -> None:
        if output.credentials_refused:
            self._identity.refused(output.link)
        self.on_disconnect(output)

    async def _bring_credentials(self, wanted: outputs.CredentialsWanted) -> None:
        try:
            found = await self._identity.credentials(wanted, self.config.connect_timeout)
        except CredentialsFailed as error:
            self.fact(self.machine.refuse_credentials, wanted.link, error)
        else:
            self.fact(self.machine.provide_credentials, wanted.link, found)
        if wanted.link not in self.links:  # it ended before the provider was asked, or meanwhile
            self._identity.disconnected(wanted.link)

    def _on_crash(self, failure: PulsarError) -> None:
        for side in list(self.sides.values()):
            side.on_crash(failure)
        for answer in list(self.answers.values()):
            answer.set(None, failure)

    # --- tasks ----------------------------------------------------------------------------------------

    def _tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        tasks = {**super()._tasks(), "pulsar pushes": self._run_pushes}
        if self._urls is not None:
            seconds, report = self.config.operation_timeout, self._news.on_no_service_url
            tasks["pulsar service URL"] = partial(self._urls.run, seconds, self._use_service_url, report)
        return tasks

    def _use_service_url(self, url: str) -> None:
        """Use an answer of the application's provider. Raises the application's mistakes as they are."""
        old, new = self.machine.service_url, str(ServiceUrl.parse(url))
        if new != old:
            self.command(self.machine.update_service_url, new)
            reason = "the provider of the service URL returns it"
            self._news.on_switched(outputs.ServiceUrlSwitched(old, new, reason))

    async def _run_pushes(self) -> None:
        while True:
            while self._to_push:
                producer = self._to_push.pop()
                with suppress(PulsarError):  # closed meanwhile; a bug of ours is kept by `command`
                    self.command(self.machine.push, producer)
            await self._push_wanted.park()

    # --- the life of a link -----------------------------------------------------------------------------

    async def _run_client_link(self, wanted: outputs.Connect, link: Link) -> str | TlsError:
        number = wanted.link
        try:
            sock = await connect(wanted.address, self.config.connect_timeout)
            if wanted.tls_name is None:
                link.open(sock)
            else:
                link.open(await self._identity.encrypt(sock, wanted.address, wanted.tls_name))
        except TlsFailure as failure:
            return failure.error
        except OSError as error:
            return str(error)
        self.fact(self.machine.connected, number)
        try:
            return await self.serve_link(number, link)
        finally:
            self._identity.disconnected(number)
