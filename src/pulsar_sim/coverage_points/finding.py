"""Coverage points of lookups over HTTP, and of changes to another cluster."""

from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.failover.auto_switch import AutoSwitch
from pulsar_sansio.client.failover.controlled_switch import ControlledSwitch
from pulsar_sansio.client.lookup.http_answer import HttpAnswer
from pulsar_sansio.client.lookup.http_exchange import HttpExchange
from pulsar_sansio.client.lookup.http_lookup import HttpLookup
from pulsar_sansio.model.errors import NotSupported, RemoteProtocolError

from ..engine.profile import FAR_LEDGERS
from ..model.roaming_account import RoamingAccount
from .coverage_point import coverage_point


@coverage_point(HttpLookup, "_redirected")
def redirected_over_http(*_: Any) -> object:
    """A web server sent a lookup to another one."""
    return True


@coverage_point(HttpLookup, "_withdraw")
def not_answered_in_time_over_http(*_: Any) -> object:
    """A web server did not answer within the timeout of the lookup."""
    return True


@coverage_point(HttpAnswer, "refusal")
def refused_over_http(answer: Any) -> object:
    """A web server refused a lookup for now."""
    return answer.status >= 500


@coverage_point(HttpExchange, "close")
def cut_within_an_answer(_exchange: Any, cause: Any, **_: Any) -> object:
    """A web server closed the connection in the middle of its answer."""
    return "complete message body" in str(cause) or "within its answer" in str(cause)


@coverage_point(Client, "_use_service_url")
def changed_with_messages_pending(client: Any, _url: Any) -> object:
    """A client changed to another cluster while a producer had unconfirmed messages."""
    windows = [getattr(each, "_window", None) for each in client._handles.producers.values()]
    return any(window is not None and window.messages for window in windows)


@coverage_point(RoamingAccount, "receives")
def received_in_the_secondary(_account: Any, position: Any, _payload: Any) -> object:
    """A client received a message from the cluster to which it had changed."""
    return position[0] >= FAR_LEDGERS


@coverage_point(AutoSwitch, "_used_probed")
def secondary_lost(switch: Any, error: Any) -> object:
    """A probe of the cluster to which a client had changed failed."""
    return error is not None and switch._used != switch._primary


@coverage_point(AutoSwitch, "_primary_probed")
def primary_lost_again(switch: Any, error: Any) -> object:
    """A probe of the primary cluster failed after others had succeeded."""
    return error is not None and switch._back_since is not None


@coverage_point(AutoSwitch, "_used_probed")
def back_within_the_delay(switch: Any, error: Any) -> object:
    """A probe of the cluster in use succeeded after others had failed."""
    return error is None and switch._failing_since is not None


@coverage_point(ControlledSwitch, "_failed")
def another_identity_refused(_switch: Any, error: Any) -> object:
    """A web service named a cluster with another identity."""
    return isinstance(error, NotSupported)


@coverage_point(ControlledSwitch, "_failed")
def service_without_a_usable_answer(_switch: Any, error: Any) -> object:
    """A web service answered, and named no cluster."""
    return isinstance(error, RemoteProtocolError)
