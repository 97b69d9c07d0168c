"""Where a consumer must go on after seeks and reconnects."""
