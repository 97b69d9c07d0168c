"""`answer_of`: the answer of a broker's web server to a request, as the broker has it now.

Owns the paths of lookups, partitions and topic lists. `WebServer` owns what becomes of an answer on its way.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.model.errors import BrokerError, TopicNotFound
from pulsar_sansio.model.topic_name import TopicName

WEB_PORT = 8080
"""The port of every web server."""

LOOKUP = "/lookup/v2/topic/"
ADMIN = "/admin/v2/"


def web_name(broker: str) -> str:
    """Return the name of a broker's web server in the network."""
    return f"web-of-{broker}"


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """`location`: the target of a redirect, or empty."""

    status: int
    body: bytes
    location: str = ""


def json_answer(found: Any) -> WebAnswer:
    return WebAnswer(200, json.dumps(found).encode())


def refusal(status: int, reason: str) -> WebAnswer:
    return WebAnswer(status, json.dumps({"reason": reason}).encode())


def redirect(host: str, target: str) -> WebAnswer:
    """Return the redirect to another broker's web server."""
    return WebAnswer(307, b"", f"http://{host}:{WEB_PORT}{target}")


def answer_of(broker: Broker, target: str) -> WebAnswer:
    """Return the answer to a GET of `target`. Raises `ValueError` for a path that no client asks for."""
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = parts.path
    try:
        if path.startswith(LOOKUP):
            return _lookup(broker, _topic(path.removeprefix(LOOKUP)), query, target)
        if path.startswith(ADMIN) and path.endswith("/partitions"):
            topic = _topic(path.removeprefix(ADMIN).removesuffix("/partitions"))
            create = query["checkAllowAutoCreation"] == "true"
            return json_answer({"partitions": broker.topics.partitions_for(topic, create)})
        if path.startswith(f"{ADMIN}namespaces/") and path.endswith("/topics"):
            namespace = path.removeprefix(f"{ADMIN}namespaces/").removesuffix("/topics")
            names = broker.topics.names.listed(unquote(namespace))
            return json_answer([name for name in names if _is_listed(name, query["mode"])])
    except TopicNotFound as error:
        return refusal(404, error.text)
    except BrokerError as error:
        return refusal(503, error.text)
    raise ValueError(f"no client asks for {target}")


def _lookup(broker: Broker, topic: TopicName, query: dict[str, str], target: str) -> WebAnswer:
    elsewhere = broker.topics.other_broker(str(topic), query["authoritative"] == "true")
    if elsewhere is None:
        return json_answer({"brokerUrl": broker.config.service_url})
    if not elsewhere.redirect:
        return json_answer({"brokerUrl": elsewhere.service_url})
    host = elsewhere.service_url.removeprefix("pulsar://").partition(":")[0]
    there = "true" if elsewhere.authoritative else "false"
    return redirect(host, f"{urlsplit(target).path}?authoritative={there}")


def _topic(path: str) -> TopicName:
    domain, tenant, namespace, local = map(unquote, path.split("/"))
    return TopicName.parse(f"{domain}://{tenant}/{namespace}/{local}")


def _is_listed(name: str, mode: str) -> bool:
    persistent = not name.startswith("non-persistent://")
    return mode == "ALL" or persistent == (mode == "PERSISTENT")
