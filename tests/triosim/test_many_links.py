"""Many links in one turn under the deterministic trio: none of them takes the others along.

The world is the usual one without weather. The links are 2,000 more, on which nothing is said.
"""

import pytest
import trio

from pulsar_sansio import Address, BrokerConfig
from pulsar_trio import Producer, open_client
from tests.trio.waiting import until
from tests.triosim.engine.sockets import MemorySocket
from tests.triosim.engine.watch import CLIENT
from tests.triosim.profile import HOST, URL, Profile
from tests.triosim.world import World

LINKS = 2000

PRODUCERS = 300

KEEPALIVE = 10.0

PROFILE = Profile(
    clients=1,
    producers=0,
    messages=0,
    largest=0,
    topics=("t",),
    subscriptions=(),
    broker=BrokerConfig(service_url=URL, keepalive_interval=KEEPALIVE),
    latency=1000,
    jitter=0,
    cut_permille=0,
    capacity=4096,
    cancel_permille=0,
    session_permille=0,
    fault_gap=0,
    slow_permille=0,
)


class Crowd(World):
    """`how`: what becomes of the crowd of links."""

    def __init__(self, seed: int, how: str) -> None:
        super().__init__(seed, False, PROFILE)
        self.how = how

    async def _phases(self) -> None:
        await self._with_client("auditor", self._begin_audit)
        driver = self.broker._driver
        crowd: list[MemorySocket] = []

        async def connect() -> None:
            crowd.append(await self.net.connect("crowd", Address(HOST, 6650), 5.0))

        async with trio.open_nursery() as nursery:
            for _ in range(LINKS):
                nursery.start_soon(connect)
        await until(lambda: len(driver.links) == LINKS)
        if self.how == "time out":
            await trio.sleep(2 * KEEPALIVE)
            assert not driver.links
        for sock in crowd:
            if self.how == "reset":
                assert sock.wire is not None
                sock.wire.reset()
            else:
                sock.close()
        await until(lambda: not driver._live_links)
        assert not driver.links
        assert not driver.machine.links
        for sock in crowd:
            sock.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("how", ["time out", "reset", "close"])
def test_a_crowd_of_links_that_end_together_leaves_the_broker_alone(how: str, seed: int) -> None:
    report = Crowd(seed, how).run()
    assert report.failure == ""


class Crew(World):
    """One client with many producers, whose links are all reset in one turn."""

    came_back = 0

    async def _phases(self) -> None:
        await self._with_client("auditor", self._begin_audit)
        CLIENT.set("crew")
        sent = trio.Event()
        working: list[Producer] = []

        async def produce() -> None:
            async with client.create_producer("other", batching=None) as producer:
                working.append(producer)
                await sent.wait()
                await producer.send(b"1")
                self.came_back += 1

        async with open_client(URL, connections_per_broker=64, initial_backoff=0.01) as client:
            async with trio.open_nursery() as nursery:
                for _ in range(PRODUCERS):
                    nursery.start_soon(produce)
                await until(lambda: len(working) == PRODUCERS)
                wires = list(self.net.network.wires.values())
                assert len(wires) > 1
                for wire in wires:
                    wire.reset()
                await until(lambda: not any(producer.connected for producer in working))
                sent.set()
        self._quiet(client)


@pytest.mark.parametrize("seed", range(2))
def test_producers_whose_links_are_lost_together_come_back(seed: int) -> None:
    world = Crew(seed, False, PROFILE)
    report = world.run()
    assert report.failure == ""
    assert world.came_back == PRODUCERS
