"""Values that SQLite has no type for: lists, sets of bits, policies, texts and numbers out of its range.

Peers choose some of these values, so every value that a record can hold goes in and comes out again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from pulsar_sansio import MessageRate, Policies, SubscriptionRates

from .errors import StoreTooNew

_GREATEST = 2**63 - 1

_RECORDS: dict[str, Any] = {
    name: kind
    for name, hint in get_type_hints(Policies).items()
    for kind in get_args(hint)
    if is_dataclass(kind)
}
"""Policies that have several values -> their classes."""

_POLICIES = {field.name for field in fields(Policies)}


def stored_integer(value: int) -> int | str:
    """Return an integer of 64 bits as it is, and a greater one as text."""
    return value if -_GREATEST <= value <= _GREATEST else str(value)


def stored_text(value: str) -> str | bytes:
    """Return Unicode as it is, and a text with half of a surrogate pair as bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def text_of(value: str | bytes) -> str:
    """Return the text of `stored_text`."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def pairs_of(text: str) -> tuple[tuple[Any, Any], ...]:
    """Return the pairs of a JSON list of pairs."""
    return tuple((first, second) for first, second in json.loads(text))


def nested_pairs_of(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return pairs of a name and several others."""
    return tuple((first, tuple(second)) for first, second in json.loads(text))


def bits_to_json(pairs: Sequence[tuple[int, int]]) -> str:
    """Return pairs of an offset and a set of bits as JSON. Python converts hexadecimals of any length."""
    return to_json([(offset, f"{bits:x}") for offset, bits in pairs])


def bits_of(text: str) -> tuple[tuple[int, int], ...]:
    """Return the pairs of `bits_to_json`."""
    return tuple((offset, int(bits, 16)) for offset, bits in json.loads(text))


def policies_to_json(policies: Policies) -> str:
    """Return the policies that are set, by name."""
    return to_json({name: value for name, value in asdict(policies).items() if value is not None})


def policies_of(text: str) -> Policies:
    """Return the policies of `policies_to_json`.

    Raises `StoreTooNew` for a name that this version does not know: a policy that is left out is not
    enforced.
    """
    values: dict[str, Any] = {}
    for name, value in json.loads(text).items():
        if name not in _POLICIES:
            raise StoreTooNew(f"this version does not know the policy {name!r}")
        record = _RECORDS.get(name)
        if record is not None:
            value = _record_of(record, name, value)
        elif isinstance(value, list):
            value = tuple(value)
        values[name] = value
    return Policies(**values)


def _record_of(record: Any, policy: str, value: dict[str, Any]) -> Any:
    """Return a policy that has several values. Raises `StoreTooNew`."""
    known = {field.name for field in fields(record)}
    if unknown := value.keys() - known:
        raise StoreTooNew(f"this version does not know {sorted(unknown)} of the policy {policy!r}")
    if record is SubscriptionRates:
        rates = ((name, _record_of(MessageRate, policy, rate)) for name, rate in value["by_name"])
        return SubscriptionRates(tuple(rates))
    return record(**value)
