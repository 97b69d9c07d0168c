"""`KeyKeeper`: the part of a client process that answers its questions for encryption keys.

Owns the fate of a question: the key comes at once, late, or after the operation timeout; the key reader
refuses it, or has another key. Private keys may be missing for a while, and key pairs are replaced by new
versions. After healing each answer is prompt and right.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import EncryptionKeyWanted
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.errors import CryptoError
from pulsar_sansio.model.secret import Secret

from ..clock import MILLISECOND, SECOND
from .encryption_plan import EncryptionPlan
from .key_holder import KeyHolder, key_id
from .key_pairs import private_pem, public_pem

if TYPE_CHECKING:
    from ..nodes.client_node import ClientNode

VERSION = "version"
"""The name under which a public key's metadata say its version."""

ANOTHER = 1_000_000
"""The version of a key pair for which nothing is encrypted."""

LATEST_TIMER = 600 * MILLISECOND
"""Nanoseconds after which every client has noticed that a time is over."""

RIGHT, REFUSED, WRONG, GARBAGE = "right", "refused", "wrong", "garbage"


class KeyKeeper:
    """The key readers of one client process."""

    def __init__(self, node: "ClientNode", plan: EncryptionPlan) -> None:
        self._node = node
        self._plan = plan
        self._stream = node.world.streams.stream(f"keys of {node.name}")
        self.owed: set[int] = set()
        """Questions that are not answered yet."""

    def wanted(self, output: EncryptionKeyWanted) -> None:
        """The client asks: choose the fate of the question, and when it is answered."""
        reader, world = output.reader, self._node.world
        assert isinstance(reader, KeyHolder)
        world.client_watch.encryption.asked(reader, output, world.clock.now)
        fate, delay = self._fate(reader, output.private)
        reader.open[output.request] = key_id(output.key, output.metadata)
        self.owed.add(output.request)
        limit = round(world.profile.operation_timeout * SECOND)
        if delay >= limit:
            world.clock.after(limit, self._not_in_time, reader, output.request)
        world.clock.after(delay, self._answer, reader, output, fate)

    def _fate(self, reader: KeyHolder, private: bool) -> tuple[str, int]:
        plan, stream, world = self._plan, self._stream, self._node.world
        delay = stream.below(plan.delay + 1)
        if world.healed:
            return RIGHT, min(delay, MILLISECOND)
        if reader.dependable:
            return RIGHT, min(delay, SECOND)
        if private and world.clock.elapsed < world.applications_began + plan.missing:
            world.count_fault("key_missing")
            return REFUSED, delay
        if stream.chance(plan.late_permille):
            world.count_fault("key_late")
            limit = round(world.profile.operation_timeout * SECOND)
            return RIGHT, limit + stream.spread(LATEST_TIMER, 5 * SECOND)
        if stream.chance(plan.refused_permille):
            world.count_fault("key_refused")
            return REFUSED, delay
        if stream.chance(plan.wrong_permille):
            world.count_fault("key_wrong")
            return (WRONG if private and stream.chance(700) else GARBAGE), delay
        return RIGHT, delay

    def _not_in_time(self, reader: KeyHolder, request: int) -> None:
        reader.failed(request, self._node.world.clock.now, refused=True)

    def _answer(self, reader: KeyHolder, output: EncryptionKeyWanted, fate: str) -> None:
        node = self._node
        self.owed.discard(output.request)
        if not node.alive:
            return
        now = node.world.clock.now
        node.world.trace.add(now, node.name, f"{output.key} for {reader.owner}: {fate}")
        if fate is RIGHT:
            reader.answered(output.request, self._plan.recipients, now)
        else:
            reader.failed(output.request, now, refused=fate is REFUSED)
        if fate is REFUSED:
            node.client.refuse_encryption_key(now, output.request, CryptoError("it is not there"))
        else:
            node.client.provide_encryption_key(now, output.request, self._key(output, fate))
        node.pump()

    def _key(self, output: EncryptionKeyWanted, fate: str) -> EncryptionKeyInfo:
        if fate is GARBAGE:
            return EncryptionKeyInfo(Secret("no key"))
        if output.private:
            version = ANOTHER if fate is WRONG else version_of(output.metadata)
            return EncryptionKeyInfo(Secret(private_pem(output.key, version)))
        rotation = self._plan.rotation
        if not rotation:
            return EncryptionKeyInfo(Secret(public_pem(output.key, 0)))
        version = self._node.world.clock.elapsed // rotation
        return EncryptionKeyInfo(Secret(public_pem(output.key, version)), {VERSION: str(version)})


def version_of(metadata: object) -> int:
    """Return the version of a key pair, as a public key's metadata say it."""
    return int(dict(metadata).get(VERSION, "0"))  # type: ignore[call-overload]
