"""Reading topics into record batches: batches, streams, offsets and plans."""
