"""The answers of a real Pulsar, in `answers.jsonl`: one line for a conversation, and how they are made."""

import json
from functools import cache
from pathlib import Path
from zlib import crc32

from tests.differential import recordings
from tests.differential.brokers import MachineBroker, SocketBroker
from tests.differential.generator.conversation import conversation as generated
from tests.differential.player import Player
from tests.differential.steps import Conversation, Frame
from tests.real_pulsar import RealPulsar

FILE = Path(__file__).parent / "answers.jsonl"

SEEDS = 280
"""The number of generated conversations."""

Answers = list[list[str]]


@cache
def conversations() -> dict[str, Conversation]:
    """Return all conversations by name: those of the recordings, and those of the generator."""
    of_seeds = [generated(seed) for seed in range(SEEDS)]
    return {each.name: each for each in [*recordings.conversations(), *of_seeds]}


@cache
def answers() -> dict[str, Answers]:
    """Return the recorded answers. Raises `AssertionError` where a conversation has changed since."""
    found = {}
    for line in FILE.read_text().splitlines():
        recorded = json.loads(line)
        name = recorded["name"]
        assert recorded["script"] == script(conversations()[name]), (
            f"{name} is another conversation than the recorded one: `python -m tests.differential record`"
        )
        found[name] = recorded["answers"]
    return found


def script(conversation: Conversation) -> str:
    """Return a number that tells two conversations apart."""
    text = "\n".join(
        f"{step.connection} {step.number} {_bytes(step).hex()}" if isinstance(step, Frame) else str(step)
        for step in conversation.steps
    )
    return f"{crc32(text.encode()):08x}"


def _bytes(step: Frame) -> bytes:
    command = step.command
    data: bytes = (
        command.SerializeToString(deterministic=True) if hasattr(command, "ListFields") else command.encode()
    )
    return data


def namespace(conversation: Conversation) -> str:
    """Return the namespace of a conversation. It is as long as `NAMESPACE`, for limits of patterns."""
    return f"public/{crc32(conversation.name.encode()) % 10**7:07}"


def of_machine(conversation: Conversation) -> Answers:
    """Return the answers of our broker."""
    where = namespace(conversation)
    return Player(MachineBroker(where), conversation, where).play()


def of_pulsar(pulsar: RealPulsar, conversation: Conversation, expected: Answers) -> Answers:
    """Return the answers of a real Pulsar, which must not have had this conversation before."""
    where = namespace(conversation)
    broker = SocketBroker(pulsar.url, pulsar.admin, where)
    try:
        return Player(broker, conversation, where, expected).play()
    finally:
        broker.close()


def warm_up(pulsar: RealPulsar) -> None:
    """Let a Pulsar that has just started load its classes, and create its topics for policies."""
    conversation = conversations()["java-produce-single"]._replace(name="warm-up")
    of_pulsar(pulsar, conversation, of_machine(conversation))
