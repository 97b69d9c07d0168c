"""`Links`: the links of a client, and what was unwritten when one ended."""

from typing import Any, cast

from pulsar_sansio.client.connecting.links import Links
from pulsar_sansio.model.errors import ConnectionLost, PulsarError
from pulsar_sansio.model.service_url import Address

HERE = Address("here", 1)
THERE = Address("there", 1)


class Owner:
    """A link's owner with chunks to write; `close` may end other links first."""

    def __init__(self, links: Links, link: int, physical: Address = HERE, *chunks: bytes) -> None:
        self.links = links
        self.link = link
        self.physical = physical
        self.ready = True
        self.chunks = list(chunks)
        self.causes: list[PulsarError] = []
        links.open[link] = cast(Any, self)

    def data_to_send(self) -> list[bytes]:
        chunks, self.chunks = self.chunks, []
        return chunks

    def close(self, cause: PulsarError, *, already_gone: bool = False) -> None:
        self.causes.append(cause)
        self.links.ended(cast(Any, self), already_gone=already_gone)


def test_what_is_unwritten_is_kept_for_a_link_that_the_client_ends() -> None:
    links = Links()
    Owner(links, 1, HERE, b"last", b"words").close(ConnectionLost("x"))
    Owner(links, 2).close(ConnectionLost("x"))
    assert links.open == {}
    assert links.left == {1: [b"last", b"words"]}


def test_nothing_is_kept_for_a_link_that_is_gone_already() -> None:
    links = Links()
    Owner(links, 1, HERE, b"last").close(ConnectionLost("x"), already_gone=True)
    assert links.left == {}


def test_an_address_is_ready_with_any_ready_link() -> None:
    links = Links()
    owner = Owner(links, 1)
    Owner(links, 2).ready = False
    assert links.is_ready(HERE)
    assert not links.is_ready(THERE)
    owner.ready = False
    assert not links.is_ready(HERE)


def test_all_links_end_with_one_cause() -> None:
    """POOL-12: closing the client closes every connection."""
    links = Links()
    owners = [Owner(links, number) for number in range(3)]
    cause = ConnectionLost("closed")
    links.close_all(cause)
    assert [owner.causes for owner in owners] == [[cause]] * 3
    assert links.open == {}
