"""Our client beside the official one, in one run and against one broker process; `python -m bench`."""
