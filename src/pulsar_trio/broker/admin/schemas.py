"""Schemas of topics: register, read, compare, delete."""

from pulsar_sansio import SCHEMA_TYPES, InvalidConfiguration, NotApplicable, NotFound

from .messages import Answer, Refused, Request, answering, json_answer, path_number, properties
from .routes import AdministeredBroker, Route

SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"

NOT_FOUND = (NotFound, 404, "Schema not found")

REFUSALS = ((NotFound, 404, "Namespace does not exist"), (InvalidConfiguration, 422, ""))


def read(broker: AdministeredBroker, request: Request) -> Answer:
    text = request.parameters.get("version")
    version = None if text is None else path_number(text)
    with answering(NOT_FOUND):
        return json_answer(broker.machine.schema_administration.schema(request.topic, version))


def read_all(broker: AdministeredBroker, request: Request) -> Answer:
    found = broker.machine.schema_administration.schema_versions(request.topic)
    return json_answer({"getSchemaResponses": found})


def metadata(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the versions. Ledger and entry are -1: this broker stores definitions with the topic."""
    found = broker.machine.schema_administration.schema_versions(request.topic)
    index = [{"ledgerId": -1, "entryId": -1, "version": each["version"]} for each in found]
    return json_answer({"info": index[-1], "index": index}) if index else Answer(200)


def _payload(request: Request) -> tuple[str, str, dict[str, str]]:
    """Type, definition and properties of the body. Raises `Refused`."""
    given = request.json_object()
    kind, data = given.get("type"), given.get("schema")
    if kind == "BYTES":
        kind = "NONE"
    if not isinstance(kind, str) or kind not in SCHEMA_TYPES.values():
        raise Refused(400, f"type: one of {', '.join(SCHEMA_TYPES.values())}; not {kind!r:.100}")
    if not isinstance(data, str | None):
        raise Refused(400, f"schema: text, not {data!r:.100}")
    return kind, "" if data in (None, "null") else str(data), properties(given.get("properties") or {})


def register(broker: AdministeredBroker, request: Request) -> Answer:
    kind, data, pairs = _payload(request)
    with answering(*REFUSALS, (NotApplicable, 409, "")):
        version = broker.command(
            broker.machine.schema_administration.register_schema, request.topic, kind, data, pairs
        )
    return json_answer({"version": {"version": version}})


def version_of(broker: AdministeredBroker, request: Request) -> Answer:
    """-1 for one that is not registered."""
    with answering(*REFUSALS):
        version = broker.machine.schema_administration.schema_version_of(request.topic, *_payload(request))
    return json_answer({"version": version})


def compatibility(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(*REFUSALS):
        compatible, strategy = broker.machine.schema_administration.is_schema_compatible(
            request.topic, *_payload(request)
        )
    return json_answer({"compatibility": compatible, "schemaCompatibilityStrategy": strategy}, 202)


def delete(broker: AdministeredBroker, request: Request) -> Answer:
    with answering((NotFound, 404, "Namespace does not exist")):
        forced = request.flag("force")
        version = broker.command(broker.machine.schema_administration.delete_schema, request.topic, forced)
    return json_answer({"version": version})


ROUTES: list[Route] = [
    ("GET", f"{SCHEMAS}/schema", read),
    ("GET", f"{SCHEMAS}/schema/{{version}}", read),
    ("GET", f"{SCHEMAS}/schemas", read_all),
    ("GET", f"{SCHEMAS}/metadata", metadata),
    ("POST", f"{SCHEMAS}/schema", register),
    ("POST", f"{SCHEMAS}/version", version_of),
    ("POST", f"{SCHEMAS}/compatibility", compatibility),
    ("DELETE", f"{SCHEMAS}/schema", delete),
]
