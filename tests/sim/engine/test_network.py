"""The network alone: the bytes that arrive, their portions, and the bytes that do not."""

from itertools import accumulate
from typing import Any

from pulsar_sansio.wire import encode_flow, encode_ping, encode_pong, proto
from pulsar_sim.engine.clock import MILLISECOND, SECOND, Clock
from pulsar_sim.engine.network import Conditions, Network, Wire
from pulsar_sim.engine.randomness import Stream
from pulsar_sim.engine.trace import Trace

T = proto.BaseCommand


class Node:
    """Records its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.news: list[tuple[str, Any]] = []
        self.arrivals: list[tuple[int, int]] = []
        """The number of bytes that had arrived with each frame, and its kind."""
        self.wire: Wire | None = None

    def accept(self, wire: Wire) -> bool:
        self.wire = wire
        return True

    def link_connected(self, link: int, wire: Wire) -> None:
        self.wire = wire
        self.news.append(("connected", link))

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        self.news.append(("data", data))
        self.arrivals += [(len(self.data) - behind, kind) for behind, kind, _ in frames]

    def link_eof(self, link: int) -> None:
        self.news.append(("end", link))

    def link_lost(self, link: int, reason: str) -> None:
        self.news.append(("lost", reason))

    @property
    def data(self) -> bytes:
        return b"".join(what for kind, what in self.news if kind == "data")

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.news]


class Net:
    """A client, a broker, and a network between them."""

    def __init__(self, seed: int = 1, cut_permille: int = 0, jitter: int = 0) -> None:
        self.clock = Clock(10**15)
        self.client = Node("client")
        self.broker = Node("broker")
        conditions = Conditions(MILLISECOND, jitter, cut_permille)
        self.garbage: list[object] = []
        self.network = Network(
            self.clock, Stream(seed), Trace(), conditions, lambda *_: None, self.garbage.append
        )
        self.network.listeners["broker"] = self.broker

    def connect(self) -> Wire:
        self.network.connect(self.client, 7, "broker")
        self.run()
        assert self.client.news == [("connected", 7)]
        self.client.news.clear()
        assert self.client.wire is not None
        return self.client.wire

    def run(self) -> None:
        while self.clock.step():
            pass


PINGS = encode_ping() * 20


def test_bytes_arrive_in_order_whatever_the_cuts() -> None:
    portions: set[int] = set()
    for seed in range(20):
        net = Net(seed, cut_permille=700, jitter=MILLISECOND)
        wire = net.connect()
        for at in range(0, len(PINGS), 100):
            wire.to_broker.write(PINGS[at : at + 100])
        net.run()
        assert net.broker.data == PINGS
        assert len(net.broker.arrivals) == 20
        assert net.client.news == []
        portions.add(len(net.broker.news))
    assert len(portions) > 1, "the cuts differ"


def test_what_is_written_together_with_a_close_arrives_before_the_end() -> None:
    net = Net()
    wire = net.connect()
    wire.to_broker.write(PINGS)
    wire.closed_by(client_side=True)
    net.run()
    assert net.broker.data == PINGS
    assert net.broker.kinds[-1] == "end"
    assert net.client.news == []


def test_a_reset_tells_both_ends_and_loses_what_is_under_way() -> None:
    net = Net()
    wire = net.connect()
    wire.to_broker.write(PINGS)
    wire.reset()
    net.run()
    assert net.broker.kinds == ["lost"]
    assert net.client.kinds == ["lost"]
    assert net.network.wires == {}


def test_half_open_means_silence() -> None:
    net = Net()
    wire = net.connect()
    wire.half_open(to_broker=True, to_client=False)
    wire.to_broker.write(PINGS)
    wire.to_client.write(PINGS)
    net.run()
    assert net.broker.news == []
    assert net.client.data == PINGS


def test_a_prefix_of_what_is_under_way_may_be_all_that_arrives() -> None:
    net = Net()
    wire = net.connect()
    wire.to_broker.write(PINGS)
    wire.to_broker.truncate(33)
    wire.to_broker.write(PINGS)
    net.run()
    assert net.broker.data == PINGS[:33]


def test_a_blocked_pipe_delivers_everything_at_once() -> None:
    net = Net()
    wire = net.connect()
    start = net.clock.now
    wire.to_broker.block(start + SECOND)
    for at in range(0, len(PINGS), 50):
        wire.to_broker.write(PINGS[at : at + 50])
    net.run()
    assert net.broker.news == [("data", PINGS)]
    assert net.clock.now >= start + SECOND


def test_good_weather_lets_go_of_what_a_blocked_pipe_holds_back() -> None:
    net = Net()
    wire = net.connect()
    wire.to_broker.block(net.clock.now + 8 * SECOND)
    wire.to_broker.write(PINGS)
    healed = net.clock.now
    net.network.heal()
    wire.to_broker.write(PINGS)
    while len(net.broker.data) < 2 * len(PINGS):
        assert net.clock.step()
    assert net.clock.now <= healed + SECOND


def test_writing_to_a_closed_peer_is_answered_by_a_reset_sooner_or_later() -> None:
    net = Net()
    wire = net.connect()
    wire.closed_by(client_side=True)
    for _ in range(20):
        wire.to_client.write(PINGS)
        net.run()
    assert net.client.news == []
    assert net.broker.kinds.count("lost") == 1


def test_no_process_listens_there() -> None:
    net = Net()
    net.network.connect(net.client, 1, "elsewhere")
    net.run()
    assert net.client.news == [("lost", "connection refused")]


def test_a_connection_that_hangs_says_nothing() -> None:
    net = Net()
    net.network.conditions.connect_fates.append("hang")
    net.network.connect(net.client, 1, "broker")
    net.run()
    assert net.client.news == []


def test_bytes_that_are_no_frame_are_reported() -> None:
    net = Net()
    wire = net.connect()
    wire.to_broker.write(b"\x00\x00\x00\x02\x00\x00\x00\x09")
    assert net.garbage == [wire.to_broker]


def test_a_frame_of_the_monitor_comes_in_front_of_the_one_at_hand() -> None:
    """Each frame is reported when its last byte has arrived, in whatever portions."""
    ping, pong, flow = encode_ping(), encode_pong(), encode_flow(0, 1)
    for instead in (None, b""):

        def monitor(
            wire: Wire, to_broker: bool, kind: int, command: Any, instead: bytes | None = instead
        ) -> bytes | None:
            if kind != T.PONG:
                return None
            wire.to_broker.inject(flow, T.FLOW, None)
            return instead

        for seed in range(20):
            net = Net(seed, cut_permille=700)
            wire = net.connect()
            net.network.monitor = monitor
            wire.to_broker.write(ping + pong + ping)
            net.run()
            assert net.broker.data == ping + flow + (pong if instead is None else b"") + ping
            kinds = [T.PING, T.FLOW, *([T.PONG] if instead is None else []), T.PING]
            assert [kind for _, kind in net.broker.arrivals] == kinds
            assert [arrived for arrived, _ in net.broker.arrivals] == list(
                accumulate(len({T.PING: ping, T.PONG: pong, T.FLOW: flow}[kind]) for kind in kinds)
            )
