"""Conversations of one machine with a peer that is bytes alone: exact answers at exact moments."""
