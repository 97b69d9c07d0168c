"""Fuzzing: bytes of dishonest peers for the machines of this project.

`python -m fuzz` runs all of it; `--help` says how.

* `hostile`: brokers and clients that say anything at any time. They attack a client with live producers and
  consumers, and a broker with live clients (`client_side`, `broker_side`). `mischief` makes their frames, of
  `trees` with one of the `mutations`, and with `payloads` that lie.
* `targets`: functions of bytes, for atheris, for hypothesis (`engines`) and for the `corpus` that the tests
  replay. They compare the readers written by hand with protobuf (`reference`).
* `credentials`: targets of authentication: challenges, tokens and names of certificates.
* `bounds`: the most memory that a peer can make a machine hold, as a function of its configuration.

Everything follows from a seed or from bytes (`draws`), so that a failure can be played again.
"""
