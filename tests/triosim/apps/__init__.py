"""The applications of a run, and the books of what each call reported to them."""
