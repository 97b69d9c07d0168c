"""Commands as bytes: five encoded and decoded by hand, the others by protobuf."""
