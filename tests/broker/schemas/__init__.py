"""Tests of `pulsar_sansio.broker.schemas`."""
