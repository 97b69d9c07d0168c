"""Uniform messages and uniform members: runs whose bytes differ only in a few known places.

The words of this room:

* *Uniform messages* are MESSAGE frames of one ledger for one consumer. They differ in the numbers of entry
  and message, in the time, the checksum and the payload.
* *Uniform members* are members of one batch. Their headers have the same fields, each of the same length.
* A *template* is learnt from one command, frame or header. It has the constant bytes, and the places of the
  bytes that differ. A decoder compares the next one with the template instead of reading its fields.
* A *decode cache* is the bounded memory of a decoder. One connection owns it, so no connection learns from
  another, and the cache ends with its connection.

This room has the byte layouts of everything uniform. It imports neither `messages` nor `commands`: both use
it.
"""
