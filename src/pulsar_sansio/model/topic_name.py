"""`TopicName`: the parts of a topic's name and how short names grow (rules TOPIC-01, TOPIC-02, TOPIC-04)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from .errors import InvalidTopicName

_NAMESPACE_PART = re.compile(r"[-=:.\w]+")
_PARTITION_SUFFIX = re.compile(r"-partition-(0|[1-9][0-9]{0,8})\Z", re.ASCII)
"""A longer number is no partition's: it would not fit the 32 bits that indexes have on the wire."""
_DOMAINS = ("persistent", "non-persistent")


def is_text(value: object) -> TypeGuard[str]:
    """Return True for text that can be sent: UTF-8 has no half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic's name in its parts. `str()` gives the full form `domain://tenant/namespace/local`."""

    domain: str
    tenant: str
    namespace: str
    """The namespace's own part, without the tenant."""
    local: str

    @classmethod
    def parse(cls, text: str) -> "TopicName":
        """The name behind `x`, `tenant/namespace/x` or the full form.

        Raises `InvalidTopicName`, saying which part is wrong, for anything else.
        """
        if not isinstance(text, str):
            raise InvalidTopicName(f"a topic name is text, not {type(text).__name__}")
        return cls._parse(text)

    @classmethod
    @lru_cache(maxsize=1024)
    def _parse(cls, text: str) -> "TopicName":
        """The same names are asked for again and again: on a lookup, an attachment, an answer."""
        domain, separator, rest = text.partition("://")
        if not separator:
            parts = text.split("/")
            if len(parts) == 1:
                parts = ["public", "default", text]
            elif len(parts) != 3:
                raise InvalidTopicName(
                    f"topic name {text!r}: a short name is 'topic' or 'tenant/namespace/topic'"
                )
            domain = "persistent"
        else:
            parts = rest.split("/", 2)
            if domain not in _DOMAINS:
                raise InvalidTopicName(
                    f"topic name {text!r}: the domain is 'persistent' or 'non-persistent', not {domain!r}"
                )
            if len(parts) != 3:
                raise InvalidTopicName(
                    f"topic name {text!r}: the full form is '{domain}://tenant/namespace/topic'"
                )
        tenant, namespace, local = parts
        for what, part in (("tenant", tenant), ("namespace", namespace)):
            if not _NAMESPACE_PART.fullmatch(part):
                raise InvalidTopicName(
                    f"topic name {text!r}: the {what} {part!r} may hold letters, digits and -=:._ only"
                )
        if not local.strip():
            raise InvalidTopicName(f"topic name {text!r}: the topic's own part is empty")
        if not is_text(local):
            raise InvalidTopicName(f"topic name {text!r}: half a surrogate pair is no character")
        if "/" in local:
            raise InvalidTopicName(
                f"topic name {text!r}: too many parts; names with a cluster (V1) are not supported"
            )
        return cls(domain, tenant, namespace, local)

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local}"

    @property
    def namespace_name(self) -> str:
        """`tenant/namespace`."""
        return f"{self.tenant}/{self.namespace}"

    @property
    def persistent(self) -> bool:
        """True for a topic whose messages are stored."""
        return self.domain == "persistent"

    @property
    def partition(self) -> int:
        """The index in the suffix `-partition-<n>`, or -1 where there is none."""
        found = _PARTITION_SUFFIX.search(self.local)
        return int(found[1]) if found else -1

    @property
    def base(self) -> "TopicName":
        """The partitioned topic this name is a partition of; the name itself where it is none."""
        local = _PARTITION_SUFFIX.sub("", self.local)
        return self if local == self.local else TopicName(self.domain, self.tenant, self.namespace, local)

    def partition_name(self, index: int) -> "TopicName":
        """The name of partition `index` (from 0) of this topic."""
        return TopicName(self.domain, self.tenant, self.namespace, f"{self.local}-partition-{index}")
