"""The values that applications hold: ids, messages, names, specs and errors.

Everything here is typed, immutable where it is kept, and picklable. Nothing here knows about
bytes on a wire, connections or machines; every other package may import this one.
"""
