"""`HttpScript`: plays web servers to a client with an `http://` service URL, line by line."""

import json
from dataclasses import dataclass
from typing import Any

import h11

from pulsar_sansio.client.outputs import Connect, CredentialsWanted, Disconnect
from pulsar_sansio.model.errors import PulsarError
from pulsar_sansio.model.service_url import Address
from tests.client.script import Script

HTTP = "http://web:8080"
WEB = Address("web", 8080)
HTTPS = "https://web:8443"
BROKER = "pulsar://web:6650"
BROKER_TLS = "pulsar+ssl://web:6651"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the client."""

    link: int
    target: str
    headers: dict[str, str]


class HttpScript(Script):
    """One client that looks up over HTTP."""

    def __init__(self, url: str = HTTP, **options: Any) -> None:
        super().__init__(service_url=url, **options)

    def connecting(self, address: Address = WEB, tls_name: str | None = None) -> int:
        """Check that the client asks for one link to this address; return the link."""
        connect = self.expect_one(Connect)
        assert (connect.address, connect.tls_name) == (address, tls_name)
        return connect.link

    def asked(self, address: Address = WEB, tls_name: str | None = None) -> Asked:
        """Open the link that the client asks for, and return its request."""
        link = self.connecting(address, tls_name)
        self.open(link)
        return self.request(link)

    def wanted(self) -> CredentialsWanted:
        """Open an encrypted link, over which credentials have to be sent."""
        link = self.connecting(Address("web", 8443), "web")
        self.open(link)
        return self.expect_one(CredentialsWanted)

    def request(self, link: int) -> Asked:
        """Return the request that the client wrote."""
        self.drain()
        server = h11.Connection(h11.SERVER)
        server.receive_data(self.written.pop(link))
        head = server.next_event()
        assert isinstance(head, h11.Request), head
        assert isinstance(server.next_event(), h11.EndOfMessage)
        assert head.method == b"GET"
        headers = {name.decode(): value.decode() for name, value in head.headers}
        return Asked(link, head.target.decode(), headers)

    def answer(self, link: int, value: object, status: int = 200, *headers: str) -> None:
        """Answer with JSON; the client ends the link."""
        self.feed(link, response(json.dumps(value).encode(), status, *headers))
        self.ended(link)

    def ended(self, link: int) -> None:
        """Check that the client has ended the link."""
        self.drain()
        ends = [each for each in self.outputs if isinstance(each, Disconnect) and each.link == link]
        assert len(ends) == 1, self.outputs
        self.outputs.remove(ends[0])
        assert link not in self.client.links


def response(body: bytes, status: int = 200, *headers: str) -> bytes:
    """Return an answer of a web server."""
    lines = [f"HTTP/1.1 {status} whatever", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def found(url: str = BROKER, tls_url: str = BROKER_TLS) -> dict[str, str]:
    """Return LookupData."""
    return {"brokerUrl": url, "brokerUrlTls": tls_url, "nativeUrl": url, "brokerUrlSsl": ""}


def count(script: HttpScript) -> int:
    """Ask for partitions; the request is next."""
    return script.client.partitions(script.now, "demo")


def failure(script: HttpScript) -> PulsarError:
    """Return the error of the lookup's only attempt: that of the request, or that of a retry's notice."""
    outputs = [*script.said(), *script.notices]
    (error,) = [each.error for each in outputs if hasattr(each, "error")]
    assert isinstance(error, PulsarError)
    return error


def two_hosts(**options: Any) -> tuple[HttpScript, int, Address]:
    """A client that asks one of two hosts; the link and the other host."""
    script = HttpScript("http://a:1,b:2", **options)
    count(script)
    connect = script.expect_one(Connect)
    hosts = [Address("a", 1), Address("b", 2)]
    hosts.remove(connect.address)
    return script, connect.link, hosts[0]
