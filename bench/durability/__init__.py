"""The cost of a store on disk: entries per second of a broker, and the time of a start."""
