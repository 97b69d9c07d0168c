"""The HTTP side as bytes on a socket: framing, limits, and clients that mean no good."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration, MemoryStore
from pulsar_trio import EmbeddedBroker, StoreFailed, open_broker, open_client
from pulsar_trio.broker.admin import listener, topics
from pulsar_trio.broker.admin.listener import HttpStream
from pulsar_trio.broker.admin.messages import Answer, Request
from pulsar_trio.broker.admin.missing import no_such_path
from pulsar_trio.broker.admin.routes import AdministeredBroker, Table
from tests.patience import PATIENCE
from tests.security.certificates import Authority
from tests.trio.waiting import until

TENANTS = b"/admin/v2/tenants"
TOPICS = b"/admin/v2/persistent/public/default"
HOST = b" HTTP/1.1\r\nHost: localhost\r\n"

LARGE = 32 * 1024 * 1024
"""Bytes of a body."""

PART = 64 * 1024


@pytest.fixture
async def admin() -> AsyncIterator[EmbeddedBroker]:
    """A broker with an HTTP port."""
    async with open_broker(http_port=0) as broker:
        yield broker


@asynccontextmanager
async def connected(broker: EmbeddedBroker) -> AsyncIterator[trio.SocketStream]:
    assert broker.http_port is not None
    async with await trio.open_tcp_stream("127.0.0.1", broker.http_port) as stream:
        yield stream


async def read_answer(stream: HttpStream, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Status, header fields and body of one answer, byte by byte, so that nothing of the next is taken."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        more = await stream.receive_some(1)
        assert more, f"the connection ended after {head!r}"
        head += more
    first, *lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if line)
    body = b""
    while method != "HEAD" and len(body) < int(fields.get("content-length", 0)):
        body += await stream.receive_some(1)
    return int(first.split()[1]), fields, body


async def exchange(broker: EmbeddedBroker, request: bytes) -> tuple[int, dict[str, str], bytes]:
    async with connected(broker) as stream:
        await stream.send_all(request)
        return await read_answer(stream)


async def ended(stream: trio.SocketStream) -> bool:
    """Return whether the broker ends its side and sends nothing more."""
    with trio.fail_after(PATIENCE):
        return await stream.receive_some(1) == b""


async def test_requests_one_after_the_other_on_one_connection(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        for number in range(3):
            await stream.send_all(b"PUT %s/t%d" % (TOPICS, number) + HOST + b"\r\n")
            status, fields, body = await read_answer(stream)
            assert (status, body) == (204, b"")
            assert "content-length" not in fields
        await stream.send_all(b"GET " + TENANTS + HOST + b"Connection: close\r\n\r\n")
        assert (await read_answer(stream))[2] == b'["public","pulsar"]'
        assert await ended(stream)
    assert len(admin.topics()) == 3


async def test_requests_sent_ahead_are_answered_in_order(admin: EmbeddedBroker) -> None:
    put, get = (b"PUT " + TOPICS + b"/t" + HOST + b"\r\n", b"GET " + TOPICS + HOST + b"\r\n")
    async with connected(admin) as stream:
        await stream.send_all(get + put + get + put)
        answers = [await read_answer(stream) for _ in range(4)]
    assert [status for status, _, _ in answers] == [200, 204, 200, 409]
    assert [answers[0][2], answers[2][2]] == [b"[]", b'["persistent://public/default/t"]']


async def test_a_request_byte_by_byte(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        request = b"PUT " + TOPICS + b"/t/partitions" + HOST
        request += b"Content-Type: application/json\r\nContent-Length: 1\r\n\r\n2"
        for byte in request:
            await stream.send_all(bytes([byte]))
        assert (await read_answer(stream))[0] == 204
    assert len(admin.topics()) == 2


async def test_a_body_in_chunks(admin: EmbeddedBroker) -> None:
    request = b"PUT " + TOPICS + b"/t" + HOST + b"Content-Type: application/json\r\n"
    chunks = b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n4\r\n"b"}\r\n0\r\n\r\n'
    assert (await exchange(admin, request + chunks))[0] == 204
    read = await exchange(admin, b"GET " + TOPICS + b"/t/properties" + HOST + b"\r\n")
    assert read[2] == b'{"a":"b"}'


async def test_head_is_get_without_the_body(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        await stream.send_all(b"HEAD " + TENANTS + HOST + b"\r\n")
        status, fields, _ = await read_answer(stream, "HEAD")
        assert (status, fields["content-length"]) == (200, "19")
        await stream.send_all(b"GET " + TENANTS + HOST + b"\r\n")
        assert (await read_answer(stream))[2] == b'["public","pulsar"]', "nothing was left between"


async def test_a_client_that_waits_for_100_continue_gets_it(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        head = b"Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        await stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + head)
        assert (await read_answer(stream))[0] == 100
        await stream.send_all(b"{}")
        assert (await read_answer(stream))[0] == 204


async def test_a_client_that_would_send_too_much_is_told_before(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        head = b"Content-Length: 999999999\r\nExpect: 100-continue\r\n\r\n"
        await stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + head)
        status, _, body = await read_answer(stream)
        assert status == 413
        assert b"bytes" in body
        assert await ended(stream)


async def test_options_and_methods(admin: EmbeddedBroker) -> None:
    status, fields, _ = await exchange(admin, b"OPTIONS " + TENANTS + HOST + b"\r\n")
    assert (status, fields["allow"]) == (200, "get, head, options")
    status, fields, body = await exchange(admin, b"PATCH " + TENANTS + HOST + b"\r\n")
    assert (status, fields["allow"]) == (405, "get, head, options")
    assert body.startswith(b'{"reason":')
    assert (await exchange(admin, b"OPTIONS /nothing" + HOST + b"\r\n"))[0] == 404


async def test_http_1_0(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        await stream.send_all(b"GET " + TENANTS + b" HTTP/1.0\r\n\r\n")
        assert (await read_answer(stream))[0] == 200
        assert await ended(stream)


BAD = {
    "no request": (b"nonsense\r\n\r\n", 400),
    "a TLS client": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "no host": (b"GET " + TENANTS + b" HTTP/1.1\r\n\r\n", 400),
    "no escape": (b"GET " + TOPICS + b"/%zz/stats" + HOST + b"\r\n", 400),
    "no UTF-8": (b"GET " + TOPICS + b"/%ff/stats" + HOST + b"\r\n", 400),
    "no path": (b"GET *" + HOST + b"\r\n", 400),
    "a large field": (b"GET " + TENANTS + HOST + b"X: " + b"a" * 20_000 + b"\r\n\r\n", 431),
    "many fields": (b"GET " + TENANTS + HOST + b"X: y\r\n" * 20_000 + b"\r\n", 431),
    "a long path": (b"GET /" + b"a" * 100_000 + HOST + b"\r\n", 431),
    "many query fields": (b"GET " + TENANTS + b"?" + b"a&" * 200 + HOST + b"\r\n", 400),
    "two lengths": (
        b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        400,
    ),
    "no length": (b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    "a large length": (b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: 1" + b"0" * 18 + b"\r\n\r\n", 413),
    "an unknown encoding": (b"PUT " + TOPICS + b"/t" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "no chunk": (b"PUT " + TOPICS + b"/t" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
}


@pytest.mark.parametrize("case", BAD)
async def test_what_is_no_request_is_answered_and_ends_the_connection(
    admin: EmbeddedBroker, case: str
) -> None:
    request, status = BAD[case]
    async with connected(admin) as stream:
        await stream.send_all(request)
        with trio.fail_after(PATIENCE):
            found, fields, body = await read_answer(stream)
        assert found == status
        assert fields["connection"] == "close"
        assert body.startswith(b'{"reason":')
        assert await ended(stream)
    assert (await exchange(admin, b"GET " + TENANTS + HOST + b"\r\n"))[0] == 200


BODIES = {
    "no JSON": (b"{", 400),
    "deep": (b"[" * 100_000, 400),
    "a number without end": (b"1" * 10_000, 400),
    "not a number": (b"NaN", 400),
    "no text": (b'"\xff"', 400),
    "twice": (b"{}{}", 400),
    "of another kind": (b"[1]", 400),
    "not text for text": (b'{"a":1}', 400),
    "null": (b"null", 204),
}


@pytest.mark.parametrize("case", BODIES)
async def test_bodies(admin: EmbeddedBroker, case: str) -> None:
    body, status = BODIES[case]
    head = b"Content-Type: application/json;charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with connected(admin) as stream:
        await stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + head + body)
        assert (await read_answer(stream))[0] == status
        await stream.send_all(b"GET " + TENANTS + HOST + b"\r\n")
        assert (await read_answer(stream))[0] == 200, "the connection goes on"


async def test_a_body_without_its_type(admin: EmbeddedBroker) -> None:
    """A web page can make a browser send such a one, and not one of application/json."""
    for field in (b"", b"Content-Type: text/plain\r\n"):
        request = b"PUT " + TOPICS + b"/t" + HOST + field + b"Content-Length: 2\r\n\r\n{}"
        assert (await exchange(admin, request))[0] == 415
    assert admin.topics() == []


async def test_a_body_in_endless_chunks_is_stopped(admin: EmbeddedBroker) -> None:
    async with connected(admin) as stream:
        await stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        for _ in range(listener.MAX_BODY_BYTES // 0x4000 + 1):
            await stream.send_all(chunk)
        assert (await read_answer(stream))[0] == 413


@pytest.fixture(params=["http", "https"])
async def open_stream(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HttpStream]:
    """A connection to a broker, by HTTP and by HTTPS."""
    authority = Authority(tmp_path)
    async with open_broker(http_port=0, tls=authority.server(), https_port=0) as broker:
        url = str(broker.admin_url if request.param == "http" else broker.admin_url_tls)
        raw = await trio.open_tcp_stream("127.0.0.1", int(url.rpartition(":")[2]))
        context = ssl.create_default_context(cafile=str(authority.file))
        secure = trio.SSLStream(raw, context, server_hostname="localhost", https_compatible=True)
        async with raw:
            yield raw if request.param == "http" else secure


async def test_a_client_that_sends_all_before_it_reads_gets_its_refusal(
    open_stream: HttpStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker drops a body that is larger than all buffers between the two."""
    monkeypatch.setattr(listener, "LINGER", PATIENCE)
    head = b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: %d\r\n\r\n" % LARGE
    await open_stream.send_all(head)
    for _ in range(LARGE // PART):
        await open_stream.send_all(bytes(PART))
    assert (await read_answer(open_stream))[0] == 413


async def test_the_broker_drops_bytes_for_a_short_time_only(
    open_stream: HttpStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "LINGER", 0.01)
    await open_stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: 9999999\r\n\r\n")
    with trio.fail_after(PATIENCE), pytest.raises(trio.BrokenResourceError):
        while True:
            await open_stream.send_all(bytes(PART))


async def test_half_a_request_and_gone(admin: EmbeddedBroker) -> None:
    for request in (b"", b"GET ", b"PUT " + TOPICS + b"/t" + HOST + b"Content-Length: 10\r\n\r\n{"):
        async with connected(admin) as stream:
            await stream.send_all(request)
            await stream.send_eof()
            while await stream.receive_some(1000):
                pass
    assert (await exchange(admin, b"GET " + TENANTS + HOST + b"\r\n"))[0] == 200
    assert admin.topics() == []


async def test_slow_clients_are_let_go_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """The broker closes the connection of a silent client without an answer; a client that sends half a
    request gets status 408."""
    async with open_broker(http_port=0) as admin:
        async with connected(admin) as silent, connected(admin) as slow:
            await slow.send_all(b"GET " + TENANTS)
            assert (await read_answer(slow))[0] == 408
            assert await ended(slow)
            assert await ended(silent)
            assert trio.current_time() < listener.REQUEST_TIME + 10


async def test_a_client_that_does_not_read_the_answers_is_disconnected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_broker(http_port=0) as admin:
        for number in range(200):
            admin.create_topic(f"{'long' * 500}-{number}")
        async with connected(admin) as stream:
            asked = b"GET " + TOPICS + HOST + b"\r\n"
            with pytest.raises(trio.BrokenResourceError):
                while True:
                    await stream.send_all(asked * 1000)


async def test_more_connections_than_there_may_be(
    admin: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Pulsar port does not notice."""
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 5)
    held = []
    for _ in range(5):
        held.append(await trio.open_tcp_stream("127.0.0.1", admin.http_port or 0))
        await held[-1].send_all(b"GET ")
    async with connected(admin) as stream:
        status, _, body = await read_answer(stream)
        assert (status, body) == (503, b'{"reason":"too many connections"}')
    async with open_client(admin.url) as client, client.create_producer("t") as producer:
        await producer.send(b"0")
    for each in held:
        await each.aclose()
    with trio.fail_after(PATIENCE):
        while (await exchange(admin, b"GET " + TENANTS + HOST + b"\r\n"))[0] != 200:  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_more_connections_by_https_than_there_may_be_end_without_a_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sends nothing would hold each of them for as long as a request may take."""
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(listener, "REQUEST_TIME", 10 * PATIENCE)
    async with open_broker(tls=Authority(tmp_path).server(), https_port=0) as broker:
        port = int((broker.admin_url_tls or "").rpartition(":")[2])
        held = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            assert await ended(stream)
        for each in held:
            await each.aclose()


async def test_a_storm_of_nonsense_does_not_disturb_a_producer(admin: EmbeddedBroker) -> None:
    stop = False

    async def nonsense(number: int) -> None:
        while not stop:
            async with connected(admin) as stream:
                try:
                    await stream.send_all(BAD[list(BAD)[number % len(BAD)]][0])
                    await stream.receive_some(100)
                except trio.BrokenResourceError:
                    pass

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(nonsense, number)
        async with open_client(admin.url) as client:
            async with client.create_producer("t", batching=None) as producer:
                with trio.fail_after(PATIENCE):
                    for number in range(20):
                        await producer.send(b"%d" % number)
        stop = True
    assert admin.internal_stats("t")["numberOfEntries"] == 20


async def test_one_request_at_a_time_and_others_between(
    admin: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tasks that wait get their turn after each request, however many requests arrive at once."""
    happened: list[str] = []

    def slow(broker: AdministeredBroker, request: Request) -> Answer:
        happened.append("request")
        return Answer(204)

    monkeypatch.setattr(listener, "TABLE", Table([("GET", "/slow", slow)], no_such_path))

    async def another_client() -> None:
        while True:
            happened.append("turn")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        streams = [await trio.open_tcp_stream("127.0.0.1", admin.http_port or 0) for _ in range(30)]
        nursery.start_soon(another_client)
        for stream in streams:
            await stream.send_all(b"GET /slow" + HOST + b"\r\n")
        for stream in streams:
            assert (await read_answer(stream))[0] == 204
            await stream.aclose()
        nursery.cancel_scope.cancel()
    assert happened.count("request") == 30
    longest = max(len(list(run)) for what, run in groupby(happened) if what == "request")
    assert longest <= 2, "one at the end of a round of trio's, one at the beginning of the next"


@pytest.mark.slow
async def test_unread_answers_have_a_limit(admin: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def much(broker: AdministeredBroker, request: Request) -> Answer:
        return Answer(200, b"x" * 16_000_000)

    monkeypatch.setattr(listener, "TABLE", Table([("GET", "/much", much), *topics.ROUTES], no_such_path))
    held = [await trio.open_tcp_stream("127.0.0.1", admin.http_port or 0) for _ in range(4)]
    for stream in held:
        await stream.send_all(b"GET /much" + HOST + b"\r\n")
        assert await stream.receive_some(1) == b"H"
    assert (await exchange(admin, b"GET /much" + HOST + b"\r\n"))[0] == 503
    assert (await exchange(admin, b"GET " + TOPICS + HOST + b"\r\n"))[0] == 200
    for stream in held:
        await stream.aclose()


async def test_connections_end_with_the_broker() -> None:
    async with open_broker(http_port=0) as admin:
        stream = await trio.open_tcp_stream("127.0.0.1", admin.http_port or 0)
        await stream.send_all(b"GET " + TENANTS + HOST + b"\r\n")
        await read_answer(stream)
        port = admin.http_port
    assert await ended(stream)
    await stream.aclose()
    with pytest.raises(OSError):
        await trio.open_tcp_stream("127.0.0.1", port or 0)


async def test_a_bug_in_a_handler_is_answered_and_nothing_else(
    admin: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def buggy(broker: AdministeredBroker, request: Request) -> Answer:
        raise ZeroDivisionError("one by nothing")

    monkeypatch.setattr(listener, "TABLE", Table([("GET", "/buggy", buggy), *topics.ROUTES], no_such_path))
    status, _, body = await exchange(admin, b"GET /buggy" + HOST + b"\r\n")
    assert status == 500
    assert b"one by nothing" in body
    assert (await exchange(admin, b"GET " + TOPICS + HOST + b"\r\n"))[0] == 200


async def test_a_change_is_durable_when_it_is_answered(admin: EmbeddedBroker) -> None:
    store = MemoryStore()
    async with open_broker(http_port=0, store=store) as broker:
        assert (await exchange(broker, b"PUT " + TOPICS + b"/t" + HOST + b"\r\n"))[0] == 204
        assert "persistent://public/default/t" in store.load().topics


@pytest.mark.parametrize("port", [True, "8080", -1, 65536])
async def test_ports_that_cannot_be(port: int) -> None:
    with pytest.raises(InvalidConfiguration, match="http_port: a whole number from 0 to 65535"):
        async with open_broker(http_port=port):
            pass


async def test_a_port_in_use(admin: EmbeddedBroker) -> None:
    """Nothing is left of the broker that could not start."""
    with pytest.raises(OSError):
        async with open_broker(http_port=admin.http_port):
            pass


async def test_another_address_than_the_one_it_listens_on() -> None:
    """Behind a port forward the broker has to be told how it is reached."""
    address = "http://broker.example:8080"
    async with open_broker(http_port=0, web_service_url=address) as broker:
        found = await exchange(broker, b"GET /admin/v2/brokers" + HOST + b"\r\n")
        assert found[2] == b'["broker.example:8080"]'
        _, _, body = await exchange(
            broker, b"GET /lookup/v2/topic/persistent/public/default/t" + HOST + b"\r\n"
        )
        assert b'"httpUrl":"http://broker.example:8080"' in body
    with pytest.raises(InvalidConfiguration, match="web_service_url"):
        async with open_broker(http_port=0, web_service_url="broker.example"):
            pass


class FullStore(MemoryStore):
    """Takes what a new broker writes, and then no more."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def write(self, records: Sequence[Any]) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().write(records)


async def test_what_cannot_be_stored_is_not_confirmed_and_ends_the_broker() -> None:
    store = FullStore()
    with pytest.raises(StoreFailed, match="no space left"):
        async with open_broker(http_port=0, store=store) as broker:
            store.full = True
            async with connected(broker) as stream:
                await stream.send_all(b"PUT " + TOPICS + b"/t" + HOST + b"\r\n")
                with trio.fail_after(PATIENCE):
                    assert b"204" not in await stream.receive_some(100)
            await broker.wait_failed()
    assert store.load().topics == {}


async def test_without_an_http_port_there_is_none() -> None:
    async with open_broker() as broker:
        assert broker.admin_url is None
        assert broker.http_port is None


async def test_the_url_is_what_it_says(admin: EmbeddedBroker) -> None:
    assert admin.admin_url == f"http://127.0.0.1:{admin.http_port}"
    found = await exchange(admin, b"GET /admin/v2/brokers" + HOST + b"\r\n")
    assert found[2] == b'["127.0.0.1:%d"]' % (admin.http_port or 0)
    async with open_client(admin.url) as client, client.create_producer("t"):
        await until(lambda: len(admin.stats("t")["publishers"]) == 1)
        assert admin.stats("t")["ownerBroker"] == f"127.0.0.1:{admin.http_port}"
