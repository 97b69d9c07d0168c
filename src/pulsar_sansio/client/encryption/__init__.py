"""End-to-end encryption in the client: which keys are wanted when, and what happens without them."""
