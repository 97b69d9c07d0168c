"""`RealPulsar`: a standalone Apache Pulsar as a child process, on free ports, over a data folder of its own.

It ends with the process that started it, whatever becomes of that one: by `stop()`, at exit, or as a
`JavaProcess` does where the starter was killed.
"""

import atexit
import contextlib
import http.client
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.real_pulsar.admin import Admin, AdminError
from tests.real_pulsar.jars import Unavailable
from tests.real_pulsar.java_process import START_SOON, JavaProcess

HERE = Path(__file__).parent

START_TIMEOUT = 120.0
"""Seconds until ready: 6 to 8 on two idle cores, ten times that on a machine with better things to do."""

MAIN = "org.apache.pulsar.PulsarStandaloneStarter"

HEAP = ["-Xmx1g", "-XX:MaxDirectMemorySize=1g"]

START_ATTEMPTS = 8
"""The attempts of one `start()`: one start in four after SIGKILL ends in the livelock that `_livelocked`
detects."""


def standalone_conf(settings: Mapping[str, str]) -> str:
    """Return the text of a standalone.conf; these settings replace those of the file in this folder."""
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    return (HERE / "standalone.conf").read_text() + lines


class RealPulsar:
    """A standalone broker with its store, as a context manager or by `start()` and `stop()`.

    `settings` are lines of its configuration, replacing those of standalone.conf. Ports and data stay the
    same over `kill()` and `start()`; `stop()` ends it for good and removes the data. `long_running`: be fast
    later rather than ready soon, for measurements. `token`: of a superuser, for a broker with authentication.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        long_running: bool = False,
        token: str | None = None,
    ) -> None:
        self._settings = dict(settings or {})
        self._options = [*HEAP, *([] if long_running else START_SOON)]
        self._process: JavaProcess | None = None
        self.port, self.admin_port, self._bookkeeper_port = free_ports(3)
        self.admin = Admin("127.0.0.1", self.admin_port, token)
        self.folder: Path | None = None

    @property
    def url(self) -> str:
        """A service URL that names the broker as it names itself: the lookup's connection is used on."""
        return f"pulsar://localhost:{self.port}"

    @property
    def url_by_another_name(self) -> str:
        """A service URL with another name for the same address.

        A standalone on loopback answers every lookup with `proxy_through_service_url`, so a client of this
        URL opens a second connection to the same place, with `proxy_to_broker_url`.
        """
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The JVM's process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    # --- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until it serves public/default. Raises `Unavailable` where it cannot run."""
        assert self._process is None, "already started"
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="real-pulsar-"))
            atexit.register(self.stop)
        self._write_configuration(self.folder)
        arguments = [
            *("--config", str(self.folder / "conf" / "standalone.conf"), "-nfw", "-nss"),
            *("--bookkeeper-port", str(self._bookkeeper_port)),
        ]
        try:
            for _ in range(START_ATTEMPTS):
                self._process = JavaProcess(MAIN, arguments, self.folder, self._options, self.folder)
                self._process.launch()
                if self._became_ready():
                    return
                self.kill()
            raise Unavailable(f"the real Pulsar did not come up in {START_ATTEMPTS} attempts")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it for good: SIGTERM, after a while SIGKILL; the data goes too. Twice is once."""
        self._end(signal.SIGTERM)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
            atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns. The data stays; `start()` goes on over it."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # --- inside ------------------------------------------------------------------------------------------

    def _write_configuration(self, folder: Path) -> None:
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        settings = {
            "brokerServicePort": str(self.port),
            "webServicePort": str(self.admin_port),
            "advertisedAddress": "localhost",
            **self._settings,
        }
        (conf / "standalone.conf").write_text(standalone_conf(settings))

    def _became_ready(self) -> bool:
        """Wait for it; False where it has to be started once more."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while not self._ready():
            if self._livelocked():
                return False
            if self._process.ended():
                raise Unavailable(f"the real Pulsar ended while it started: {self._process.last_output()}")
            if time.monotonic() > deadline:
                words = self._process.last_output()
                raise Unavailable(f"the real Pulsar was not ready in {START_TIMEOUT:.0f} s: {words}")
            time.sleep(0.1)
        return not self._livelocked()

    def _livelocked(self) -> bool:
        """Return whether this start went wrong in Pulsar's own way.

        The metadata store of a standalone keeps the bookie's registration over a SIGKILL. The next bookie
        finds it, deletes it and registers. If the bookie then hears of that deletion, it takes it for a loss
        of its own registration. It deletes and registers again, hears of that, and so for ever; no ledger can
        be made. A healthy start has at most two such lines.
        """
        assert self._process is not None
        return self._process.log.count(" was invalidated") > 20

    def _ready(self) -> bool:
        try:
            self.admin.request("GET", "/metrics/", timeout=5.0)
            self.admin.request("GET", "/admin/v2/namespaces/public/default", timeout=5.0)
            self.admin.request("GET", "/admin/v2/persistent/public/default", timeout=5.0)
        except (OSError, http.client.HTTPException, AdminError):
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(how)


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
