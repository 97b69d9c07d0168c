"""One suite, two brokers: what our client does, as seen from outside, against our broker and a real Pulsar.

Every test takes the fixture `broker` and runs once for each. The runs against a real Apache Pulsar carry the
marker `real`.
"""
