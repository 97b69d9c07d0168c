"""Changing to another cluster while the client runs: by probes, or as a web service says."""

from collections.abc import Callable

from ...model.config import AutoFailover
from ...model.service_url import ServiceUrl
from ..connecting.services import Services
from .auto_switch import AutoSwitch
from .controlled_switch import ControlledSwitch


def failover_of(
    services: Services, switch: Callable[[ServiceUrl, str], None]
) -> AutoSwitch | ControlledSwitch | None:
    """Return the machine for the client's `failover`; None for a client that stays.

    `switch(url, reason)`: changes the client's service URL.
    """
    config = services.config.failover
    if config is None:
        return None
    if isinstance(config, AutoFailover):
        return AutoSwitch(services, config, switch)
    return ControlledSwitch(services, config, switch)
