"""The two brokers as tests with Spark see them: a process that listens, a URL, an administrator.

Spark's workers are processes, so nothing can be handed over in memory: ours runs as `pulsar-trio broker`.
"""

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.real_pulsar import Admin, RealPulsar
from tests.real_pulsar.server import free_ports
from tests.security.certificates import Authority
from tests.security.secure_pulsar import PROVIDERS, REFRESH_CHECK, SECRET_KEY

DEDUPLICATION = "public/deduplication"
"""A namespace whose topics drop what they have already."""

STOP_TIMEOUT = 10.0
"""Seconds between SIGTERM and SIGKILL."""


class SparkBroker(ABC):
    """A running broker with the namespace above; `admin` creates, unloads, terminates, deletes topics."""

    name: str
    url: str
    tls_url: str
    admin: Admin
    client_options: Mapping[str, Any] = MappingProxyType({})
    """The keywords of `open_client` beside the URL."""

    @abstractmethod
    def stop(self) -> None: ...

    def prepare(self) -> None:
        """Make the namespaces."""
        self.admin.create_namespace(DEDUPLICATION)
        self.admin.set_namespace_policy(DEDUPLICATION, "deduplication", True)


class OurBroker(SparkBroker):
    """The embedded broker in a process of its own; what it holds ends with it."""

    name = "ours"

    def __init__(self, *arguments: str) -> None:
        """`arguments`: further ones of `pulsar-trio broker`."""
        ready = self._start(
            "pulsar_trio_command", "broker", "--port", "0", "--http-port", "0", "--json", *arguments
        )
        self.url = ready["url"]
        self.tls_url = ready.get("tls_url", "")
        """The URL with TLS, where the arguments give a port for it."""
        self.admin = Admin("127.0.0.1", ready["http_port"])

    def _start(self, module: str, *arguments: str) -> dict[str, Any]:
        """Run the module, and return the object that it prints when it is ready."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        ready: dict[str, Any] = json.loads(self._process.stdout.readline())
        return ready

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class RealBroker(SparkBroker):
    """A standalone Apache Pulsar, which can be killed and started again over what it stored."""

    name = "real"

    def __init__(self, folder: Path, authority: Authority) -> None:
        """The broker verifies tokens, and lets in clients without credentials. `folder` is for its key."""
        served = authority.issue("localhost", "127.0.0.1")
        key_file = folder / "secret.key"
        key_file.write_bytes(SECRET_KEY)
        (tls_port,) = free_ports(1)
        settings = {
            "brokerServicePortTls": str(tls_port),
            "tlsCertificateFilePath": str(served.certificate),
            "tlsKeyFilePath": str(served.key),
            "authenticationEnabled": "true",
            "authenticationProviders": f"{PROVIDERS}Token",
            "authenticationRefreshCheckSeconds": str(REFRESH_CHECK),
            "anonymousUserRole": "anonymous",
            "tokenSecretKey": key_file.as_uri(),
        }
        self._pulsar = RealPulsar(settings)
        self._pulsar.start()
        self.url = self._pulsar.url
        self.tls_url = f"pulsar+ssl://localhost:{tls_port}"
        self.admin = self._pulsar.admin

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        self._pulsar.kill()

    def start(self) -> None:
        """Again, on the same ports, over what was stored."""
        self._pulsar.start()

    def stop(self) -> None:
        self._pulsar.stop()
