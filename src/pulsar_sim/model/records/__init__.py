"""The records of a world: topics and their logs, messages, subscriptions, producers and consumers.

Owns the records and their questions: where an entry lies, which chunks make a message, which messages are
acknowledged or missing. Two contradictions are always refused: one position that holds two entries, and an
order with gaps. `reference_model` owns the callers, and what applications may be told.
"""
