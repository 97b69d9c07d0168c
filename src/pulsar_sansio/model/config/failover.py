"""`AutoFailover` and `ControlledFailover`: how a client chooses between clusters while it runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidConfiguration
from ..http_url import HttpUrl
from ..secret import Secret
from ..service_url import ServiceUrl
from .checks import duration


@dataclass(frozen=True, slots=True)
class AutoFailover:
    """Leave a cluster that is not available, and come back later (Java's `AutoClusterFailover`).

    The client's service URL is the primary cluster. `secondaries`: service URLs in the order of preference.
    Every `check_interval` seconds the client probes the cluster in use: it is available when one of its hosts
    accepts a connection with TLS and CONNECT. After `failover_delay` seconds of failed probes the client
    changes to the first other cluster that is available. It changes back when the probes of the primary have
    succeeded for `switch_back_delay` seconds.
    """

    secondaries: tuple[str, ...]
    failover_delay: float = 30.0
    switch_back_delay: float = 60.0
    check_interval: float = 30.0

    def __post_init__(self) -> None:
        urls = self.secondaries
        if not isinstance(urls, tuple) or not urls:
            raise InvalidConfiguration(f"failover.secondaries: a tuple of service URLs, not {urls!r}")
        for url in urls:
            ServiceUrl.parse(url)
        duration("failover.failover_delay", self.failover_delay, minimum=0.001)
        duration("failover.switch_back_delay", self.switch_back_delay, minimum=0.001)
        duration("failover.check_interval", self.check_interval, minimum=0.001)


@dataclass(frozen=True, slots=True)
class ControlledFailover:
    """Use the cluster that a web service names (Java's `ControlledClusterFailover`).

    Every `check_interval` seconds, and once at the beginning, the client asks for `url`, which is http:// or
    https://. The answer is JSON, `{"serviceUrl": "pulsar+ssl://host:6651"}`. An answer without a service URL
    changes nothing. `headers`: further headers of the request, such as an API key; their values become
    secrets, so that a client with headers cannot be pickled.
    """

    url: str
    check_interval: float = 30.0
    headers: Mapping[str, Secret | str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        HttpUrl.parse(self.url)
        duration("failover.check_interval", self.check_interval, minimum=0.001)
        if not isinstance(self.headers, Mapping):
            raise InvalidConfiguration("failover.headers: a mapping of names to values")
        secrets = {_header_name(name): _header_value(name, value) for name, value in self.headers.items()}
        object.__setattr__(self, "headers", secrets)  # text would be in pickles


def _header_name(name: object) -> str:
    if not isinstance(name, str) or not name.isascii() or not re.fullmatch(r"[\w-]*[^\W_][\w-]*", name):
        raise InvalidConfiguration(f"failover.headers: {name!r} is no name of a header")
    return name


def _header_value(name: str, value: Secret | str) -> Secret:
    secret = Secret(value)
    data = secret.reveal()
    if data != data.strip() or not all(32 <= byte < 127 for byte in data):
        raise InvalidConfiguration(f"failover.headers: the value of {name!r} is no value of a header")
    return secret
