"""The broker's administration over HTTP: the paths and bodies of Pulsar's REST API, as its tools send them.

`listener` has the sockets, `messages` one request and one answer, `routes` the table of paths. The modules
`topics`, `subscriptions`, `namespaces`, `policies` and `cluster` define the paths. Each translates JSON to a
command of the broker, and the result or refusal to JSON and a status. Nothing here decides what a command
does.

`access` decides which role a request has and what the role may do. Without authentication every client that
can reach the port administers the broker.
"""

from .listener import AdminListener

__all__ = ["AdminListener"]
