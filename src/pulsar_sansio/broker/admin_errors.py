"""The mistakes of an administrator, by kind, so that a front end can answer each in its own terms.

All are `LocalProtocolError`: the command itself raises them, and then changes nothing. A value out of range
raises `InvalidConfiguration`, a malformed name `InvalidTopicName`.
"""

from ..model.errors import LocalProtocolError


class NotFound(LocalProtocolError):
    """The tenant, namespace, topic or subscription named does not exist."""


class AlreadyExists(LocalProtocolError):
    """The tenant, namespace, topic or subscription named exists."""


class InUse(LocalProtocolError):
    """The tenant, namespace, topic or subscription to be deleted has clients or contents."""


class NotApplicable(LocalProtocolError):
    """The topic exists and is of another kind: partitioned or not, persistent or not."""


class LimitReached(LocalProtocolError):
    """There may be no more tenants, namespaces, topics, or subscriptions of a topic."""
