"""`HttpUrl`: the URL of one HTTP request."""

from dataclasses import dataclass
from re import split
from urllib.parse import urljoin

from .errors import InvalidServiceUrl
from .service_url import Address, ServiceUrl


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """`http://host[:port]/path?query`, or `https://…` for TLS.

    `target`: path and query, as HTTP sends them.
    """

    tls: bool
    address: Address
    target: str

    @classmethod
    def parse(cls, text: str) -> "HttpUrl":
        """Parse a URL. Raises `InvalidServiceUrl`, which names the fault."""
        if not isinstance(text, str):
            raise InvalidServiceUrl(f"an HTTP URL is text, not {type(text).__name__}")
        scheme, _, rest = text.partition("://")
        host = split("[/?#]", rest, maxsplit=1)[0]
        url = ServiceUrl.parse(f"{scheme}://{host}")
        if not url.http or len(url.addresses) != 1:
            raise InvalidServiceUrl(f"URL of scheme {scheme[:20]!r}: it is http:// or https:// with one host")
        target = rest[len(host) :].partition("#")[0]
        if not target.startswith("/"):
            target = "/" + target
        if not all("!" <= character <= "~" for character in host + target):
            raise InvalidServiceUrl("an HTTP URL has characters that must be percent-encoded")
        return cls(url.tls, url.addresses[0], target)

    def joined(self, location: str) -> "HttpUrl":
        """Return the URL that a redirect from here leads to. Raises `InvalidServiceUrl`."""
        try:
            text = urljoin(str(self), location)
        except ValueError:
            raise InvalidServiceUrl(f"a redirect to {location[:200]!r}") from None
        return HttpUrl.parse(text)

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}{self.target}"
