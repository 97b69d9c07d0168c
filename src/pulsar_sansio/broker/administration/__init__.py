"""An administrator's commands: tenants, namespaces, policies, topics, subscriptions, stats."""
