"""The table of paths: what is found, and what is not there."""

from typing import cast

import pytest

from pulsar_trio.broker.admin import missing
from pulsar_trio.broker.admin.listener import TABLE
from pulsar_trio.broker.admin.messages import Answer, Refused, Request
from pulsar_trio.broker.admin.routes import AdministeredBroker, Handler, MethodNotAllowed, Table

NO_BROKER = cast(AdministeredBroker, None)


def request(method: str, target: str) -> Request:
    return Request.parse(method, target, "application/json")


def named(name: str) -> Handler:
    def handler(broker: AdministeredBroker, request: Request) -> Answer:
        return Answer(200, name.encode())

    return handler


def found(table: Table, method: str, target: str) -> tuple[str, dict[str, str]]:
    asked = request(method, target)
    return table.find(asked)(NO_BROKER, asked).body.decode(), asked.parameters


def test_a_word_goes_before_a_name() -> None:
    """GET …/partitioned is a list, and PUT …/partitioned a topic of that name."""
    table = Table(
        [
            ("PUT", "/t/{topic}", named("create")),
            ("GET", "/t/partitioned", named("list")),
            ("GET", "/t/{topic}/x", named("read")),
        ],
        missing.no_such_path,
    )
    assert found(table, "GET", "/t/partitioned") == ("list", {})
    assert found(table, "PUT", "/t/partitioned") == ("create", {"topic": "partitioned"})
    assert found(table, "GET", "/t/a%2Fb/x") == ("read", {"topic": "a/b"})
    assert found(table, "HEAD", "/t/a/x") == ("read", {"topic": "a"})
    assert found(table, "GET", "/t/a/x/") == ("read", {"topic": "a"}), "a slash at the end is nothing"


def test_what_is_not_there() -> None:
    table = Table([("GET", "/a/{b}", named("a")), ("DELETE", "/a/c", named("c"))], missing.no_such_path)
    for target in ("/", "/a", "/b/c", "/a/b/c", "//a/b"):
        with pytest.raises(Refused) as refused:
            table.find(request("GET", target))
        assert refused.value.status == 404
    with pytest.raises(MethodNotAllowed) as not_allowed:
        table.find(request("PUT", "/a/c"))
    assert not_allowed.value.status == 405
    assert not_allowed.value.allowed == ["DELETE", "GET", "HEAD", "OPTIONS"]


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b?c=d&e", ("a", "b"), {"c": "d", "e": ""}),
        ("/a%20b/%C3%BC", ("a b", "ü"), {}),
        ("/a+b", ("a+b",), {}),
        ("/a?x=a+b%26", ("a",), {"x": "a b&"}),
        ("http://host:1/a/b?c=d", ("a", "b"), {"c": "d"}),
        ("http://host", (), {}),
        ("/a?u=http://x", ("a",), {"u": "http://x"}),
    ],
)
def test_targets(target: str, path: tuple[str, ...], query: dict[str, str]) -> None:
    asked = request("GET", target)
    assert (asked.path, asked.query) == (path, query)


def test_no_path_is_there_twice() -> None:
    with pytest.raises(AssertionError):
        Table([("GET", "/a", named("a")), ("GET", "/a/", named("b"))], missing.no_such_path)
    assert isinstance(TABLE, Table)
