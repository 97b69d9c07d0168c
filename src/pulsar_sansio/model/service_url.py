"""`ServiceUrl`: the hosts that a client connects to first."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from .errors import InvalidServiceUrl

_DEFAULT_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651, "http": 80, "https": 443}

_KEPT = 64
"""URLs remembered: a client is sent to the same few brokers again and again."""

MAX_URL = 8192
"""Characters of a URL, which may name many hosts. Brokers name URLs, and the client keeps `_KEPT` of them."""

_NAME = re.compile(r"[\w.-]+")
_IPV6 = re.compile(r"[0-9a-f:.]+(%[\w.-]+)?")
"""The forms of a host. A resolver reads other text in ways of its own: up to a NUL, or with escapes. It could
find another host than the one that was checked."""


class Address(NamedTuple):
    """A host and port as text and number; the host is not resolved."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """`pulsar://host[:port][,host[:port]…]`, or `pulsar+ssl://…` for TLS.

    `http://…` and `https://…` are for lookups over HTTP. Default ports are 6650, 6651, 80 and 443, as in the
    Java client. Several hosts are tried in turn.
    """

    tls: bool
    addresses: tuple[Address, ...]
    http: bool = False
    """True for a URL whose hosts are asked over HTTP; the brokers that they name are not."""

    @classmethod
    def parse(cls, text: str) -> "ServiceUrl":
        """Parse a URL. Raises `InvalidServiceUrl`, which names the fault and the allowed values."""
        if not isinstance(text, str):
            raise InvalidServiceUrl(f"a service URL is text, not {type(text).__name__}")
        if len(text) > MAX_URL:
            raise InvalidServiceUrl(f"a service URL of {len(text)} characters, allowed are {MAX_URL}")
        return _parse(text)

    @classmethod
    def of_broker(cls, text: str) -> "ServiceUrl":
        """Parse the URL of a broker, which is not one of HTTP. Raises `InvalidServiceUrl`."""
        url = cls.parse(text)
        if url.http:
            raise InvalidServiceUrl(f"URL {text!r}: a broker's begins with pulsar:// or pulsar+ssl://")
        return url

    @property
    def scheme(self) -> str:
        """The part before `://`."""
        if self.http:
            return "https" if self.tls else "http"
        return "pulsar+ssl" if self.tls else "pulsar"

    def __str__(self) -> str:
        return f"{self.scheme}://{','.join(map(str, self.addresses))}"


@lru_cache(_KEPT)
def _parse(text: str) -> ServiceUrl:
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS:
        named = repr(scheme) if separator else "no scheme"
        raise InvalidServiceUrl(
            f"service URL {_without_user(text)!r}: it begins with pulsar://, pulsar+ssl://, http:// or "
            f"https://, found {named}"
        )
    if "@" in rest:
        raise InvalidServiceUrl(f"service URL of scheme {scheme}: credentials do not belong in the URL")
    rest = rest.removesuffix("/")
    if "/" in rest or "?" in rest or "#" in rest:
        raise InvalidServiceUrl(f"service URL {text!r}: nothing may follow the hosts and ports")
    addresses = tuple(_parse_address(text, scheme, part) for part in rest.split(","))
    return ServiceUrl(scheme in ("pulsar+ssl", "https"), addresses, scheme.startswith("http"))


def _without_user(text: str) -> str:
    """Return the part of a URL that errors quote: the part before an @ may be a secret."""
    return text.rpartition("@")[2]


def _parse_address(url: str, scheme: str, part: str) -> Address:
    try:
        split = urlsplit(f"//{part}")
        host, port = split.hostname, split.port
    except ValueError:
        raise InvalidServiceUrl(
            f"service URL {url!r}: {part!r} is not host or host:port with a port of 1 to 65535"
        ) from None
    form = _IPV6 if part.startswith("[") else _NAME
    if not host or not form.fullmatch(host) or not part.isprintable():
        raise InvalidServiceUrl(f"service URL {url!r}: {part!r} has no host name")
    if port is None:
        if part.endswith(":"):
            raise InvalidServiceUrl(f"service URL {url!r}: {part!r} has no port after the colon")
        port = _DEFAULT_PORTS[scheme]
    if port == 0:
        raise InvalidServiceUrl(f"service URL {url!r}: port 0 is out of range, allowed are 1 to 65535")
    return Address(host, port)
