"""`Resource`: one policy over HTTP, which fields of `Policies` it is, and how its JSON looks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulsar_sansio import Policies


@dataclass(frozen=True, slots=True)
class Resource:
    """One policy. `read` gives its JSON, None where it is not set; `write` the fields that JSON means, and
    raises `Refused`. `fields`: what DELETE removes, and POST where `removed_by_null` and its JSON is `null`.
    `unset`: the status where `read` gives None. `applied`: the JSON of a topic's effective value where no
    level sets it.
    """

    fields: tuple[str, ...]
    read: Callable[[Policies], Any]
    write: Callable[[Any], dict[str, object]]
    unset: int = 200
    applied: Any = None
    removed_by_null: bool = False
