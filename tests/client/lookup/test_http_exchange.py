"""`HttpExchange`: one GET over one link, whatever the server does."""

import pytest

from pulsar_sansio.client.lookup.http_answer import HttpAnswer
from pulsar_sansio.client.lookup.http_exchange import HttpExchange
from pulsar_sansio.client.lookup.http_exchange_states import Ended
from pulsar_sansio.client.lookup.http_lookup import MAX_ANSWER
from pulsar_sansio.client.outputs import Disconnect, ProducerFailed, RequestDone, RequestFailed
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import (
    CertificateExpired,
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    TimedOut,
)
from pulsar_sansio.model.http_url import HttpUrl
from pulsar_sansio.model.service_url import Address
from tests.client.lookup.http_script import HTTPS, HttpScript, count, failure, response, two_hosts
from tests.client.script import (
    frame_connected,
    kinds,
)

TOPIC = "persistent://public/default/demo"

MALFORMED = {
    "a frame of the binary protocol": frame_connected(),
    "a TLS alert": bytes.fromhex("15030100020246"),
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a wrong length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a long length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "a wrong chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "an endless line": b"HTTP/1.1 200 " + b"x" * 70_000,
    "a large length": b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n",
    "a large body": response(b" " * (MAX_ANSWER + 1)),
    "early answers without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
    "a large body in chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"1000\r\n" + b" " * 4096 + b"\r\n") * 17
    ),
    "no JSON": response(b"partitions: 3"),
    "not UTF-8": response(b'{"partitions": 3, "x": "\xff"}'),
    "too deep": response(b"[" * 60_000),
    "a long number": response(b'{"partitions": ' + b"9" * 5000 + b"}"),
    "a negative number": response(b'{"partitions": -1}'),
    "a truth": response(b'{"partitions": true}'),
    "a text": response(b'{"partitions": "3"}'),
    "a fraction": response(b'{"partitions": 3.0}'),
    "no object": response(b"3"),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_an_answer_that_is_none(data: bytes) -> None:
    script = HttpScript(chop=len(data) < 5000)
    count(script)
    asked = script.asked()
    script.feed(asked.link, data)
    script.ended(asked.link)
    error = failure(script)
    assert type(error) is RemoteProtocolError
    assert "web:8080" in str(error) or TOPIC in str(error)
    assert script.client.links == ()
    script.advance(0.3)
    script.connecting()


@pytest.mark.parametrize("chop", [False, True])
def test_bodies_of_every_form(chop: bool) -> None:
    """A length, chunks, or the end of the connection; other answers of the server may come first."""
    whole = b'{"partitions": 3}'
    chunks = (
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + whole[:5] + b"\r\nc\r\n" + whole[5:] + b"\r\n0\r\n\r\n"
    )
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    for head in (b"HTTP/1.1 200 OK\r\n", early + b"HTTP/1.0 200 \r\n"):
        for rest in (b"Content-Length: 17\r\n\r\n" + whole + b"more", chunks, b"\r\n" + whole):
            if head.endswith(b"HTTP/1.0 200 \r\n") and rest is chunks:
                continue  # HTTP/1.0 has no chunks
            script = HttpScript(chop=chop)
            request = count(script)
            link = script.asked().link
            script.feed(link, head + rest)
            if link in script.client.links:
                script.client.receive_eof(script.now, link)
            script.ended(link)
            script.expect(RequestDone(request, 3))


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\n", response(b'{"partitions": 3}')[:-1]])
def test_the_server_ends_the_connection_too_early(data: bytes) -> None:
    script = HttpScript()
    count(script)
    link = script.asked().link
    if data:
        script.feed(link, data)
    script.client.receive_eof(script.now, link)
    script.ended(link)
    assert isinstance(failure(script), ConnectionLost | RemoteProtocolError)


def test_a_host_that_does_not_answer() -> None:
    script, link, other = two_hosts(operation_timeout=5.0, connect_timeout=1.0)
    script.advance(0.9)
    script.open(link)
    script.request(link)
    script.advance(4.2)
    failed, ended = script.said()
    assert ended == Disconnect(link, "the lookup was not answered in time")
    assert isinstance(failed, RequestFailed)
    assert isinstance(failed.error, TimedOut)
    count(script)
    script.connecting(other)


def test_no_connection_within_its_time() -> None:
    script = HttpScript(connect_timeout=1.0)
    count(script)
    link = script.connecting()
    script.advance(1.0)
    assert kinds(script.outputs) == ["Disconnect"]
    script.ended(link)
    assert isinstance(failure(script), TimedOut)


def test_a_certificate_that_is_wrong_is_the_error() -> None:
    script = HttpScript(HTTPS)
    producer = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    link = script.connecting(Address("web", 8443), "web")
    error = CertificateExpired("expired")
    script.client.disconnected(script.now, link, error)
    failed = script.said()[0]
    assert failed == ProducerFailed(producer, error)


def test_a_link_is_connected_once_and_before_its_data() -> None:
    script = HttpScript()
    count(script)
    link = script.connecting()
    with pytest.raises(LocalProtocolError, match="received data before it was reported connected"):
        script.client.receive_data(script.now, link, b"HTTP")
    script.open(link)
    with pytest.raises(LocalProtocolError, match="connected twice"):
        script.open(link)
    script.request(link)
    script.answer(link, {"partitions": 3})
    assert kinds(script.said()) == ["RequestDone"]


def test_an_empty_read_is_no_part_of_the_answer() -> None:
    """The server may still close the connection without an answer."""
    script = HttpScript()
    count(script)
    link = script.asked().link
    script.client.receive_data(script.now, link, b"")
    script.client.receive_eof(script.now, link)
    script.ended(link)
    assert "closed the connection without an answer" in str(failure(script))


def test_an_exchange_that_is_closed_again_has_its_first_outcome() -> None:
    script = HttpScript()
    count(script)
    link = script.asked().link
    exchange = script.client._links.open[link]
    exchange.close(ConnectionLost("first"))
    exchange.close(ConnectionLost("second"))
    script.ended(link)
    assert str(failure(script)) == "first"


def test_bytes_before_the_request_end_the_exchange() -> None:
    """The server speaks while the driver still fetches the credentials."""
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    link = script.wanted().link
    script.feed(link, b"HTTP/1.1 200 OK\r\n\r\n")
    script.ended(link)
    error = failure(script)
    assert isinstance(error, RemoteProtocolError)
    assert str(error) == "web:8443 sent bytes before the request"


@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 2",
        b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
    ],
    ids=["within the head", "within a body", "within a chunk", "after an early answer"],
)
def test_the_server_ends_the_connection_within_its_answer(part: bytes) -> None:
    script = HttpScript()
    count(script)
    link = script.asked().link
    script.feed(link, part)
    script.client.receive_eof(script.now, link)
    script.ended(link)
    error = failure(script)
    assert type(error) is RemoteProtocolError
    assert str(error).startswith("web:8080 sent no usable HTTP answer")


@pytest.mark.parametrize("answered", [False, True])
def test_an_answer_has_the_operation_timeout_from_the_request_on(answered: bool) -> None:
    """A lookup's own timeout comes first; the request of a controlled failover has only that of the
    exchange."""
    outcomes: list[object] = []
    script = HttpScript(operation_timeout=5.0, connect_timeout=1.0)
    url = HttpUrl.parse("http://web:8080/demo")
    exchange = HttpExchange(
        script.client._services, url, outcomes.append, outcomes.append, method=None, limit=100
    )
    link = script.connecting()
    script.advance(0.9)
    script.open(link)
    assert script.request(link).target == "/demo"
    script.advance(4.9)
    assert outcomes == []
    if answered:
        script.answer(link, {}, 307, "Location: /again")
        assert script.client.next_deadline() is None
        assert outcomes == [HttpAnswer(url, 307, "/again", b"{}")]
    else:
        script.advance(0.2)
        script.ended(link)
        (error,) = outcomes
        assert isinstance(error, TimedOut)
        assert str(error) == "no answer of web:8080 within 5 s"
    assert isinstance(exchange.state, Ended)
