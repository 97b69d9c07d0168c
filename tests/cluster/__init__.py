"""This client under load against a real cluster: ZooKeeper, a bookie and two brokers, and relays."""
