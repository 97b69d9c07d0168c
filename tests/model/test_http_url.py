"""`HttpUrl`: the URLs of HTTP requests and redirects."""

import pytest

from pulsar_sansio.model.errors import InvalidServiceUrl
from pulsar_sansio.model.http_url import HttpUrl
from pulsar_sansio.model.service_url import Address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://host", HttpUrl(False, Address("host", 80), "/")),
        ("https://host:8443/a/b?c=d#e", HttpUrl(True, Address("host", 8443), "/a/b?c=d")),
        ("HTTP://[::1]:1/%C3%BC", HttpUrl(False, Address("::1", 1), "/%C3%BC")),
        ("http://host?x", HttpUrl(False, Address("host", 80), "/?x")),
    ],
)
def test_urls(text: str, expected: HttpUrl) -> None:
    assert HttpUrl.parse(text) == expected
    assert HttpUrl.parse(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pulsar://host",
        "host/path",
        "http://",
        "http://a,b/",
        "http://user:secret@host/",
        "http://host:0/",
        "http://host/a b",
        "http://host/ü",
        "http://höst/",
        "http://host/\r\nX: y",
    ],
)
def test_refused_urls(text: str) -> None:
    with pytest.raises(InvalidServiceUrl) as caught:
        HttpUrl.parse(text)
    assert "secret" not in str(caught.value)


def test_a_url_is_text() -> None:
    with pytest.raises(InvalidServiceUrl):
        HttpUrl.parse(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://other:1/x", "https://other:1/x"),
        ("/x?y", "http://host:8080/x?y"),
        ("//other/x", "http://other:80/x"),
        ("c", "http://host:8080/a/c"),
        ("../../../c", "http://host:8080/c"),
        ("", "http://host:8080/a/b"),
    ],
)
def test_a_redirect_may_be_relative(location: str, expected: str) -> None:
    assert str(HttpUrl.parse("http://host:8080/a/b").joined(location)) == expected


@pytest.mark.parametrize("location", ["ftp://host/", "http://[/", "http://host:99999/", "javascript:x"])
def test_an_unusable_redirect(location: str) -> None:
    with pytest.raises(InvalidServiceUrl):
        HttpUrl.parse("http://host:8080/a/b").joined(location)
