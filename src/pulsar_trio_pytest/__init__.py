"""A Pulsar broker for tests of applications, in a process of its own: a pytest plugin and its parts.

Tests with any client, asynchronous or not, ask for the fixture `pulsar_broker` (docs/testing.md). This
package imports neither trio nor the broker, so a run of pytest that does not use it pays nothing.
"""

from .broker_process import BrokerProcess
from .control import BrokerHasEnded, PulsarBroker, RemoteFaults, RemoteRule

__all__ = ["BrokerHasEnded", "BrokerProcess", "RemoteFaults", "PulsarBroker", "RemoteRule"]
