"""What an administrator does: tenants, namespaces, policies, topics, subscriptions, stats."""
