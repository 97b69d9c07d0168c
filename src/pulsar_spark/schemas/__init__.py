"""Typed values: topics' schemas as types of Spark, and columns decoded and encoded with them."""
