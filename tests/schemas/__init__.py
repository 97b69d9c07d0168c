"""Tests of `pulsar_sansio.schemas`."""
