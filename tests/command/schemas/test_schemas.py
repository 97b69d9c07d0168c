"""`pulsar-trio schemas`: definitions out and in, and the question if one may be the next."""

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command.schemas.test_values import definition
from tests.command.test_cli import BrokerThread, Command, Done, command, one_line

__all__ = ["command"]


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "AVRO", "schema": {"type": "record", "name": "Order", "fields": list(fields)}}


ID = {"name": "id", "type": "string"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
AMOUNT = {"name": "amount", "type": "int"}

PAIR = {
    "type": "KEY_VALUE",
    "key": {"type": "STRING"},
    "value": record(ID, NOTE),
    "encoding": "SEPARATED",
}


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    thread = BrokerThread(http_port=0)
    yield thread
    thread.stop()


def schemas(run: Command, at: BrokerThread, action: str, *arguments: str) -> Done:
    return run("schemas", action, "t", *arguments, "--url", at.url)


def put(run: Command, at: BrokerThread, folder: Path, *definitions: dict[str, Any]) -> list[int]:
    return [
        schemas(run, at, "put", definition(folder, each), "--json").objects[0]["version"]
        for each in definitions
    ]


def test_what_was_put_is_what_get_prints(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    first, second = record(ID), record(ID, NOTE)
    assert put(command, broker, tmp_path, first, second, first) == [0, 1, 0]
    assert json.loads(schemas(command, broker, "get").out) == second
    assert schemas(command, broker, "get", "--json").objects == [second]
    assert json.loads(schemas(command, broker, "get", "--version", "0").out) == first
    assert schemas(command, broker, "get", "--versions").out.splitlines() == [
        f"0 {json.dumps(first)}",
        f"1 {json.dumps(second)}",
    ]


def test_the_versions_after_a_deletion(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    put(command, broker, tmp_path, record(ID), record(ID, NOTE))
    url = f"{broker.broker.admin_url}/admin/v2/schemas/public/default/t/schema"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()
    done = schemas(command, broker, "get", "--versions")
    assert (done.code, one_line(done.err)) == (1, "pulsar-trio: topic t has no schema")
    assert put(command, broker, tmp_path, record(AMOUNT), record(AMOUNT, NOTE)) == [3, 4]
    assert [each["version"] for each in schemas(command, broker, "get", "--versions", "--json").objects] == [
        3,
        4,
    ]


@pytest.mark.parametrize(
    "given",
    [
        PAIR,
        PAIR | {"key": {"type": "BYTES"}, "encoding": "INLINE"},
        {"type": "INT32", "properties": {"a": "ä"}},
        {"type": "JSON", "schema": record(ID)["schema"]},
    ],
)
def test_definitions_of_other_types(
    given: dict[str, Any], broker: BrokerThread, command: Command, tmp_path: Path
) -> None:
    put(command, broker, tmp_path, given)
    printed = json.loads(schemas(command, broker, "get").out)
    assert printed == given
    assert put(command, broker, tmp_path, printed) == [0]


def test_the_name_of_a_primitive_type(broker: BrokerThread, command: Command) -> None:
    assert schemas(command, broker, "put", "string").out == "t has it as version 0\n"
    assert json.loads(schemas(command, broker, "get").out) == {"type": "STRING"}
    done = schemas(command, broker, "put", "bytes")
    assert done.code == 2
    assert "one with a definition to register" in one_line(done.err)


def test_an_incompatible_definition_is_not_registered(
    broker: BrokerThread, command: Command, tmp_path: Path
) -> None:
    put(command, broker, tmp_path, record(ID))
    done = schemas(command, broker, "put", definition(tmp_path, record(ID, AMOUNT)))
    assert done.code == 1
    told = one_line(done.err)
    assert "amount" in told
    assert "FULL" in told
    assert len(schemas(command, broker, "get", "--versions").out.splitlines()) == 1


def test_a_topic_without_the_definition(broker: BrokerThread, command: Command, tmp_path: Path) -> None:
    for arguments in ([], ["--versions"]):
        done = schemas(command, broker, "get", *arguments)
        assert (done.code, one_line(done.err)) == (1, "pulsar-trio: topic t has no schema")
    put(command, broker, tmp_path, record(ID))
    done = schemas(command, broker, "get", "--version", "1")
    assert (done.code, one_line(done.err)) == (1, "pulsar-trio: topic t has no version 1 of a schema")


# --- check --------------------------------------------------------------------------------------------------


def check(run: Command, at: BrokerThread, file: str, *arguments: str) -> Done:
    assert at.broker.admin_url is not None
    return schemas(run, at, "check", file, "--http-url", at.broker.admin_url, *arguments)


@pytest.mark.parametrize(
    ("registered", "good", "bad"),
    [
        (record(ID), record(ID, NOTE), record(ID, AMOUNT)),
        (PAIR, PAIR | {"value": record(ID)}, PAIR | {"value": record(ID, AMOUNT)}),
        ({"type": "STRING"}, {"type": "STRING"}, {"type": "INT32"}),
    ],
)
def test_a_definition_is_compared_and_not_registered(
    registered: dict[str, Any],
    good: dict[str, Any],
    bad: dict[str, Any],
    broker: BrokerThread,
    command: Command,
    tmp_path: Path,
) -> None:
    put(command, broker, tmp_path, registered)
    file = definition(tmp_path, good)
    assert check(command, broker, file, "--json").objects == [
        {"topic": "t", "compatible": True, "reason": "the strategy is FULL"}
    ]
    done = check(command, broker, definition(tmp_path, bad))
    assert done.code == 1
    assert "is not compatible with the schema of t: the strategy is FULL (hint: " in one_line(done.err)
    assert len(schemas(command, broker, "get", "--versions").out.splitlines()) == 1


def test_the_url_of_http_comes_from_the_environment(
    broker: BrokerThread, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broker.broker.admin_url is not None
    monkeypatch.setenv("PULSAR_HTTP_URL", broker.broker.admin_url)
    assert schemas(command, broker, "check", "string").code == 0
    monkeypatch.delenv("PULSAR_HTTP_URL")
    done = schemas(command, broker, "check", "string")
    assert done.code == 2
    assert "check asks over HTTP: --http-url or $PULSAR_HTTP_URL" in one_line(done.err)


class Peer:
    """Answers one request with these bytes, and keeps the request."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.request = b""
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        connection, _ = self._socket.accept()
        with connection, self._socket:
            while b"properties" not in self.request:
                self.request += connection.recv(65536)
            connection.sendall(self._answer)


def answer(status: str, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", body]
    return "\r\n".join(lines).encode()


STACK = "\n --- An unexpected error ---\n\nMessage: {0}\n\nStacktrace:\n\na.b.{1}: {0}\n at a.b.C(D:1)"
"""The reason of a Java broker's answer 500."""


def test_a_java_broker_says_what_differs(command: Command) -> None:
    body = json.dumps({"reason": STACK.format("no default of amount", "IncompatibleSchemaException")})
    peer = Peer(answer("500 Internal Server Error", body))
    done = command("schemas", "check", "t", "string", "--http-url", peer.url)
    peer.thread.join()
    assert done.code == 1
    assert "string is not compatible with the schema of t: no default of amount (hint" in one_line(done.err)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (answer("500 E", json.dumps({"reason": STACK.format("lost", "E")})), "with 500: lost\n"),
        (answer("403 Forbidden", '{"reason": "not yours"}'), "refused the question with 403: not yours"),
        (answer("404 Not Found", ""), "refused the question with 404: Not Found"),
        (answer("200 OK", "[]"), "refused the question with 200: OK"),
        (answer("307 T", "", "Location: http://b:1/"), "leaves the question to http://b:1/"),
        (b"nothing of HTTP\r\n\r\n", "sent no answer of HTTP: BadStatusLine"),
    ],
)
def test_an_answer_that_compares_nothing(sent: bytes, why: str, command: Command) -> None:
    peer = Peer(sent)
    done = command("schemas", "check", "t", "string", "--http-url", peer.url)
    peer.thread.join()
    assert done.code == 1
    assert why in done.err


@pytest.mark.parametrize(
    ("environment", "options", "header"),
    [
        ({"PULSAR_TOKEN": "abc"}, (), b"Authorization: Bearer abc\r\n"),
        ({"PULSAR_PASSWORD": "pw"}, ("--basic-user", "ada"), b"Authorization: Basic YWRhOnB3\r\n"),
    ],
)
def test_the_question_carries_the_credentials(
    environment: dict[str, str],
    options: tuple[str, ...],
    header: bytes,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    peer = Peer(answer("200 OK", '{"compatibility": true, "schemaCompatibilityStrategy": "FULL"}'))
    done = command("schemas", "check", "a/b/c d", "string", "--http-url", peer.url, *options)
    peer.thread.join()
    assert done.code == 0
    assert peer.request.startswith(b"POST /admin/v2/schemas/a/b/c%20d/compatibility HTTP/1.1\r\n")
    assert header in peer.request


def test_a_port_that_nothing_serves(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    done = command("schemas", "check", "t", "string", "--http-url", url)
    assert done.code == 1
    assert "cannot be asked: " in one_line(done.err)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["get", "t", "f"], "argument FILE: not allowed with get"),
        (["put", "t"], "argument FILE: put needs it"),
        (["check", "t"], "argument FILE: check needs it"),
        (["put", "t", "f", "--versions"], "argument --version: not allowed with put"),
        (["put", "t", "f", "--version", "1"], "argument --version: not allowed with put"),
        (["get", "t", "--version", "1", "--versions"], "not allowed with argument --version"),
        (["get", "t", "--http-url", "http://a"], "argument --http-url: not allowed with get"),
        (["check", "t", "f", "--http-url", "pulsar://a"], "argument --http-url: http:// or https://"),
        (["check", "t", "string", "--http-url", "http://a:b"], "--http-url: http://host:port"),
    ],
)
def test_wrong_arguments(arguments: list[str], why: str, command: Command) -> None:
    done = command("schemas", *arguments)
    assert done.code == 2
    assert why in one_line(done.err)
