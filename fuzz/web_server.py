"""A hostile web server against the lookups of a client over HTTP: any bytes are an answer, or an error."""

import json

from pulsar_sansio import Client, ClientConfig, TopicDomain
from pulsar_sansio.client.outputs import (
    Connect,
    Disconnect,
    RequestDone,
    RequestFailed,
    Retrying,
    Transmit,
)

SECOND = 1_000_000_000

MAX_OUTPUTS = 8
"""Outputs that one answer may bring: a request to connect, to write and to disconnect, and an outcome."""


def answer(data: bytes) -> None:
    """Answer a lookup by bytes, whole or in two reads.

    The first byte says where the bytes are cut, and the second which lookup is asked. Both readings have the
    same outcome. A result is what the JSON of the bytes says.
    """
    if len(data) < 2:
        return
    kind, stream = data[1] % 2, data[2:]
    cut = data[0] % (len(stream) + 1)
    whole, pieces = _outcome(kind, [stream]), _outcome(kind, [stream[:cut], stream[cut:]])
    assert whole == pieces
    if whole.startswith("done "):
        assert b"200" in stream
        json.loads(whole.removeprefix("done "))


def _outcome(kind: int, reads: list[bytes]) -> str:
    """Feed the reads and the end of the stream; return the outcome in words."""
    config = ClientConfig("http://web", broker_hosts=(), max_partitions=100)
    client = Client(0, config, seed=1)
    if kind:
        client.topics(0, "public/default", TopicDomain.ALL)
    else:
        client.partitions(0, "t")
    link, outcome = _heard(client)
    assert link
    assert not outcome
    client.connected(1, link)
    _heard(client)
    for read in reads:
        if read:
            client.receive_data(2, link, read)
    client.receive_eof(2, link)
    following, outcome = _heard(client)
    if following:  # a redirect within the service URL
        assert client.links == (following,)
        client.disconnected(3, following, "refused")
        return f"redirected {_heard(client)[1][:6]}"
    assert outcome, "neither a result nor an error"
    assert client.links == ()
    return outcome


def _heard(client: Client) -> tuple[int, str]:
    """Take the outputs; return the link that is asked for, and the outcome."""
    link, outcome = 0, ""
    count = 0
    while (output := client.next_output()) is not None:
        count += 1
        match output:
            case Connect(link, address, tls_name):
                assert address.host == "web"
                assert tls_name is None
            case Transmit(number):
                assert sum(map(len, client.data_to_send(number))) < 100_000
            case Disconnect():
                pass
            case RequestDone(_, result):
                outcome = f"done {json.dumps(result)}"
            case RequestFailed(_, error) | Retrying(_, _, error):
                assert len(str(error)) < 10_000
                outcome = f"failed {type(error).__name__}"
            case other:
                raise AssertionError(f"unexpected: {other}")
    assert count <= MAX_OUTPUTS
    return link, outcome
