"""Schemas over HTTP: registered, read, compared and deleted, and the refusals in Pulsar's words."""

import json
from typing import Any

import pytest

from tests.trio.broker.admin.asking import Administrator

SCHEMAS = "/schemas/public/default/t"
STRING = {"type": "STRING", "schema": "", "properties": {"a": "b"}}


def record(*fields: str) -> dict[str, Any]:
    definition = {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": "int", "default": 0} for name in fields],
    }
    return {"type": "AVRO", "schema": json.dumps(definition), "properties": {}}


@pytest.fixture
def broker() -> Administrator:
    administrator = Administrator()
    assert administrator.ask("PUT", "/persistent/public/default/t") == (204, None)
    return administrator


def test_versions_are_registered_and_read(broker: Administrator) -> None:
    assert broker.ask("POST", f"{SCHEMAS}/schema", record("a", "b")) == (200, {"version": {"version": 0}})
    assert broker.ask("POST", f"{SCHEMAS}/schema", record("a")) == (200, {"version": {"version": 1}})
    assert broker.ask("POST", f"{SCHEMAS}/schema", record("a")) == (200, {"version": {"version": 1}})
    for path, version, definition in (("schema", 1, record("a")), ("schema/0", 0, record("a", "b"))):
        status, found = broker.ask("GET", f"{SCHEMAS}/{path}")
        assert (status, found["version"], found["type"]) == (200, version, "AVRO")
        assert json.loads(found["data"]) == json.loads(definition["schema"])
    status, found = broker.ask("GET", f"{SCHEMAS}/schemas")
    assert [each["version"] for each in found["getSchemaResponses"]] == [0, 1]


def test_the_version_of_a_definition(broker: Administrator) -> None:
    broker.ask("POST", f"{SCHEMAS}/schema", record("a"))
    assert broker.ask("POST", f"{SCHEMAS}/version", record("a")) == (200, {"version": 0})
    assert broker.ask("POST", f"{SCHEMAS}/version", record("b")) == (200, {"version": -1})


def test_an_incompatible_schema_is_told_of_and_not_registered(broker: Administrator) -> None:
    broker.ask("POST", f"{SCHEMAS}/schema", record("a"))
    for given, compatible in ((record("a"), True), (STRING, False)):
        status, found = broker.ask("POST", f"{SCHEMAS}/compatibility", given)
        assert (status, found["compatibility"]) == (202, compatible)
    assert broker.ask("POST", f"{SCHEMAS}/schema", STRING)[0] == 409
    assert broker.ask("GET", f"{SCHEMAS}/schema")[1]["type"] == "AVRO"


def test_a_schema_that_was_deleted_is_not_found(broker: Administrator) -> None:
    broker.ask("POST", f"{SCHEMAS}/schema", STRING)
    status, found = broker.ask("DELETE", f"{SCHEMAS}/schema")
    assert (status, list(found)) == (200, ["version"])
    assert broker.ask("GET", f"{SCHEMAS}/schema") == (404, "Schema not found")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"type": "STRING", "schema": None}, "STRING"),
        ({"type": "INT32", "schema": "null", "properties": None}, "INT32"),
    ],
)
def test_a_primitive_type_has_no_definition(broker: Administrator, given: dict[str, Any], kind: str) -> None:
    assert broker.ask("POST", f"{SCHEMAS}/schema", given)[0] == 200
    found = broker.ask("GET", f"{SCHEMAS}/schema")[1]
    assert (found["type"], found["data"]) == (kind, "")


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ([], 400, "the body has to be a JSON object"),
        ({"type": "KEY_VALUE", "schema": ""}, 422, ""),
        ({"type": "KEY_VALUE", "schema": "[]"}, 422, ""),
        ({"type": "KEY_VALUE", "schema": '{"key": ""}'}, 422, ""),
        ({"type": "KEY_VALUE", "schema": "[" * 100_000}, 422, ""),
        ({"type": "KEY_VALUE", "schema": '{"key": "\\ud800", "value": ""}'}, 422, ""),
        ({"type": "XML", "schema": ""}, 400, "type: one of "),
        ({"type": 3, "schema": ""}, 400, "type: one of "),
        ({"schema": ""}, 400, "type: one of "),
        ({"type": "STRING", "schema": 3}, 400, "schema: text, not 3"),
        ({"type": "STRING", "properties": {"a": 1}}, 400, "properties have to be"),
        ({"type": "AVRO", "schema": "{"}, 422, ""),
    ],
)
@pytest.mark.parametrize("path", ["schema", "version", "compatibility"])
def test_what_is_no_schema_is_refused(
    broker: Administrator, path: str, given: object, status: int, reason: str
) -> None:
    answered, text = broker.ask("POST", f"{SCHEMAS}/{path}", given)
    if status != 422 or path == "schema":
        assert answered == status
        assert reason in text
    assert broker.ask("GET", f"{SCHEMAS}/schema") == (404, "Schema not found")


@pytest.mark.parametrize(
    ("method", "path", "body", "reason"),
    [
        ("GET", "schema", None, "Schema not found"),
        ("GET", "schema/0", None, "Schema not found"),
        ("POST", "schema", STRING, "Namespace does not exist"),
        ("POST", "version", STRING, "Namespace does not exist"),
        ("POST", "compatibility", STRING, "Namespace does not exist"),
        ("DELETE", "schema", None, "Namespace does not exist"),
    ],
)
def test_of_a_namespace_that_is_not_there(
    broker: Administrator, method: str, path: str, body: object, reason: str
) -> None:
    assert broker.ask(method, f"/schemas/public/none/t/{path}", body) == (404, reason)
