"""`AutoSwitch`: probes the clusters of an `AutoFailover`, and changes between them.

One check is a series of probes, one after the other:

* with a secondary cluster in use, the primary, which is used again when it was available for long enough;
* the cluster in use;
* where that one was not available for long enough, the others in order, until one is available.

Nothing is ever probed twice at a time: the next check begins an interval after the last one is over.
"""

from collections.abc import Callable, Iterator

from ...model.config import AutoFailover, nanoseconds_of
from ...model.errors import ConnectionLost, PulsarError
from ...model.service_url import ServiceUrl
from ..connecting.services import Services
from ..outputs import FailoverFailed
from .probe import Probe


class AutoSwitch:
    """The changes of one client. `switch(url, reason)` changes the client's service URL."""

    def __init__(
        self, services: Services, config: AutoFailover, switch: Callable[[ServiceUrl, str], None]
    ) -> None:
        self._services = services
        self._context = services.context
        self._switch = switch
        self._primary = services.addresses.service_url
        self._all = (self._primary, *map(ServiceUrl.parse, config.secondaries))
        self._failover_delay = nanoseconds_of(config.failover_delay)
        self._switch_back_delay = nanoseconds_of(config.switch_back_delay)
        self._interval = nanoseconds_of(config.check_interval)
        self._failing_since: int | None = None
        """The moment since when each probe of the cluster in use has failed."""
        self._back_since: int | None = None
        """The moment since when each probe of the primary has succeeded, with another cluster in use."""
        self._others: Iterator[ServiceUrl] = iter(())
        self._probe: Probe | None = None
        self._timer = self._context.deadlines.slot(self._check)
        self._wait()

    def close(self) -> None:
        """The client is closed: probe nothing more."""
        self._timer.clear()
        if self._probe is not None:
            self._probe.cancel()

    @property
    def _used(self) -> ServiceUrl:
        return self._services.addresses.service_url

    def _wait(self) -> None:
        self._probe = None
        self._timer.set(self._context.now + self._interval)

    def _check(self) -> None:
        if self._used == self._primary:
            self._probe = Probe(self._services, self._used, self._used_probed)
        else:
            self._probe = Probe(self._services, self._primary, self._primary_probed)

    def _primary_probed(self, error: PulsarError | None) -> None:
        now = self._context.now
        if error is not None:
            self._back_since = None
        elif self._back_since is None:
            self._back_since = now
        elif now - self._back_since >= self._switch_back_delay:
            seconds = (now - self._back_since) / 1e9
            self._use(self._primary, f"the primary cluster has been available for {seconds:.1f} s")
            return
        self._probe = Probe(self._services, self._used, self._used_probed)

    def _used_probed(self, error: PulsarError | None) -> None:
        now = self._context.now
        if error is None:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= self._failover_delay:
            seconds = (now - self._failing_since) / 1e9
            reason = f"no probe of {self._used} has succeeded for {seconds:.1f} s: {error}"
            self._others = (url for url in self._all if url != self._used)
            self._try_next(reason)
            return
        self._wait()

    def _try_next(self, reason: str) -> None:
        """Probe the next cluster that may take the place of the one in use."""
        url = next(self._others, None)
        if url is None:
            self._context.emit(FailoverFailed(ConnectionLost(f"{reason}; no other cluster is available")))
            self._wait()
            return

        def probed(error: PulsarError | None) -> None:
            if error is None:
                self._use(url, reason)
            else:
                self._try_next(reason)

        self._probe = Probe(self._services, url, probed)

    def _use(self, url: ServiceUrl, reason: str) -> None:
        self._failing_since = self._back_since = None
        self._wait()  # a client that is closing may be closed by the change
        self._switch(url, reason)
