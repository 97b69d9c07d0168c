"""`RealCluster`: ZooKeeper, a bookie and two brokers, each a JVM that can be stopped and started again."""

import atexit
import http.client
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.real_pulsar.admin import Admin, AdminError
from tests.real_pulsar.jars import Unavailable
from tests.real_pulsar.java_process import START_SOON, JavaProcess
from tests.real_pulsar.server import free_ports
from tests.security.certificates import Authority
from tests.security.secure_pulsar import PROVIDERS, SECRET_KEY, token_of

START_TIMEOUT = 240.0
"""Seconds until a process is ready: 5 to 10 on two idle cores."""

SESSION_TIMEOUT = 6000
"""Milliseconds that the metadata store waits for a broker before another one takes its topics."""

NAMESPACE = "public/load"
BUNDLES = 8

_QUORUM = {
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
}


class Broker:
    """One broker: its process, its ports, and its name for clients that come through a proxy with SNI."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.port, self.web_port, self.tls_port, self.web_port_tls = free_ports(4)
        self.name = f"broker-{number}.example"
        self.process: JavaProcess | None = None


class RealCluster:
    """A context manager that starts a cluster. `secure`: with TLS, tokens and permissions.

    The role `worker` may produce and consume in `NAMESPACE`. Data stays while the cluster lives.
    """

    def __init__(self, *, secure: bool) -> None:
        self.secure = secure
        self.folder = Path(tempfile.mkdtemp(prefix="real-cluster-"))
        self.authority = Authority(self.folder)
        self._zookeeper_port, self._bookie_port = free_ports(2)
        self.brokers = [Broker(0), Broker(1)]
        self._zookeeper: JavaProcess | None = None
        self._bookie: JavaProcess | None = None
        self._token = token_of("admin") if secure else None
        self.tokens_issued = 0
        """The tokens of the role `worker` that clients have asked for."""

    # --- addresses -----------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The service URL that names both brokers."""
        if self.secure:
            return f"pulsar+ssl://{','.join(f'localhost:{each.tls_port}' for each in self.brokers)}"
        return f"pulsar://{','.join(f'localhost:{each.port}' for each in self.brokers)}"

    @property
    def http_url(self) -> str:
        """The service URL for lookups over HTTP, of both brokers."""
        if self.secure:
            return f"https://{','.join(f'localhost:{each.web_port_tls}' for each in self.brokers)}"
        return f"http://{','.join(f'localhost:{each.web_port}' for each in self.brokers)}"

    def issue_token(self, seconds: float) -> str:
        """Return a token of the role `worker`, which expires after so many seconds."""
        self.tokens_issued += 1
        return token_of("worker", seconds)

    def admin(self) -> Admin:
        """The administration of a broker that serves."""
        for broker in self.brokers:
            if broker.process is not None:
                return Admin("127.0.0.1", broker.web_port, self._token)
        raise AssertionError("no broker runs")

    # --- life ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        atexit.register(self.stop)
        try:
            self.start_zookeeper()
            self._set_up_metadata()
            self.start_bookie()
            for broker in self.brokers:
                self._launch_broker(broker)
            for broker in self.brokers:
                self._wait_for_broker(broker)
            self._create_namespace()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all processes for good, and remove the data."""
        for broker in self.brokers:
            self.kill_broker(broker)
        for process in (self._bookie, self._zookeeper):
            if process is not None:
                process.end(signal.SIGKILL)
        self._bookie = self._zookeeper = None
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def start_zookeeper(self) -> None:
        folder = self.folder / "zookeeper"
        lines = {
            "tickTime": "500",
            "dataDir": str(folder / "data"),
            "clientPort": str(self._zookeeper_port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
        }
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = self._launch(main, [_written(folder / "zoo.cfg", lines)], folder, 128)
        _wait_for(self._zookeeper, "ZooKeeper", lambda: _listens(self._zookeeper_port))

    def stop_zookeeper(self) -> None:
        """End the metadata store at once; its data stays."""
        assert self._zookeeper is not None
        self._zookeeper.end(signal.SIGKILL)
        self._zookeeper = None

    def start_bookie(self) -> None:
        folder = self.folder / "bookie"
        lines = {
            "metadataServiceUri": f"zk+null://127.0.0.1:{self._zookeeper_port}/ledgers",
            "bookiePort": str(self._bookie_port),
            "httpServerEnabled": "false",
            "allowLoopback": "true",
            "listeningInterface": "lo",
            "advertisedAddress": "127.0.0.1",
            "nettyMaxFrameSizeBytes": "5253120",
            "journalDirectories": str(folder / "journal"),
            "ledgerDirectories": str(folder / "ledgers"),
            "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            "dbStorage_writeCacheMaxSizeMb": "32",
            "dbStorage_readAheadCacheMaxSizeMb": "16",
            "dbStorage_rocksDB_blockCacheSize": "8388608",
            "zkTimeout": str(SESSION_TIMEOUT),
            "diskUsageThreshold": "0.99",
            "diskUsageWarnThreshold": "0.98",
        }
        configuration = _written(folder / "bk.conf", lines)
        arguments = ["--conf", configuration]
        self._bookie = self._launch("org.apache.bookkeeper.server.Main", arguments, folder, 192)
        _wait_for(self._bookie, "the bookie", lambda: _listens(self._bookie_port))

    def stop_bookie(self) -> None:
        """End the bookie in order; its data stays."""
        assert self._bookie is not None
        self._bookie.end(signal.SIGTERM)
        self._bookie = None

    def start_broker(self, broker: Broker) -> None:
        self._launch_broker(broker)
        self._wait_for_broker(broker)

    def kill_broker(self, broker: Broker) -> None:
        """SIGKILL: the broker's clients see connections that end, and its topics move."""
        if broker.process is not None:
            broker.process.end(signal.SIGKILL)
            broker.process = None

    def stop_broker(self, broker: Broker) -> None:
        """SIGTERM: the broker gives its topics up in order, as in a rolling restart."""
        assert broker.process is not None
        broker.process.end(signal.SIGTERM)
        broker.process = None

    def owner_of(self, topic: str) -> Broker:
        """Return the broker that serves the topic, which a client uses now."""
        path = topic.replace("://", "/", 1)
        url = self.admin().request("GET", f"/lookup/v2/topic/{path}")["brokerUrl"]
        return next(each for each in self.brokers if url.endswith(f":{each.port}"))

    def unload_namespace(self) -> None:
        """Every bundle is closed where it is, and opened by a broker that the cluster chooses."""
        self.admin().request("PUT", f"/admin/v2/namespaces/{NAMESPACE}/unload", timeout=120.0)

    # --- inside --------------------------------------------------------------------------------------------

    def _launch(self, main: str, arguments: list[str], folder: Path, megabytes: int) -> JavaProcess:
        memory = [f"-Xmx{megabytes}m", f"-XX:MaxDirectMemorySize={megabytes}m"]
        process = JavaProcess(main, arguments, folder, [*memory, *START_SOON], self.folder)
        process.launch()
        return process

    def _set_up_metadata(self) -> None:
        store = f"zk:127.0.0.1:{self._zookeeper_port}"
        first = self.brokers[0]
        arguments = [
            *("--cluster", "real", "--metadata-store", store, "--configuration-metadata-store", store),
            *("--web-service-url", f"http://localhost:{first.web_port}"),
            *("--broker-service-url", f"pulsar://localhost:{first.port}"),
        ]
        main = "org.apache.pulsar.PulsarClusterMetadataSetup"
        process = self._launch(main, arguments, self.folder / "setup", 128)
        deadline = time.monotonic() + START_TIMEOUT
        while not process.ended():
            if time.monotonic() > deadline:
                raise Unavailable(f"the metadata of the cluster: {process.last_output()}")
            time.sleep(0.1)
        process.end(signal.SIGKILL)

    def _launch_broker(self, broker: Broker) -> None:
        assert broker.process is None
        folder = self.folder / f"broker-{broker.number}"
        store = f"zk:127.0.0.1:{self._zookeeper_port}"
        lines = {
            "clusterName": "real",
            "metadataStoreUrl": store,
            "configurationMetadataStoreUrl": store,
            "metadataStoreSessionTimeoutMillis": str(SESSION_TIMEOUT),
            "zookeeperSessionExpiredPolicy": "reconnect",
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "localhost",
            "brokerServicePort": str(broker.port),
            "webServicePort": str(broker.web_port),
            **_QUORUM,
            "numIOThreads": "2",
            "numHttpServerThreads": "16",
            "managedLedgerCacheSizeMB": "32",
            "topicLevelPoliciesEnabled": "false",
            "systemTopicEnabled": "false",
            "transactionCoordinatorEnabled": "false",
            "webSocketServiceEnabled": "false",
            "functionsWorkerEnabled": "false",
            "loadBalancerSheddingEnabled": "false",
            "loadBalancerAutoBundleSplitEnabled": "false",
            "brokerDeleteInactiveTopicsEnabled": "false",
            "brokerShutdownTimeoutMs": "10000",
            **(self._security(broker) if self.secure else {}),
        }
        configuration = _written(folder / "broker.conf", lines)
        arguments = ["--broker-conf", configuration]
        broker.process = self._launch("org.apache.pulsar.PulsarBrokerStarter", arguments, folder, 384)

    def _security(self, broker: Broker) -> Mapping[str, str]:
        """TLS, tokens and permissions; two names for the broker, the second one for clients with SNI."""
        served = self.authority.issue("localhost", "127.0.0.1", broker.name)
        key_file = self.folder / "secret.key"
        key_file.write_bytes(SECRET_KEY)
        inside = f"inside:pulsar://localhost:{broker.port},inside:pulsar+ssl://localhost:{broker.tls_port}"
        return {
            "advertisedListeners": f"{inside},outside:pulsar+ssl://{broker.name}:{broker.tls_port}",
            "internalListenerName": "inside",
            "brokerServicePortTls": str(broker.tls_port),
            "webServicePortTls": str(broker.web_port_tls),
            "tlsCertificateFilePath": str(served.certificate),
            "tlsKeyFilePath": str(served.key),
            "tlsTrustCertsFilePath": str(self.authority.file),
            "authenticationEnabled": "true",
            "authenticationProviders": f"{PROVIDERS}Token",
            "authenticationRefreshCheckSeconds": "1",
            "authorizationEnabled": "true",
            "tokenSecretKey": key_file.as_uri(),
            "superUserRoles": "admin",
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{self._token}",
        }

    def _wait_for_broker(self, broker: Broker) -> None:
        assert broker.process is not None
        admin = Admin("127.0.0.1", broker.web_port, self._token)

        def serves() -> bool:
            try:
                admin.request("GET", "/admin/v2/brokers/health", timeout=5.0)
            except (OSError, http.client.HTTPException, AdminError):
                return False
            return True

        _wait_for(broker.process, f"broker {broker.number}", serves)

    def _create_namespace(self) -> None:
        policies = {"bundles": {"numBundles": BUNDLES}}
        self.admin().request("PUT", f"/admin/v2/namespaces/{NAMESPACE}", policies)
        if self.secure:
            path = f"/admin/v2/namespaces/{NAMESPACE}/permissions/worker"
            self.admin().request("POST", path, ["produce", "consume"])


def _written(path: Path, lines: Mapping[str, str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return str(path)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def _wait_for(process: JavaProcess, name: str, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not ready():
        if process.ended():
            raise Unavailable(f"{name} ended while it started: {process.last_output()}")
        if time.monotonic() > deadline:
            raise Unavailable(f"{name} was not ready in {START_TIMEOUT:.0f} s: {process.last_output()}")
        time.sleep(0.2)
