"""Shapes: the types of Avro with their conversions, for single values and for what holds others."""
