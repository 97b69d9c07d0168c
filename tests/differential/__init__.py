"""Conversations that are played with our broker and with a real Pulsar, whose answers are compared.

`generator.py` makes a conversation of a seed, `recordings.py` of a recording in `tests/captures`. `player.py`
plays it with a broker (`brokers.py`), and `answers.py` makes comparable text of the answers. `answers.jsonl`
holds those of a real Pulsar; `python -m tests.differential record` writes it again. `docs/differences.md` has
the differences that stay, and why.
"""
