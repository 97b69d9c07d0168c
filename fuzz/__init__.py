"""Strangers' bytes: what goes into the machines of this project when nobody is honest.

`python -m fuzz` runs all of it; `--help` says how.

* `hostile`: brokers and clients that say anything at any time, against a client with live producers and
  consumers and a broker with live clients (`client_side`, `broker_side`). What they say is made by
  `mischief`, of `trees` that any of the `mutations` was done to, with `payloads` that lie.
* `targets`: functions of bytes, for atheris, for hypothesis (`engines`) and for the `corpus` that the tests
  replay. What is read by hand is compared with protobuf (`reference`).
* `bounds`: how much memory a peer can make a machine hold, as a function of its configuration.

Everything follows from a seed or from bytes (`draws`), so that what goes wrong can be played again.
"""
