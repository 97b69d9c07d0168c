"""What an administrator may do wrong, by kind, so that a front end can answer each in its own words.

All are `LocalProtocolError`: raised by the command itself, which has then changed nothing. A value out of
range is `InvalidConfiguration`, a malformed name `InvalidTopicName`, as everywhere.
"""

from ..model.errors import LocalProtocolError


class NotFound(LocalProtocolError):
    """The tenant, namespace, topic or subscription named does not exist."""


class AlreadyExists(LocalProtocolError):
    """The tenant, namespace, topic or subscription named exists."""


class InUse(LocalProtocolError):
    """Somebody is connected to what was to be deleted, or something is in it."""


class NotApplicable(LocalProtocolError):
    """The topic exists and is of another kind: partitioned or not, persistent or not."""


class LimitReached(LocalProtocolError):
    """A policy allows no more topics in the namespace, or no more subscriptions of the topic."""
