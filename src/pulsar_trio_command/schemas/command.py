"""`pulsar-trio schemas`: read, register and compare the definitions of a topic.

`get` and `put` speak the binary protocol, so they need what `produce` needs: the service URL and credentials.
Pulsar compares a definition without registering it over HTTP only, so `check` needs that URL.
"""

import argparse
import json
import os

from pulsar_sansio import InvalidConfiguration
from pulsar_sansio.schemas import RegisteredSchema
from pulsar_trio.client.client import Client

from ..console import CommandFailed, Output
from ..options.arguments import whole
from ..options.connecting import reporting_client
from ..options.connection import ConnectionArguments, connection
from .compatibility import compatibility
from .definition_file import json_of_definition, read_definition

HTTP = ("http://", "https://")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `schemas`."""
    parser.add_argument(
        "action",
        choices=["get", "put", "check"],
        help="print a definition; register one; tell if one may be the topic's next",
    )
    parser.add_argument("topic")
    parser.add_argument(
        "definition",
        nargs="?",
        metavar="FILE",
        help="of put and check: a file as get prints it, or the name of a primitive type",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--version", type=whole, metavar="N", help="of get: this version, not the latest")
    which.add_argument("--versions", action="store_true", help="of get: all versions, with their numbers")
    parser.add_argument(
        "--http-url",
        metavar="URL",
        help="of check: where Pulsar serves HTTP; default is $PULSAR_HTTP_URL, else a --url of HTTP",
    )
    parser.set_defaults(check=_check)


def _check(given: argparse.Namespace) -> str | None:
    """Return the mistake in arguments that belong to another action, if there is one."""
    reads = given.action == "get"
    if reads is not (given.definition is None):
        return f"argument FILE: {'not allowed with get' if reads else f'{given.action} needs it'}"
    if not reads and (given.versions or given.version is not None):
        return f"argument --version: not allowed with {given.action}"
    if given.http_url is not None and given.action != "check":
        return f"argument --http-url: not allowed with {given.action}"
    if given.http_url is not None and not given.http_url.startswith(HTTP):
        return f"argument --http-url: http:// or https://, not {given.http_url!r}"
    return None


async def run(given: argparse.Namespace, output: Output) -> None:
    to = connection(given)
    if given.action == "check":
        await _compare(given, to, output)
        return
    async with reporting_client(to, output) as client:
        if given.action == "put":
            version = await client.register_schema(
                given.topic, RegisteredSchema(read_definition(given.definition))
            )
            output.result(f"{given.topic} has it as version {version}", topic=given.topic, version=version)
        elif given.versions:
            await _print_versions(client, given.topic, output)
        else:
            found = await client.schema(given.topic, given.version)
            if found is None:
                which = "schema" if given.version is None else f"version {given.version} of a schema"
                raise CommandFailed(f"topic {given.topic} has no {which}")
            shown = json_of_definition(found)
            output.result(json.dumps(shown, indent=2, ensure_ascii=False), **shown)


async def _print_versions(client: Client, topic: str, output: Output) -> None:
    """Print each version that is not gone: the broker forgets those before a deletion."""
    latest = await client.schema_version(topic)
    if latest is None:
        raise CommandFailed(f"topic {topic} has no schema")
    for version in range(latest + 1):
        found = await client.schema(topic, version)
        if found is not None:
            shown = json_of_definition(found)
            output.result(f"{version} {json.dumps(shown, ensure_ascii=False)}", version=version, **shown)


async def _compare(given: argparse.Namespace, to: ConnectionArguments, output: Output) -> None:
    url = given.http_url or os.environ.get("PULSAR_HTTP_URL") or to.url
    if not url.startswith(HTTP):
        raise InvalidConfiguration(
            "check asks over HTTP: --http-url or $PULSAR_HTTP_URL, as http://host:8080"
        )
    for warning in to.warnings:
        output.warning(warning)
    found = await compatibility(url, given.topic, read_definition(given.definition), to.options)
    word = "compatible" if found.compatible else "not compatible"
    text = f"{given.definition} is {word} with the schema of {given.topic}: {found.reason}"
    if not found.compatible:
        raise CommandFailed(text, "`pulsar-trio schemas put` says what differs, and registers nothing then")
    output.result(text, topic=given.topic, compatible=True, reason=found.reason)
