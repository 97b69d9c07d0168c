"""`python -m tests.differential record`: play all conversations with a real Pulsar, and keep its answers.

`python -m tests.differential compare`: what our broker answers otherwise than the kept answers say.
`python -m tests.differential show NAME`: one conversation, with both brokers' answers.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.differential import recorded
from tests.differential.comparison import client, judge
from tests.real_pulsar import RealPulsar, Unavailable

TOGETHER = 6
"""Conversations at a time: they mostly wait."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record", help="play all with a real Pulsar, and keep its answers")
    commands.add_parser("compare", help="differences of our broker that have no row in docs/differences.md")
    commands.add_parser("show", help="one conversation with both brokers' answers").add_argument("name")
    arguments = parser.parse_args()
    if arguments.command == "show":
        return show(arguments.name)
    try:
        return record() if arguments.command == "record" else compare()
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 1


def record() -> int:
    conversations = recorded.conversations()
    expected = {name: recorded.of_machine(each) for name, each in conversations.items()}
    with RealPulsar() as pulsar, ThreadPoolExecutor(TOGETHER) as pool:
        recorded.warm_up(pulsar)
        found = pool.map(
            lambda each: recorded.of_pulsar(pulsar, each, expected[each.name]), conversations.values()
        )
        lines = [
            json.dumps(
                {"name": each.name, "script": recorded.script(each), "answers": answers},
                separators=(",", ":"),
            )
            for each, answers in zip(conversations.values(), found, strict=True)
        ]
    recorded.FILE.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} conversations")
    return 0


def compare() -> int:
    mistakes = 0
    for name, conversation in recorded.conversations().items():
        ours = recorded.of_machine(conversation)
        for difference in judge(conversation, recorded.answers()[name], ours).mistakes:
            mistakes += 1
            print(name, *difference)
    return 1 if mistakes else 0


def show(name: str) -> int:
    conversation = recorded.conversations()[name]
    ours, pulsar = recorded.of_machine(conversation), recorded.answers()[name]
    for number, (step, theirs, mine) in enumerate(zip(conversation.steps, pulsar, ours, strict=True)):
        print(number, client(step), str(step).replace("\n", " ")[:400])
        for line in theirs:
            print("   =" if line in mine else "   Pulsar", line)
        for line in mine:
            if line not in theirs:
                print("   ours", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
