"""Service URLs: what is accepted, and what each refusal says."""

import pytest

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidServiceUrl
from pulsar_sansio.model.service_url import Address, ServiceUrl

URLS = [
    ("pulsar://localhost", False, [Address("localhost", 6650)]),
    ("pulsar+ssl://localhost/", True, [Address("localhost", 6651)]),
    ("http://localhost", False, [Address("localhost", 80)]),
    ("https://a,b:8443", True, [Address("a", 443), Address("b", 8443)]),
    ("pulsar://b_1.münchen.example.", False, [Address("b_1.münchen.example.", 6650)]),
    ("pulsar://[fe80::1%eth0]", False, [Address("fe80::1%eth0", 6650)]),
    ("PULSAR://a:1,b,[::1]:65535", False, [Address("a", 1), Address("b", 6650), Address("::1", 65535)]),
]


@pytest.mark.parametrize(("text", "tls", "addresses"), URLS)
def test_service_urls(text: str, tls: bool, addresses: list[Address]) -> None:
    url = ServiceUrl.parse(text)
    assert (url.tls, list(url.addresses)) == (tls, addresses)
    assert url.http == text.startswith("http")
    assert ServiceUrl.parse(str(url)) == url


REFUSED_URLS = [
    ("localhost:6650", "no scheme"),
    ("ftp://localhost", "found 'ftp'"),
    ("http://localhost/admin", "nothing may follow"),
    ("pulsar://", "no host"),
    ("pulsar://a:0", "port 0"),
    ("pulsar://a:65536", "1 to 65535"),
    ("pulsar://a:-1", "1 to 65535"),
    ("pulsar://a:x", "1 to 65535"),
    ("pulsar://a:", "no port"),
    ("pulsar://a,,b", "no host"),
    ("pulsar://a b", "no host"),
    ("pulsar://a\0b", "no host"),
    ("pulsar://a%00b", "no host"),
    ("pulsar://a\\b", "no host"),
    ("pulsar://a\tb", "no host"),
    ("pulsar://a\x1bb", "no host"),
    ("pulsar://" + "a" * 10_000, "10009 characters, allowed are 8192"),
    ("pulsar://a/topic", "nothing may follow"),
    ("pulsar://a?x=1", "nothing may follow"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED_URLS)
def test_a_refused_url_says_what_is_allowed(text: str, words: str) -> None:
    """Rules CLIENT-03 and CFG-001."""
    with pytest.raises(InvalidServiceUrl, match=words):
        ServiceUrl.parse(text)


@pytest.mark.parametrize("text", ["pulsar://user:hunter2@a:6650", "ftp://user:hunter2@a"])
def test_a_secret_in_a_url_is_not_repeated(text: str) -> None:
    """Rule INV-X1."""
    with pytest.raises(InvalidServiceUrl) as caught:
        ServiceUrl.parse(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 7, b"pulsar://a"])
def test_a_url_is_text(value: object) -> None:
    with pytest.raises(InvalidConfiguration):
        ServiceUrl.parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["http://localhost", "https://localhost:6651", "localhost"])
def test_a_broker_is_not_asked_over_http(text: str) -> None:
    with pytest.raises(InvalidServiceUrl):
        ServiceUrl.of_broker(text)
