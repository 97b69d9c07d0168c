"""A real Apache Pulsar for tests and measurements, from Maven Central and without Docker.

`with RealPulsar() as pulsar:` gives a running standalone broker with `.url` and `.admin`;
`python -m tests.real_pulsar run` does the same from a shell. Needs Java 17 or later, and Maven the first
time; where one of them is missing, `Unavailable` says so in one line.
"""

from tests.real_pulsar.admin import Admin, AdminError
from tests.real_pulsar.jars import VERSION, Unavailable
from tests.real_pulsar.server import RealPulsar

__all__ = ["Admin", "AdminError", "RealPulsar", "Unavailable", "VERSION"]
