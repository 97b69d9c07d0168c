"""The official Java administration client: what it asks is answered alike by our broker and a real one."""

import re
import subprocess
from pathlib import Path

import pytest
import trio

from tests.real_pulsar.jars import jars, java
from tests.suite.brokers import BrokerUnderTest

PROGRAM = Path(__file__).with_name("Administer.java")

SAID = """\
clusters = [standalone]
brokers = 1
health = ok
tenant = TenantInfoImpl(adminRoles=[a], allowedClusters=[standalone])
tenant again ! ConflictException 409 Tenant already exist
namespace = null
namespace2 = [T/o2, T/orders]
namespace3 = [T/o2, T/o3, T/orders]
namespace4 = true
dedup = true
retention = RetentionPolicies{retentionTimeInMinutes=10, retentionSizeInMB=5}
ttl = 30
auto = 3
create = [persistent://T/orders/t]
create properties = {k=v}
partitioned = 2
partitioned properties = {k=v}
update = 4
shrink ! PulsarAdminException 422 Desired partitions 1 can't be less than the current partitions 4.
list partitioned = [persistent://T/orders/p, persistent://T/orders/p2]
subscription = [s]
subscription latest = [l, s]
reset = ok
reset id = ok
skip = ok
stats = 0
stats full = Enabled 0.0 true
partitioned stats = 4
internal = true
partitioned internal = 4
last id = true
lookup = true
lookup partitioned = 4
bundle = true
topic dedup = false
topic dedup applied = true
topic ttl = 7
topic producers = 7
coordinators = 1
coordinator = Ready true
transaction = OPEN 60000 [persistent://T/orders/t2] {}
slow = true false
buffer = Ready 1
in buffer = false
pending = None
in pending = null
position = PendingAckNotReady
scale ! PulsarAdminException 406 Number of transaction coordinators should be more than the current number \
of transaction coordinator
no coordinator ! NotFoundException 404 Transaction coordinator not found! coordinator id : 7
peek committed = []
peek uncommitted = [inside, behind]
abort = true
peek aborted = [behind]
peek markers = [inside, behind, ]
no transaction = The transaction with this txdID `it`not found
unload = ok
terminate = true
terminate partitioned = [0, 1, 2, 3]
delete subscription = [l]
delete none ! NotFoundException 404 Topic persistent://T/orders/tnone not found
delete = []
delete namespaces = []
delete tenant = false
""".splitlines()
"""The lines that the program prints; T is its tenant."""

OF_A_STEP = re.compile("[a-z0-9 ]+ (=|!!?) ")
"""The beginning of a line of the program; lines of the client's log begin otherwise."""


@pytest.mark.real
@pytest.mark.slow
async def test_the_java_administration_client(broker: BrokerUnderTest, local_name: str) -> None:
    tenant = local_name.replace("[", "").replace("]", "")
    command = [
        java(),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars()}/*",
        str(PROGRAM),
        broker.admin.url,
        tenant,
    ]
    done = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL, check=False)
    said = [line.replace(tenant, "T") for line in done.stdout.decode().splitlines()]
    assert [line for line in said if OF_A_STEP.match(line)] == SAID
