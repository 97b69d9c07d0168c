"""Every name of the official client is one of ours, or has an entry that says what it is called here."""

import inspect
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

import pulsar_trio
from pulsar_sansio.model.message import OFFICIAL_NAMES as MESSAGE
from pulsar_trio import (
    Client,
    Consumer,
    ExclusiveConsumer,
    Message,
    Producer,
    Reader,
    TableView,
    UnknownName,
    official_names,
)
from pulsar_trio.client.options import (
    ClientOptions,
    ConsumerOptions,
    ProducerOptions,
    ReaderOptions,
    TableViewOptions,
)
from pulsar_trio.producing.producer import MessageFields


@pytest.mark.parametrize(
    ("function", "theirs", "options", "own"),
    [
        ("open_client", pulsar.Client.__init__, ClientOptions, set()),
        ("create_producer", pulsar.Client.create_producer, ProducerOptions, {"topic", "schema"}),
        ("subscribe", pulsar.Client.subscribe, ConsumerOptions, {"topic", "schema"}),
        ("create_reader", pulsar.Client.create_reader, ReaderOptions, {"topic", "schema"}),
        ("create_table_view", pulsar.Client.create_table_view, TableViewOptions, {"topic", "schema"}),
        ("send", pulsar.Producer.send, MessageFields, set()),
        ("send", pulsar.Producer.send_async, MessageFields, set()),
    ],
)
def test_arguments(function: str, theirs: Callable[..., Any], options: type, own: set[str]) -> None:
    names = set(inspect.signature(theirs).parameters) - {"self"}
    known = own | set(options.__annotations__)
    told = set(official_names.OPTIONS[function])
    assert names <= known | told
    assert not told & known, "what we have ourselves is no mistake"


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        (pulsar.Client, Client, official_names.CLIENT),
        (pulsar.Producer, Producer, official_names.PRODUCER),
        (pulsar.Consumer, ExclusiveConsumer, official_names.CONSUMER),
        (pulsar.Reader, Reader, official_names.READER),
        (pulsar.Message, Message, MESSAGE),
    ],
)
def test_attributes(theirs: type, ours: type, told: dict[str, str]) -> None:
    names = {name for name in vars(theirs) if not name.startswith("_")}
    own = set(dir(ours)) | {"data", "connected", "name", "topic", "subscription"}
    assert names <= own | set(told)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("AuthenticationAthenz", "AthenZ"),
        ("ServiceInfoProvider", "providers of an application's own"),
    ],
)
def test_the_error_for_a_missing_feature_names_it(name: str, missing: str) -> None:
    assert hasattr(pulsar, name)
    with pytest.raises(UnknownName, match=f"{missing} (is|are) not supported yet"):
        getattr(pulsar_trio, name)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("AuthenticationToken", "Token"),
        ("AuthenticationTLS", "MutualTls"),
        ("AuthenticationBasic", "Basic"),
        ("AuthenticationOauth2", "OAuth2"),
        ("AutoClusterFailover", "AutoFailover"),
    ],
)
def test_the_error_for_the_official_name_has_ours(name: str, ours: str) -> None:
    assert hasattr(pulsar, name)
    with pytest.raises(UnknownName, match=f"did you mean '{ours}'"):
        getattr(pulsar_trio, name)


def test_a_client_says_how_transactions_are_opened() -> None:
    with pytest.raises(UnknownName, match=r"async with client\.transaction\("):
        getattr(Client.__new__(Client), "new_transaction")  # noqa: B009


def test_hints_that_are_names_are_names_of_ours() -> None:
    for table, ours in (
        (official_names.CLIENT, Client),
        (official_names.CONSUMER, Consumer),
        (official_names.TABLE_VIEW, TableView),
        (MESSAGE, Message),
    ):
        names = {hint for hint in table.values() if hint.isidentifier()}
        assert names <= set(dir(ours)) | {"connected", "subscription"}
    for function, options in (
        ("create_producer", ProducerOptions),
        ("subscribe", ConsumerOptions),
        ("create_reader", ReaderOptions),
        ("create_table_view", TableViewOptions),
        ("send", MessageFields),
    ):
        hints = {hint for hint in official_names.OPTIONS[function].values() if hint.isidentifier()}
        assert hints <= set(options.__annotations__) | {"subscription", "start"}


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (pulsar.ConsumerType, {"shared", "key_shared", "exclusive", "failover"}),
        (pulsar.InitialPosition, {"earliest", "latest"}),
        (pulsar.CompressionType, {"none", "lz4", "zlib", "zstd", "snappy"}),
        (pulsar.ProducerAccessMode, {"shared", "exclusive", "wait_for_exclusive", "exclusive_with_fencing"}),
        (pulsar.PartitionsRoutingMode, {"round_robin", "single_partition"}),
    ],
)
def test_members_of_its_enumerations_are_understood(theirs: Any, words: set[str]) -> None:
    """Every member has a word here but that for a routing of one's own, which is a function."""
    for name, member in theirs.__members__.items():
        meant = official_names.word_meant(member, words)
        assert name == "CustomPartition" or any(meant == f"; did you mean {word!r}?" for word in words)
