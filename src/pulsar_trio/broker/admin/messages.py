"""One request, one answer, and the refusals in between; bytes and sockets are `listener`'s business."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from pulsar_sansio import (
    AlreadyExists,
    InUse,
    InvalidConfiguration,
    InvalidTopicName,
    LimitReached,
    LocalProtocolError,
    MessageId,
    NotApplicable,
    NotFound,
    TopicName,
)

JSON = "application/json"

PARTITIONED_METADATA = "application/vnd.partitioned-topic-metadata+json"
"""Media type of a body that has properties beside the number of partitions."""

MAX_QUERY_FIELDS = 50
"""More than any path takes."""

_NOT_AN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

MAX_DIGITS = 18
"""Digits of a number in a path or query. Java's `long` has 19, and no id or time comes near."""

_DIGITS = re.compile("-?[0-9]{1,19}")

STATUSES: dict[type[LocalProtocolError], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    InUse: 412,
    LimitReached: 409,
    NotApplicable: 409,
    InvalidTopicName: 412,
    InvalidConfiguration: 412,
    LocalProtocolError: 412,
}
"""The HTTP status for each refusal of the broker, unless a path says otherwise. Subclasses stand first."""


class Refused(Exception):
    """The request is answered with `status` and `{"reason": reason}`."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(slots=True)
class Answer:
    """The answer to a request. `content_type` is sent only with a body."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)


NO_CONTENT = Answer(204)
NOTHING_SET = Answer(200)
"""A policy that is not set: no body at all."""


def json_answer(value: object, status: int = 200) -> Answer:
    try:
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a name that is no proper text: escaped, it still is proper JSON
        body = json.dumps(value, separators=(",", ":")).encode()
    return Answer(status, body)


def refusal(status: int, reason: str) -> Answer:
    return json_answer({"reason": reason}, status)


@dataclass(slots=True)
class Request:
    """`path`: the parts between slashes, decoded. `parameters`: those that the route names, once found.

    `headers`: the fields that access depends on, by names in lower case. `certificate`: the common name of
    the client's certificate.
    """

    method: str
    path: tuple[str, ...]
    query: dict[str, str]
    content_type: str
    body: bytes = b""
    parameters: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    certificate: str | None = None
    waited: float = 0.0
    """Seconds since the request was asked for the first time."""

    @classmethod
    def parse(cls, method: str, target: str, content_type: str) -> "Request":
        """Raises `Refused` for a target that is no path."""
        if "://" in target.partition("?")[0] and not target.startswith("/"):
            target = "/" + target.partition("://")[2].partition("/")[2]  # as sent to a proxy
        path, _, query = target.partition("?")
        if not path.startswith("/"):
            raise Refused(400, "the request's target is no path")
        parts = path.removesuffix("/").split("/")[1:]
        try:
            fields = parse_qsl(
                query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS, errors="strict"
            )
            decoded = tuple(map(_decode, parts))
        except ValueError as error:
            raise Refused(400, f"the request's target cannot be decoded: {error}") from None
        return cls(method, decoded, dict(fields), content_type.partition(";")[0].strip().lower())

    def flag(self, name: str) -> bool:
        """A query parameter that is `true`."""
        return self.query.get(name, "").lower() == "true"

    def json(self) -> Any:
        """The body's value. Raises `Refused` (400, 415) where there is none or it cannot be read."""
        if not self.body:
            raise Refused(400, "The request entity cannot be empty.")
        if self.content_type not in (JSON, PARTITIONED_METADATA):
            raise Refused(415, f"the body has to be {JSON}, not {self.content_type or 'of no type'}")
        try:
            return json.loads(self.body, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"the body is no JSON: {error}"[:500]) from None

    def json_object(self) -> dict[str, Any]:
        value = self.json()
        if not isinstance(value, dict):
            raise Refused(400, f"the body has to be a JSON object, not {value!r:.200}")
        return value

    def text(self, name: str) -> str:
        """A part of the path."""
        return self.parameters[name]

    @property
    def topic(self) -> str:
        """The full name of the topic in the path; a path without a domain names a persistent topic.

        Raises `Refused` for a name that cannot be.
        """
        parts = self.parameters
        domain = parts.get("domain", "persistent")
        return str(topic_name(domain, parts["tenant"], parts["namespace"], parts["topic"]))

    @property
    def namespace(self) -> str:
        """`tenant/namespace` of the path. Raises `Refused` for one that cannot be."""
        namespace = f"{self.parameters['tenant']}/{self.parameters['namespace']}"
        try:
            TopicName.parse(f"persistent://{namespace}/topic")
        except InvalidTopicName:
            raise Refused(412, "Namespace name is not valid") from None
        return namespace


def topic_name(domain: str, tenant: str, namespace: str, topic: str) -> TopicName:
    """Return the name that these parts of a path make. Raises `Refused` for one that cannot be."""
    try:
        return TopicName.parse(f"{domain}://{tenant}/{namespace}/{topic}")
    except InvalidTopicName:
        raise Refused(412, "Topic name is not valid") from None


def _decode(part: str) -> str:
    if _NOT_AN_ESCAPE.search(part):
        raise ValueError(f"{part!r:.100} has a % that begins no escape")
    return unquote_to_bytes(part).decode()


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def whole_number(value: object, bits: int = 32) -> int:
    """A JSON number without a fraction, or its digits as a text, within so many bits. Raises `Refused`."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Refused(400, f"the value has to be a whole number, not {value!r:.200}")
    return value


def truth(value: object) -> bool:
    """`true` or `false`. Raises `Refused`."""
    if not isinstance(value, bool):
        raise Refused(400, f"the value has to be true or false, not {value!r:.200}")
    return value


def path_number(text: str, *, signed: bool = False) -> int:
    """A whole number in the path or query, which may be negative if `signed`. Raises `Refused` (404)."""
    digits = text.removeprefix("-") if signed else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > MAX_DIGITS:
        raise Refused(404, "Not Found")
    return int(text)


def properties(value: object) -> dict[str, str]:
    """A map of text to text. Raises `Refused`."""
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Refused(400, f"properties have to be a map of text to text, not {value!r:.200}")
    return value


def message_id_json(message_id: MessageId) -> dict[str, int]:
    """A message id in the form of the Java broker. It omits the partition, which is in the topic's name."""
    return {
        "ledgerId": message_id.ledger_id,
        "entryId": message_id.entry_id,
        "partitionIndex": -1,
        "batchIndex": -1,
        "batchSize": 0,
    }


@contextmanager
def answering(*cases: tuple[type[LocalProtocolError], int, str]) -> Iterator[None]:
    """Refusals of these kinds get this status and reason; an empty reason is the broker's own."""
    try:
        yield
    except LocalProtocolError as error:
        for kind, status, reason in cases:
            if isinstance(error, kind):
                raise Refused(status, reason or str(error)) from None
        raise


def answer_to(error: LocalProtocolError) -> Answer:
    """The answer to a refusal for which the path has no words of its own."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return refusal(status, str(error))
    raise AssertionError(error)


def phrase(status: int) -> str:
    """The words beside a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
