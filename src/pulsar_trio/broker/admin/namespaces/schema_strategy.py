"""The strategy of a namespace for new versions of schemas under its older names.

A Java broker keeps two strategies, and uses this one where the other is not set. This broker keeps one.
"""

from pulsar_sansio import NotFound

from ..messages import NO_CONTENT, Answer, Refused, Request, answering, json_answer
from ..routes import AdministeredBroker, Route
from .policies import NAMESPACE

_PATH = f"{NAMESPACE}/schemaAutoUpdateCompatibilityStrategy"

STRATEGIES = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""Older name -> name."""

_OLDER = {name: older for older, name in STRATEGIES.items()}

_ABSENT = (NotFound, 404, "Namespace does not exist")


def _read(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(_ABSENT):
        strategy = broker.machine.administration.policies_of(request.namespace).schema_compatibility
    return NO_CONTENT if strategy is None else json_answer(_OLDER[strategy])


def _set(broker: AdministeredBroker, request: Request) -> Answer:
    """Set the strategy; without a body, remove it."""
    given = request.json() if request.body else None
    if given is not None and not (isinstance(given, str) and given in STRATEGIES):
        raise Refused(400, f"strategy: one of {', '.join(STRATEGIES)}; not {given!r:.200}")
    strategy = None if given is None else STRATEGIES[given]
    with answering(_ABSENT):
        set_policy = broker.machine.administration.set_policy
        broker.command(set_policy, request.namespace, "schema_compatibility", strategy)
    return NO_CONTENT


ROUTES: list[Route] = [("GET", _PATH, _read), ("PUT", _PATH, _set)]
