"""The brokers of a world, and what befalls them.

Owns the processes: who is killed when, and for how long it stays down; what an administrator asks them to do.
"""

from typing import TYPE_CHECKING

from .nodes import BrokerNode
from .streams import Stream

if TYPE_CHECKING:
    from .world import World


class Cluster:
    """All brokers."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.nodes = [BrokerNode(world, "broker-0", world.profile.broker)]

    def any(self, stream: Stream) -> BrokerNode:
        return stream.choice(self.nodes)

    def boot(self) -> None:
        """Start those that are not running."""
        for node in self.nodes:
            self._boot(node)

    def heal(self) -> None:
        """Everybody runs, and nobody is to be killed."""
        for node in self.nodes:
            node.doomed = None
            if node.broker is None:
                node.boot()
            elif node.frozen_until:
                self.world.clock.after(0, node.thaw)

    # --- what faults do ---

    def kill(self, broker: BrokerNode, keep: bool, silently: bool, down_time: int) -> bool:
        if broker.broker is None or self.world.healed:
            return False
        broker.kill(keep, silently)
        self.world.clock.after(down_time, self._boot, broker)
        return True

    def kill_while_writing(self, broker: BrokerNode, keep: bool, down_time: int) -> bool:
        if broker.broker is None or broker.doomed is not None:
            return False
        broker.doomed = (keep, down_time)
        return True

    def kill_later(self, broker: BrokerNode, keep: bool, down_time: int) -> None:
        self.kill(broker, keep, False, down_time)

    def _boot(self, broker: BrokerNode) -> None:
        if broker.broker is None:
            broker.boot()

    def unload(self, topic: str) -> bool:
        broker = self.nodes[0]
        if broker.broker is None or broker.frozen_until or self.world.closing:
            return False
        self.world.trace.add(self.world.clock.now, broker.name, f"unload {topic}")
        broker.command(broker.broker.unload, topic)
        return True

    def unload_later(self, topic: str) -> None:
        self.unload(topic)
