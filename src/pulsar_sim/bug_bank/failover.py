"""Bugs of a client that changes between two clusters, by probes or as a web service says."""

from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.failover.auto_switch import AutoSwitch
from pulsar_sansio.client.failover.controlled_switch import ControlledSwitch
from pulsar_sansio.client.failover.probe import Probe
from pulsar_sansio.model.errors import ConnectionLost
from pulsar_sansio.model.service_url import ServiceUrl

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


@bug("own", caught_by=("INV-F3",), needs=[needs.silence])
def links_without_a_handle_survive_a_change(patches: Patches) -> None:
    """A change ends the links of producers and consumers, and leaves those of lookups open."""

    def use_service_url(original: Any, self: Any, service_url: Any) -> None:
        self._services.addresses.set_service_url(service_url)
        cause = ConnectionLost("the cluster is another one")
        self._services.lookup.fail_waiting(cause)
        for link in list(self._links.open.values()):
            if link.producers or link.consumers:
                link.close(cause)

    patches.around(Client, "_use_service_url", use_service_url)


@bug("own", caught_by=("INV-F6",), needs=[needs.changes])
def another_cluster_is_used_without_a_probe(patches: Patches) -> None:
    """The client leaves a cluster that is away for the next one, whether that one is there or not."""

    def try_next(original: Any, self: Any, reason: str) -> None:
        self._use(next(self._others), reason)

    patches.around(AutoSwitch, "_try_next", try_next)


@bug("own", caught_by=("INV-F6",), needs=[needs.secondary_away])
def a_failed_probe_of_another_cluster_leads_there(patches: Patches) -> None:
    """The client waits for the probe of the next cluster, and does not look at its outcome."""

    def try_next(original: Any, self: Any, reason: str) -> None:
        url = next(self._others)
        self._probe = Probe(self._services, url, lambda error: self._use(url, reason))

    patches.around(AutoSwitch, "_try_next", try_next)


@bug("own", caught_by=("INV-N5",), needs=[needs.returns_to_what_it_left])
def messages_of_another_cluster_are_dropped(patches: Patches) -> None:
    """A consumer drops each message from a cluster which is not that of the first service URL."""

    def on_message(original: Any, self: Any, connection: Any, command: Any) -> None:
        services = connection._services
        if services.addresses.service_url == ServiceUrl.parse(services.config.service_url):
            original(self, connection, command)

    patches.around(Consumer, "on_message", on_message)
    patches.replace(Consumer, "on_uniform_messages", lambda *_: False)


@bug("own", caught_by=("INV-F5",), needs=[needs.wrong_names])
def an_answer_without_a_url_leads_home(patches: Patches) -> None:
    """An answer without a service URL sends the client to the cluster of its own URL."""
    patches.around(
        ControlledSwitch, "_named", lambda original, self, data: original(self, data) or self._first
    )


@bug("own", caught_by=("INV-F5",), needs=[needs.wrong_names])
def another_identity_is_taken(patches: Patches) -> None:
    """The client goes to a cluster that needs other credentials, and connects with its own."""

    def named(original: Any, self: Any, data: Any) -> Any:
        url = data.get("serviceUrl") if isinstance(data, dict) else None
        return original(self, data if url is None else {"serviceUrl": url})

    patches.around(ControlledSwitch, "_named", named)


@bug("own", caught_by=("INV-N5",), needs=[needs.wrong_names])
def a_refused_answer_ends_the_questions(patches: Patches) -> None:
    """The client asks the web service no more when an answer was of no use."""

    def failed(original: Any, self: Any, error: Any) -> None:
        original(self, error)
        self._timer.clear()

    patches.around(ControlledSwitch, "_failed", failed)


@bug("own", caught_by=("INV-F5",), needs=[needs.names])
def the_name_of_a_cluster_is_ignored(patches: Patches) -> None:
    """The client asks the web service, and stays in its cluster whatever the answer."""
    patches.around(ControlledSwitch, "_named", lambda original, self, data: None)


@bug("own", caught_by=("INV-F4",), needs=[needs.changes])
def a_change_fails_what_is_pending(patches: Patches) -> None:
    """A change of cluster fails the messages that are pending, in place of sending them again."""

    def use_service_url(original: Any, self: Any, service_url: Any) -> None:
        for producer in list(self._handles.producers.values()):
            producer._fail_everything(ConnectionLost("the cluster is another one"))
        original(self, service_url)

    patches.around(Client, "_use_service_url", use_service_url)
