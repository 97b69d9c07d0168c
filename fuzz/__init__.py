"""Strangers' bytes: what goes into the machines of this project when nobody is honest.

`targets` are functions of bytes, for a coverage-guided fuzzer, for hypothesis and for the corpus that the
tests replay. `python -m fuzz` runs them, and the hostile peers.
"""
