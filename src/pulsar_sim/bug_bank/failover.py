"""Bugs of a client that changes between two clusters by probes."""

from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.failover.auto_switch import AutoSwitch

from .planted_bug import Patches, bug
from .preconditions import failover as needs


@bug("own", caught_by=("INV-F1",), needs=[needs.changes])
def a_cluster_is_left_at_the_second_failed_probe(patches: Patches) -> None:
    """The client does not wait for the delay, and leaves a cluster that is away for a moment."""

    def used_probed(original: Any, self: Any, error: Any) -> None:
        self._failover_delay = 0
        original(self, error)

    patches.around(AutoSwitch, "_used_probed", used_probed)


@bug("own", caught_by=("INV-F1",), needs=[needs.changes])
def the_primary_is_used_at_its_second_answer(patches: Patches) -> None:
    """The client goes back without a delay, to a primary cluster that may be away again at once."""

    def primary_probed(original: Any, self: Any, error: Any) -> None:
        self._switch_back_delay = 0
        original(self, error)

    patches.around(AutoSwitch, "_primary_probed", primary_probed)


@bug("own", caught_by=("INV-F2",), needs=[needs.changes, needs.calm])
def a_cluster_that_is_away_is_never_left(patches: Patches) -> None:
    """The client counts the time of failed probes anew at each of them."""

    def used_probed(original: Any, self: Any, error: Any) -> None:
        self._failing_since = None
        original(self, error)

    patches.around(AutoSwitch, "_used_probed", used_probed)


@bug("own", caught_by=("INV-N5",), needs=[needs.changes])
def the_primary_is_never_used_again(patches: Patches) -> None:
    """The client stays in the secondary cluster for good."""

    def primary_probed(original: Any, self: Any, error: Any) -> None:
        self._back_since = None
        original(self, error)

    patches.around(AutoSwitch, "_primary_probed", primary_probed)


@bug("own", caught_by=("INV-F3", "INV-N5"), needs=[needs.changes])
def links_survive_a_change(patches: Patches) -> None:
    """Producers and consumers stay in the former cluster as long as their connections work."""

    def use_service_url(original: Any, self: Any, service_url: Any) -> None:
        self._services.addresses.set_service_url(service_url)

    patches.around(Client, "_use_service_url", use_service_url)
