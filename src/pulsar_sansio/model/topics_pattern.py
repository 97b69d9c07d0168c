"""Matching names of topics with patterns (rule PATTERN-02).

A pattern is a regular expression in RE2's syntax, as Pulsar's brokers match it. The time is in proportion
to the name, whatever the pattern. Python's own matcher backtracks, and a name that a stranger chose could
stop a client. Syntax that RE2 has not, look-around and references back, is refused.
"""

from collections.abc import Callable

import re2

from .topic_name import TopicName

MAX_PATTERN_LENGTH = 1000
"""Characters."""

MAX_PATTERN_MEMORY = 1024 * 1024
"""Bytes that a compiled pattern may take; a pattern that would take more is refused."""


class BadPattern(ValueError):
    """The fault that RE2 finds in a pattern."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a whole name matches; both without `domain://`. Raises `BadPattern`."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadPattern(f"{len(pattern)} characters, allowed are {MAX_PATTERN_LENGTH}")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise BadPattern(reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise BadPattern("it is no text that can be sent") from None

    def matches(name: str) -> bool:
        try:
            return compiled.fullmatch(name) is not None
        except UnicodeEncodeError:
            return False

    return matches


def without_domain(text: str) -> str:
    return text.split("://", 1)[-1]


def matches_topic(matches: Callable[[str], bool], name: TopicName) -> bool:
    """Return True if the topic, or the topic that it is a partition of, matches."""
    return matches(without_domain(str(name.base)))
