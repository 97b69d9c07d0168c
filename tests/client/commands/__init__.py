"""Tests of the rooms of `pulsar_sansio.client.commands`."""
