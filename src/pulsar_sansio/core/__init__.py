"""The mechanism both machines stand on: time, outputs, randomness, backoff, buffers, transition tables.

Nothing here knows a command of the protocol.
"""
