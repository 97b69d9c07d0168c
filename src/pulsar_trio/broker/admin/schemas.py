"""Schemas of topics: register, read, compare, delete; as far as the broker has them (primitive types)."""

from typing import Any

from pulsar_sansio import SCHEMA_TYPES, InvalidConfiguration, NotApplicable, NotFound

from .messages import Answer, Refused, Request, answering, json_answer, path_number, properties
from .routes import Administrator, Route

SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"

OTHERS = ("BYTES", "NONE", "JSON", "PROTOBUF", "AVRO", "KEY_VALUE", "PROTOBUF_NATIVE")
"""Pulsar has these types too."""

NOT_FOUND = (NotFound, 404, "Schema not found")

STRATEGY = "FULL"
"""The strategy is Pulsar's default. For primitive types all but ALWAYS_COMPATIBLE decide alike."""


def _topic(request: Request) -> str:
    request.parameters["domain"] = "persistent"
    return request.topic


def read(broker: Administrator, request: Request) -> Answer:
    text = request.parameters.get("version")
    version = None if text is None else path_number(text)
    with answering(NOT_FOUND):
        return json_answer(broker.machine.administration.schema(_topic(request), version))


def read_all(broker: Administrator, request: Request) -> Answer:
    try:
        found = [broker.machine.administration.schema(_topic(request))]
    except NotFound:
        found = []
    return json_answer({"getSchemaResponses": found})


def _payload(request: Request) -> tuple[str, str, dict[str, str]]:
    """Type, definition and properties of the body. Raises `Refused`."""
    given = request.json_object()
    kind, data = given.get("type"), given.get("schema")
    if kind in OTHERS:
        raise Refused(501, f"schemas of type {kind} are not implemented by this broker")
    if not isinstance(kind, str) or kind not in SCHEMA_TYPES.values():
        raise Refused(400, f"type: one of {', '.join([*SCHEMA_TYPES.values(), *OTHERS])}; not {kind!r:.100}")
    if data not in (None, "", "null"):
        raise Refused(422, f"Invalid schema definition data for {kind} schema: a primitive type has none")
    return kind, "", properties(given.get("properties") or {})


def register(broker: Administrator, request: Request) -> Answer:
    kind, data, pairs = _payload(request)
    wrong = (InvalidConfiguration, 422, "")
    with answering((NotFound, 404, "Namespace does not exist"), wrong, (NotApplicable, 409, "")):
        version = broker.command(
            broker.machine.administration.register_schema, _topic(request), kind, data, pairs
        )
    return json_answer({"version": {"version": version}})


def _present(broker: Administrator, request: Request) -> dict[str, Any]:
    try:
        return broker.machine.administration.schema(_topic(request))
    except NotFound:
        return {"type": None, "version": -1}


def version_of(broker: Administrator, request: Request) -> Answer:
    """-1 for one that is not registered."""
    kind, _, _ = _payload(request)
    present = _present(broker, request)
    return json_answer({"version": present["version"] if present["type"] == kind else -1})


def compatibility(broker: Administrator, request: Request) -> Answer:
    kind, _, _ = _payload(request)
    compatible = _present(broker, request)["type"] in (None, kind)
    return json_answer({"compatibility": compatible, "schemaCompatibilityStrategy": STRATEGY}, 202)


def delete(broker: Administrator, request: Request) -> Answer:
    with answering((NotFound, 404, "Namespace does not exist")):
        forced = request.flag("force")
        version = broker.command(broker.machine.administration.delete_schema, _topic(request), forced)
    return json_answer({"version": version})


ROUTES: list[Route] = [
    ("GET", f"{SCHEMAS}/schema", read),
    ("GET", f"{SCHEMAS}/schema/{{version}}", read),
    ("GET", f"{SCHEMAS}/schemas", read_all),
    ("POST", f"{SCHEMAS}/schema", register),
    ("POST", f"{SCHEMAS}/version", version_of),
    ("POST", f"{SCHEMAS}/compatibility", compatibility),
    ("DELETE", f"{SCHEMAS}/schema", delete),
]
