"""`ClientConfig`: a client's connections, its limits and the hosts that it trusts."""

from dataclasses import dataclass

from ..errors import InvalidConfiguration, InvalidServiceUrl
from ..http_url import HttpUrl
from ..service_url import ServiceUrl
from .checks import MAX_UINT63, duration, host_names, instance, integer, optional_text
from .failover import AutoFailover, ControlledFailover


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Options of one client.

    `operation_timeout`: seconds for any request, for creating a producer and for subscribing.
    `keepalive_interval`: seconds between probes; a peer silent for two of them is dropped.
    `connect_timeout`: seconds for opening a connection, handshake included.
    `connections_per_broker`: 1 to 64.
    `max_lookup_redirects`: redirects followed by one lookup.
    `max_pending_lookups`: lookups in flight on one connection; more wait their turn (rule CONN-14).
    `max_rejected_requests`: rejections within 60 s after which a connection is replaced (rule CONN-15).
    `initial_backoff`, `max_backoff`: seconds between attempts to reconnect.
    `max_message_size`: bytes; used until the broker announces its own limit.
    `memory_limit`: bytes of payload that all producers together hold in messages that are neither confirmed
    nor failed, 64 MiB as in the Java client; None for no limit. The client takes a single larger message when
    it holds nothing else. Metadata does not count, nor do the bytes that compression saves.
    `transactions`: whether the client opens transactions. Its producers say so to the broker, which otherwise
    would show messages of a transaction too early; so the default is False.
    `listener_name`: the advertised listener of a broker that lookups ask for; None for the broker's default.
    `max_announced_message_size`: bytes; the largest limit that the client accepts from a broker. The client
    may hold one frame of that size in memory, from any peer. A larger frame ends the connection.
    `max_partitions`: the most partitions that the client accepts for a topic; more is an error.
    `broker_hosts`: the hosts that a broker may send this client to, in answers to lookups and when it closes
    a producer or consumer. `"broker-1.example.com"` is that host, `".example.com"` is every host whose name
    ends so, and an IP address is itself. The hosts of the service URL are always among them. None allows
    every host to a client without credentials, as in other Pulsar clients. To a client with an
    `authentication_method`, None allows the hosts of the service URL alone: a peer that can answer a lookup
    must not choose the host that receives the credentials.
    `create_topics`: True lets the broker create a missing topic, where it is set up so, when the client asks
    for the topic's partitions or subscribes to it. Producers may always create topics. A broker older than
    Pulsar 3.3 (3.0.x has it too) cannot be asked for partitions without creating the topic.
    `authentication_method`: the name of the method by which the client shows its identity, such as "token",
    "basic" or "tls"; None for no credentials. The driver brings the credentials: see `CredentialsWanted`.
    `sni_proxy`: a proxy that routes TLS connections by their server name, `pulsar+ssl://host:port`. Every
    connection goes to the proxy, and its server name is the broker's host (Java's `ProxyProtocol.SNI`).
    `failover`: how the client changes to another cluster while it runs; None to stay.
    """

    service_url: str
    operation_timeout: float = 30.0
    keepalive_interval: float = 30.0
    connect_timeout: float = 10.0
    connections_per_broker: int = 1
    max_lookup_redirects: int = 20
    max_pending_lookups: int = 5000
    max_rejected_requests: int = 50
    initial_backoff: float = 0.1
    max_backoff: float = 60.0
    max_message_size: int = 5 * 1024 * 1024
    max_announced_message_size: int = 64 * 1024 * 1024
    transactions: bool = False
    listener_name: str | None = None
    memory_limit: int | None = 64 * 1024 * 1024
    max_partitions: int = 10_000
    broker_hosts: tuple[str, ...] | None = None
    create_topics: bool = True
    authentication_method: str | None = None
    sni_proxy: str | None = None
    failover: AutoFailover | ControlledFailover | None = None

    def __post_init__(self) -> None:
        ServiceUrl.parse(self.service_url)
        duration("operation_timeout", self.operation_timeout, minimum=0.001)
        duration("keepalive_interval", self.keepalive_interval, minimum=0.001)
        duration("connect_timeout", self.connect_timeout, minimum=0.001)
        integer("connections_per_broker", self.connections_per_broker, 1, 64)
        integer("max_lookup_redirects", self.max_lookup_redirects, 0, 100)
        integer("max_pending_lookups", self.max_pending_lookups, 1, 50_000)
        integer("max_rejected_requests", self.max_rejected_requests, 1, 1_000_000)
        duration("initial_backoff", self.initial_backoff, minimum=0.001)
        duration("max_backoff", self.max_backoff, minimum=self.initial_backoff)
        integer("max_message_size", self.max_message_size, 1024, 2**31 - 1 - 10_240)
        integer("max_announced_message_size", self.max_announced_message_size, 1024, 2**31 - 1 - 10_240)
        optional_text("listener_name", self.listener_name)
        if self.memory_limit is not None:
            integer("memory_limit", self.memory_limit, 1, MAX_UINT63)
        integer("max_partitions", self.max_partitions, 1, 2**31 - 1)
        if self.broker_hosts is not None:
            host_names("broker_hosts", self.broker_hosts)
        instance("create_topics", self.create_topics, bool, "True or False")
        optional_text("authentication_method", self.authentication_method)
        if self.sni_proxy is not None:
            self._check_sni_proxy(self.sni_proxy)
        if self.failover is not None:
            self._check_failover(self.failover)

    def _check_sni_proxy(self, url: str) -> None:
        proxy = ServiceUrl.of_broker(url)
        if not proxy.tls or len(proxy.addresses) != 1:
            raise InvalidServiceUrl(f"sni_proxy {url!r}: it is one host by pulsar+ssl://")
        if ServiceUrl.parse(self.service_url).scheme != "pulsar+ssl":
            raise InvalidConfiguration("sni_proxy needs a service URL of pulsar+ssl://")

    def _check_failover(self, failover: object) -> None:
        """Raise for clusters that a client must not change to.

        Credentials never go from TLS to a plain connection. They go to a host that a web service names only
        where the connection to the service is encrypted, or the hosts are limited.
        """
        service_url = ServiceUrl.parse(self.service_url)
        if isinstance(failover, AutoFailover):
            for text in failover.secondaries:
                url = ServiceUrl.parse(text)
                if self.sni_proxy is not None and url.scheme != "pulsar+ssl":
                    raise InvalidConfiguration(f"failover: sni_proxy needs pulsar+ssl://, not {text!r}")
                if self.authentication_method is not None and service_url.tls and not url.tls:
                    raise InvalidConfiguration(
                        f"failover: a client with credentials does not change from TLS to {text!r}"
                    )
        elif isinstance(failover, ControlledFailover):
            plain = not HttpUrl.parse(failover.url).tls
            if plain and self.authentication_method is not None and self.broker_hosts is None:
                service = HttpUrl.parse(failover.url).address  # a query may hold a credential
                raise InvalidConfiguration(
                    f"failover: {service} would choose the host that receives the credentials, and "
                    "is not encrypted; use https://, or limit the hosts by broker_hosts"
                )
        else:
            raise InvalidConfiguration(
                f"failover: an AutoFailover, a ControlledFailover or None, not {failover!r}"
            )
