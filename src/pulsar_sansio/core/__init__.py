"""The mechanism under both machines: time, outputs, randomness, backoff, buffers, transition tables.

Nothing here knows a command of the protocol.
"""
