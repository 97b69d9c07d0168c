"""Makes a conversation of a seed: its theme weighs the actions of its clients."""

from random import Random

from tests.differential.generator.script import Script, topic
from tests.differential.generator.themes import THEMES, WRONG
from tests.differential.steps import Conversation


def conversation(seed: int) -> Conversation:
    """Return the conversation of a seed. All choices are those of `random.Random(seed)`."""
    theme = THEMES[seed % len(THEMES)]
    random = Random(seed)
    topics = [topic(name) if "://" not in name else name for name in theme.topics]
    script = Script(random, topics, theme.kinds, theme.subscriptions)
    length = random.randint(8, 22)
    for action in theme.first:
        action(script)
    script.connect()
    names, weights = zip(*theme.actions.items(), strict=True)
    while len(script.steps) < length + 2 * len(theme.first):
        if random.random() < theme.wrong:
            random.choice(WRONG)(script)
        else:
            random.choices(names, weights)[0](script)
    return Conversation(f"seed-{seed}", tuple(script.steps))
