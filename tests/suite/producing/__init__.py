"""Tests of producers: messages, options, access, deduplication."""
