"""The position at which a consumer must go on after seeks and reconnects."""
