"""The encryption options of producers and consumers, as the plan of a world says.

Owns the choice of key readers: applications that must not miss a message have one that always has the key.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction, ProducerCryptoFailureAction

from ..engine.clock import SECOND
from ..engine.profile import LONGEST_KEY_FAILURE
from ..engine.randomness import Stream
from ..engine.security.encryption_plan import EncryptionPlan
from ..engine.security.key_holder import KeyHolder

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


def decrypting(world: "Surroundings", owner: str, *, several: bool = False) -> dict[str, Any]:
    """Return the options of a consumer, reader or table view that gets every message. `several`: it has
    consumers of several topics or partitions."""
    plan = world.profile.encryption
    if plan is None:
        return {}
    return {"crypto_key_reader": _reader(world, plan, owner, private=True, dependable=True, several=several)}


def decrypting_perhaps(
    world: "Surroundings", owner: str, index: int, stream: Stream, *, several: bool
) -> dict[str, Any]:
    """Return the options of a consumer that may miss its keys for a while. `index` of its application."""
    plan = world.profile.encryption
    if plan is None:
        return {}
    action = ConsumerCryptoFailureAction(plan.actions[index % len(plan.actions)])
    if world.rash and stream.chance(plan.keyless_permille):
        return {"crypto_failure_action": action}
    reader = _reader(world, plan, owner, private=True, dependable=False, several=several)
    return {"crypto_key_reader": reader, "crypto_failure_action": action}


def encrypting(world: "Surroundings", owner: str, stream: Stream, *, several: bool) -> dict[str, Any]:
    """Return the options of a producer."""
    plan = world.profile.encryption
    if plan is None or stream.chance(plan.clear_permille):
        return {}
    actions = ProducerCryptoFailureAction
    return {
        "encryption_keys": plan.names,
        "crypto_key_reader": _reader(world, plan, owner, private=False, dependable=False, several=several),
        "crypto_failure_action": actions.SEND if plan.sends_in_clear else actions.FAIL,
    }


def encrypting_letters(world: "Surroundings", owner: str) -> dict[str, Any]:
    """Return the options of the policy of a consumer with letters."""
    plan = world.profile.encryption
    if plan is None or not plan.letters:
        return {}
    reader = _reader(world, plan, f"letters of {owner}", private=False, dependable=False, several=True)
    return {"encryption_keys": plan.names, "crypto_key_reader": reader}


def _reader(
    world: "Surroundings",
    plan: EncryptionPlan,
    owner: str,
    *,
    private: bool,
    dependable: bool,
    several: bool,
) -> KeyHolder:
    attempts = plan.recipients + 1
    memory = round((2 * LONGEST_KEY_FAILURE + 3 * attempts * world.profile.operation_timeout) * SECOND)
    return KeyHolder(owner, memory, private=private, dependable=dependable, several=several)
