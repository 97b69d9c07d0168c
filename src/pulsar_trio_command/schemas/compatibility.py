"""One question over HTTP: may a definition be the next one of a topic?"""

import json
import re
from base64 import b64encode
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import trio

from pulsar_sansio import InvalidConfiguration, Secret, TopicName
from pulsar_sansio.schemas import SchemaInfo, SchemaType
from pulsar_sansio.schemas.key_value import parts_of
from pulsar_security import TlsConfig
from pulsar_trio.client.options import ClientOptions

from ..console import CommandFailed
from .definition_file import json_of_definition

SECONDS = 30.0
"""The time for an answer."""

MAX_ANSWER = 64 * 1024
"""Bytes of an answer that are read."""

_WITHOUT_HEADER = ("", "tls")
"""Authentication methods that need no header."""


_REFUSAL = "IncompatibleSchemaException"
"""In the reason of a Java broker that finds structs incompatible: it answers 500, with its stack."""

_MESSAGE = re.compile(r"Message:\s*(.*?)\s*Stacktrace:", re.DOTALL)
"""The text of an exception in front of its stack."""


class SchemaComparison(NamedTuple):
    """The answer. `reason`: the strategy, or what differs where the broker says it."""

    compatible: bool
    reason: str


async def compatibility(url: str, topic: str, info: SchemaInfo, options: ClientOptions) -> SchemaComparison:
    """Return the broker's answer. Raises `CommandFailed`."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None:
        raise InvalidConfiguration(f"--http-url: http://host:port, not {url!r:.200}")
    name = TopicName.parse(topic)
    path = f"/admin/v2/schemas/{name.tenant}/{name.namespace}/{quote(name.local, safe='')}/compatibility"
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
    authentication = options.get("authentication")
    if authentication is not None and authentication.method not in _WITHOUT_HEADER:
        headers["Authorization"] = _header(authentication.method, await authentication.credentials(host))
    connection: HTTPConnection
    if parts.scheme == "https":
        context = options.get("tls", TlsConfig()).make_context()
        connection = HTTPSConnection(host, port or 8443, timeout=SECONDS, context=context)
    else:
        connection = HTTPConnection(host, port or 8080, timeout=SECONDS)
    return await trio.to_thread.run_sync(
        partial(_ask, connection, path, _body(info), headers), abandon_on_cancel=True
    )


def _header(method: str, credentials: Secret) -> str:
    if method == "token":
        return f"Bearer {credentials.reveal().decode('latin-1')}"
    return f"Basic {b64encode(credentials.reveal()).decode()}"


def _body(info: SchemaInfo) -> str:
    text = info.data.decode(errors="replace")
    if info.type is SchemaType.KEY_VALUE:  # over HTTP, one text in place of two definitions
        key, value, _ = parts_of(info)
        text = json.dumps({"key": _half(key), "value": _half(value)})
    kind = "BYTES" if info.type is SchemaType.NONE else info.type.name
    return json.dumps({"type": kind, "schema": text, "properties": dict(info.properties)})


def _half(info: SchemaInfo) -> Any:
    return json_of_definition(info).get("schema", "")


def _ask(connection: HTTPConnection, path: str, body: str, headers: dict[str, str]) -> SchemaComparison:
    where = f"{connection.host}:{connection.port}"
    try:
        connection.request("POST", path, body.encode(), headers)
        answer = connection.getresponse()
        content = answer.read(MAX_ANSWER)
    except HTTPException as error:
        raise CommandFailed(f"{where} sent no answer of HTTP: {type(error).__name__}") from None
    except OSError as error:
        raise CommandFailed(f"{where} cannot be asked: {error}", "is --http-url right?") from None
    finally:
        connection.close()
    if answer.status in (301, 302, 307, 308):
        raise CommandFailed(
            f"{where} leaves the question to {answer.getheader('Location')}", "--http-url asks there"
        )
    found = _object(content)
    compatible, strategy = found.get("compatibility"), found.get("schemaCompatibilityStrategy")
    if answer.status in (200, 202) and isinstance(compatible, bool):
        return SchemaComparison(compatible, f"the strategy is {strategy}")
    reason = str(found.get("reason") or answer.reason)
    message = _MESSAGE.search(reason)
    text = reason if message is None else message[1]
    if _REFUSAL in reason:
        return SchemaComparison(False, text)
    raise CommandFailed(f"{where} refused the question with {answer.status}: {text}")


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
