"""`Redirection`: a limited number of brokers that brokers name is followed in a row."""

from typing import Any

import pytest

from pulsar_sansio.client.attaching.redirection import Redirection
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.model.errors import RemoteProtocolError
from pulsar_sansio.model.service_url import Address
from tests.client.script import Script

OTHER = "pulsar://other:6651"


def redirected(**config: Any) -> tuple[Redirection, Connection]:
    """The redirections of a producer, and the connection on which brokers name others."""
    script = Script(**config)
    _, link = script.ready_producer()
    return Redirection(script.client._services), script.connection(link)


def test_a_named_broker_is_followed() -> None:
    redirection, connection = redirected()
    assert redirection.assigned(OTHER, connection) == (Address("other", 6651), Address("other", 6651))


def test_no_name_leads_nowhere() -> None:
    redirection, connection = redirected()
    assert redirection.assigned(None, connection) is None


def test_so_many_are_followed_until_the_next_backoff() -> None:
    redirection, connection = redirected(max_lookup_redirects=2)
    followed = [redirection.assigned(OTHER, connection) is not None for _ in range(4)]
    assert followed == [True, True, False, False]
    redirection.waited()
    assert redirection.assigned(OTHER, connection) is not None


def test_a_close_without_a_name_counts_too() -> None:
    redirection, connection = redirected(max_lookup_redirects=2)
    redirection.assigned(None, connection)
    redirection.assigned(None, connection)
    assert redirection.assigned(OTHER, connection) is None


def test_a_url_of_another_scheme_is_refused() -> None:
    redirection, connection = redirected()
    with pytest.raises(RemoteProtocolError):
        redirection.assigned("http://other", connection)


def test_a_migrated_topic_is_asked_for_in_the_other_cluster() -> None:
    redirection, connection = redirected()
    redirection.migrated(OTHER)
    assert redirection.cluster == Address("other", 6651)
    assert redirection.assigned("pulsar://old:6650", connection) is None, "the old cluster names no brokers"
    redirection.waited()
    assert redirection.assigned("pulsar://new:6650", connection) is not None


@pytest.mark.parametrize("url", ["", "http://other", "pulsar+ssl://other"])
def test_a_refused_url_of_a_cluster_changes_nothing(url: str) -> None:
    redirection, connection = redirected()
    redirection.migrated(url)
    assert redirection.cluster is None
    assert redirection.assigned(OTHER, connection) is not None
