"""Applications that seek and read on."""
