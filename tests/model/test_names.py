"""Topic names and service URLs: what is accepted, and what each refusal says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidServiceUrl, InvalidTopicName
from pulsar_sansio.model.service_url import Address, ServiceUrl
from pulsar_sansio.model.topic_name import TopicName

EXPANSIONS = [
    ("x", "persistent://public/default/x"),
    ("t/n/x", "persistent://t/n/x"),
    ("persistent://t/n/x", "persistent://t/n/x"),
    ("non-persistent://t/n/x", "non-persistent://t/n/x"),
    ("a b#ü", "persistent://public/default/a b#ü"),
]


@pytest.mark.parametrize(("text", "full"), EXPANSIONS)
def test_short_names_grow_to_the_full_form(text: str, full: str) -> None:
    """Rules TOPIC-01, TOPIC-02 and GAP-20."""
    assert str(TopicName.parse(text)) == full
    assert str(TopicName.parse(full)) == full


REFUSED_NAMES = [
    ("", "empty"),
    ("   ", "empty"),
    ("a/b", "short name"),
    ("a/b/c/d", "short name"),
    ("http://t/n/x", "domain"),
    ("topic://t/n/x", "domain"),
    ("persistent://t/n", "full form"),
    ("persistent://t/n/", "empty"),
    ("persistent:///n/x", "tenant"),
    ("persistent://t//x", "namespace"),
    ("persistent://t n/n/x", "tenant"),
    ("persistent://t/c/n/x", "V1"),
]


@pytest.mark.parametrize(("text", "word"), REFUSED_NAMES)
def test_a_refused_name_says_which_part_is_wrong(text: str, word: str) -> None:
    with pytest.raises(InvalidTopicName, match=word):
        TopicName.parse(text)


PARTITIONS = [
    ("x-partition-0", 0, "x"),
    ("x-partition-12", 12, "x"),
    ("x-partition-00", -1, "x-partition-00"),
    ("x-partition-", -1, "x-partition-"),
    ("x-partition--1", -1, "x-partition--1"),
    ("x-partition-1-partition-2", 2, "x-partition-1"),
    ("x-partition-١", -1, "x-partition-١"),
    ("x", -1, "x"),
]


@pytest.mark.parametrize(("local", "partition", "base"), PARTITIONS)
def test_partition_suffix(local: str, partition: int, base: str) -> None:
    """Rule TOPIC-04."""
    name = TopicName.parse(local)
    assert (name.partition, name.base.local) == (partition, base)


@given(st.integers(0, 10_000))
def test_partition_names_come_back(index: int) -> None:
    """Rule TOPIC-03."""
    name = TopicName.parse("t/n/orders")
    partition = name.partition_name(index)
    assert (partition.partition, partition.base) == (index, name)


@given(st.text())
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidTopicName:
        return
    assert TopicName.parse(str(name)) == name


URLS = [
    ("pulsar://localhost", False, [Address("localhost", 6650)]),
    ("pulsar+ssl://localhost/", True, [Address("localhost", 6651)]),
    ("http://localhost", False, [Address("localhost", 80)]),
    ("https://a,b:8443", True, [Address("a", 443), Address("b", 8443)]),
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
    ("pulsar://a/topic", "nothing may follow"),
    ("pulsar://a?x=1", "nothing may follow"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED_URLS)
def test_a_refused_url_says_what_is_allowed(text: str, words: str) -> None:
    """Rules CLIENT-03 and CFG-001."""
    with pytest.raises(InvalidServiceUrl, match=words):
        ServiceUrl.parse(text)


@pytest.mark.parametrize("text", ["http://localhost", "https://localhost:6651", "localhost"])
def test_a_broker_is_not_asked_over_http(text: str) -> None:
    with pytest.raises(InvalidServiceUrl):
        ServiceUrl.of_broker(text)


@pytest.mark.parametrize("text", ["pulsar://user:hunter2@a:6650", "ftp://user:hunter2@a"])
def test_a_secret_in_a_url_is_not_repeated(text: str) -> None:
    """Rule INV-X1."""
    with pytest.raises(InvalidServiceUrl) as caught:
        ServiceUrl.parse(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 7, b"pulsar://a"])
def test_names_are_text(value: object) -> None:
    with pytest.raises(InvalidConfiguration):
        ServiceUrl.parse(value)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration):
        TopicName.parse(value)  # type: ignore[arg-type]
