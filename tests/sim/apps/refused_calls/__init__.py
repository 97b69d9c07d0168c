"""Tests of the calls that a client has to refuse."""
