"""Topics with their producers, consumers and subscriptions."""
